"""
Processes that take, try, extend and release locks, and take them from each other by force, some killed meanwhile.

What they saw must be what one lock in one place would have shown them: for each name the history is linearizable.
"""

from __future__ import annotations

import math
import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import Popen
from threading import Event, Thread
from typing import Any

import pytest
from redis import Redis

from components.embedded import EmbeddedServer
from components.testing import ClusterServer
from tests.commands.processes import ROOT
from tests.support import lock_histories
from tests.support.lock_histories import LockState, after, violation
from tests.support.proxy import LossyProxy
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

CLIENTS, CALLS = 4, 80
_PATIENCE = 60  # seconds, for what takes a few


@contextmanager
def running(url: str, client_class: str, file: Path, *more: str) -> Iterator[Popen[bytes]]:
    command = [sys.executable, "-m", "tests.support.lock_histories", url, client_class, str(file), str(CALLS)]
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    with Popen([*command, *more], cwd=ROOT, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


def lines(file: Path) -> int:
    return len(file.read_bytes().splitlines()) if file.exists() else 0


@contextmanager
def losing(proxy: LossyProxy) -> Iterator[None]:
    """Lose a reply to a script each hundredth of a second."""
    over = Event()

    def lose() -> None:
        while not over.wait(0.01):
            proxy.lose_replies(to="EVALSHA")

    thread = Thread(target=lose)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def run(folder: Path, url: str, client_class: str, *more: str, killed: int) -> None:
    """The processes, to their ends; some are killed in the middle."""
    files = [folder / f"{number}.jsonl" for number in range(CLIENTS)]
    with ExitStack() as stack:
        clients = [stack.enter_context(running(url, client_class, file, *more)) for file in files]
        for number in range(killed):
            assert eventually(lambda n=number: lines(files[n]) > CALLS, within=_PATIENCE)
            clients[number].kill()
        for client in clients[killed:]:
            assert client.wait(_PATIENCE) == 0


def check(folder: Path, record_property: Any) -> Counter[str]:
    """What happened how often."""
    histories = lock_histories.read(folder.glob("*.jsonl"))
    found = {name: violation(history, LockState(), after) for name, history in histories.items()}
    counts = Counter(
        f"{operation.name} {'unknown' if operation.returned == math.inf else bool(operation.result)}"
        for history in histories.values()
        for operation in history
    )
    record_property("figures", sorted(counts.items()))
    assert found == dict.fromkeys(lock_histories.NAMES)
    return counts


def test_histories_of_processes_are_linearizable(
    redis: Redis, server: EmbeddedServer, tmp_path: Path, record_property: Any
) -> None:
    name = "ClusterClient" if isinstance(server, ClusterServer) else "Client"
    run(tmp_path, server.url, f"components.cache.{name}", "forces", killed=1)

    counts = check(tmp_path, record_property)

    done = {f"{verb} True" for verb in ("acquire", "release", "extend", "force", "locked", "owned")}
    assert done | {"acquire False"} <= counts.keys()
    assert {"release False", "extend False"} & counts.keys()  # of a lock that was lost by force


@pytest.mark.parametrize("redis_mode", ["plain"])
def test_histories_of_processes_are_linearizable_though_replies_are_lost(
    redis: Redis, server: EmbeddedServer, tmp_path: Path, record_property: Any
) -> None:
    """Nobody uses force: who loses a lock before having heard that it is granted, is granted it anew."""
    with LossyProxy(server) as proxy, losing(proxy):
        run(tmp_path, proxy.url, "components.cache.Client", killed=0)

    counts = check(tmp_path, record_property)

    assert proxy.lost > 10
    assert {"acquire True", "acquire False", "release True", "extend True"} <= counts.keys()
    assert not {"release False", "extend False"} & counts.keys()
