"""The commands that a server receives from its clients."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from uuid import uuid4

from redis import Redis

import components
from components.embedded import EmbeddedServer
from components.kit.lua_headers import contract

ROOT = Path(components.__file__).parent


@cache
def sources() -> list[str]:
    """Return the scripts of the app, as the server gets them."""
    found = (file for file in ROOT.glob("services/*/lua/*.lua") if not file.stem.startswith("_"))
    return [contract(f"{file.parent.parent.name}/{file.stem}").source for file in found]


@contextmanager
def sent_to(server: EmbeddedServer) -> Iterator[list[str]]:
    """
    Yield a list that has, at the end of the block, the commands that clients sent in it, without those that scripts
    call.

    All scripts are loaded before, so it does not matter which tests the server has served.
    """
    commands: list[str] = []
    end = f"the end {uuid4()}"
    with Redis.from_url(server.url) as client, Redis.from_url(server.url) as observer:
        for source in sources():
            client.script_load(source)
        with observer.monitor() as monitor:
            yield commands
            client.echo(end)
            for seen in iter(monitor.next_command, None):
                if end in seen["command"]:
                    return
                if seen["client_type"] != "lua":
                    commands.append(seen["command"].split(" ", 1)[0])
