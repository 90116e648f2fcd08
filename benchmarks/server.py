"""The server that all systems of a run use, and Django beside it; for programs only: workers need neither."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import django
from redis import Redis

from benchmarks.bench import FOLDER, URL, Bench
from components.embedded import EmbeddedServer


@contextmanager
def standing_bench(*, tcp: bool = False, settings: str = "benchmarks.settings") -> Iterator[Bench]:
    """
    A server like one in production, except that it never rewrites its file in the middle of a turn; and Django
    with *settings* beside it.
    """
    with TemporaryDirectory(prefix="benchmark-") as path:
        marks = Path(path, "marks")
        marks.mkdir()
        port = _free_port() if tcp else 0
        options = {"auto-aof-rewrite-percentage": "0", "bind": "127.0.0.1", "port": str(port)}
        with EmbeddedServer(Path(path, "redis"), appendfsync="everysec", options=options) as server:
            address = f"redis://127.0.0.1:{port}/0" if tcp else server.url
            os.environ.update({URL: address, FOLDER: str(marks), "DJANGO_SETTINGS_MODULE": settings})
            django.setup()
            with Redis.from_url(address) as redis:
                yield Bench(redis)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
