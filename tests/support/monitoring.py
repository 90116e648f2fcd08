"""What clients really send to a server, as the server saw it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from redis import Redis

from components.embedded import EmbeddedServer


@contextmanager
def sent_to(server: EmbeddedServer) -> Iterator[list[str]]:
    """The commands that clients send in the with block, filled in at its end; not what scripts call."""
    commands: list[str] = []
    end = f"the end {uuid4()}"
    with Redis.from_url(server.url) as client, Redis.from_url(server.url) as observer:
        client.ping()  # connected before, since connecting sends commands of its own
        with observer.monitor() as monitor:
            yield commands
            client.echo(end)
            for seen in iter(monitor.next_command, None):
                if end in seen["command"]:
                    return
                if seen["client_type"] != "lua":
                    commands.append(seen["command"].split(" ", 1)[0])
