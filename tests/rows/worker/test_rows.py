"""The daemon of cached rows: what it asks of Redis, and how it ends."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from components.embedded import EmbeddedServer
from components.kit.scripts import Script
from components.kit.worker.pulse import Pulse
from components.services.rows import Shape
from components.services.rows.worker import RowWorker
from components.testing import redis_at
from tests.support.rows import SHAPE, cache, failure_of
from tests.support.waiting import eventually


@dataclass
class Found:
    values: dict[str, Sequence[Any]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)


class Memory:
    """A source of rows that are there, but for those whose key is "gone"."""

    shape: Shape = SHAPE

    def __init__(self) -> None:
        self.loads: list[Sequence[str]] = []

    def load_all(self, keys: Sequence[str]) -> Found:
        self.loads.append(keys)
        return Found({key: ["sword", len(self.loads)] for key in keys if key != "gone"})


class Broken(Memory):
    def load_all(self, keys: Sequence[str]) -> Found:
        raise LookupError("what nobody has thought of")


def test_it_loads_what_is_due_until_it_is_stopped(redis: Redis, tmp_path: Path) -> None:
    source = Memory()
    worker = RowWorker({"items": source})
    worker.pulse = Pulse(tmp_path / "pulse")
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        cache().schedule("1", 0.01)
        assert eventually(lambda: len(source.loads) > 2)
        assert (tmp_path / "pulse").exists()
    finally:
        worker.stop()
        thread.join(20)

    assert not thread.is_alive()
    assert cache().get("1", stale=True) is not None


def test_a_quiet_one_claims_nothing(redis: Redis) -> None:
    source = Memory()
    worker = RowWorker({"items": source})
    cache().schedule("1", 5)

    worker.quiet()

    assert worker.tick() > 0
    assert source.loads == []


def test_a_batch_costs_two_round_trips(redis: Redis) -> None:
    worker = RowWorker({"items": Memory()}, batch=2_000)
    cache().schedule("first", 600)
    worker.tick()  # now the server knows the scripts
    cache().schedule_many({str(number): 600 for number in range(300)})
    with redis.monitor() as monitor:
        worker.tick()
        redis.ping()
        seen = []
        while (command := monitor.next_command())["command"] != "PING":
            if command["client_type"] != "lua" and command["command"].startswith("EVALSHA"):
                seen.append(command["command"].split()[1])

    assert len(set(seen)) == 2  # scripts, whose calls for all buckets travel together
    assert seen == sorted(seen, key=[Script("rows/claim").sha, Script("rows/store").sha].index)
    assert len(cache().get_many(map(str, range(300)))) == 300


def test_an_exception_of_one_source_stops_no_other(redis: Redis, caplog: pytest.LogCaptureFixture) -> None:
    cache().schedule("1", 60)
    cache("others").schedule("1", 60)

    RowWorker({"items": Broken(), "others": Memory()}).tick()

    assert cache("others").get("1") is not None
    assert failure_of("1").error == "LookupError: what nobody has thought of"
    assert "The rows of items cannot be loaded" in caplog.text


def test_while_redis_is_away_it_waits_and_goes_on(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    program = request.config.getoption("--redis-server")
    source = Memory()
    with (
        EmbeddedServer(tmp_path / "redis", server=program, appendfsync="always") as server,
        redis_at(server.url),
    ):
        cache().schedule("1", 0.01)
        worker = RowWorker({"items": source})
        thread = threading.Thread(target=worker.run)
        thread.start()
        try:
            assert eventually(lambda: len(source.loads) > 1)  # the first try is not over before
            server.kill()
            assert eventually(lambda: bool(worker.outage))
            server.start()
            loads = len(source.loads)
            assert eventually(lambda: len(source.loads) > loads)
        finally:
            worker.stop()
            thread.join(20)
    assert not thread.is_alive()
