"""The daemon of cached rows: what it asks of Redis, how it ends, and what it does while a node is away."""

import logging
import signal
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from components.embedded import EmbeddedServer
from components.kit.keyspace import BUCKETS, bucket
from components.kit.scripts import Script
from components.services.rows import Loader, RowReader, Shape, member
from components.services.rows.keys import RowKeys
from components.services.rows.worker import RowWorker
from components.testing import redis_at
from components.workers.loop import Pulse
from tests.commands.processes import Command
from tests.db.models import Token, Ware
from tests.support.masters import Master, three_masters
from tests.support.monitoring import sent_to
from tests.support.rows import SHAPE, bodies, cache, claimed, failure_of, let_pass, let_whole_delays_pass
from tests.support.waiting import eventually


@dataclass
class Found:
    values: dict[str, Sequence[Any]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)


class Memory:
    """A source that knows how often it was asked for each row, which is that row's stock."""

    shape: Shape = SHAPE

    def __init__(self) -> None:
        self.loads = Counter[str]()

    def load_all(self, keys: Sequence[str]) -> Found:
        self.loads.update(keys)
        return Found({key: ["sword", self.loads[key]] for key in keys})


class Broken(Memory):
    def load_all(self, keys: Sequence[str]) -> Found:
        raise LookupError("what nobody has thought of")


@contextmanager
def running(worker: RowWorker) -> Iterator[None]:
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        yield
    finally:
        worker.stop()
        thread.join(20)
    assert not thread.is_alive()


def test_it_loads_what_is_due_until_it_is_stopped_or_quiet(redis: Redis, tmp_path: Path) -> None:
    source = Memory()
    worker = RowWorker({"items": source})
    worker.pulse = Pulse(tmp_path / "pulse")
    with running(worker):
        cache().schedule("1", 0.01)
        assert eventually(lambda: source.loads["1"] > 2)
        assert (tmp_path / "pulse").exists()
    assert cache().get("1", stale=True) is not None

    worker = RowWorker({"items": source})
    cache().schedule("2", 5)
    worker.quiet()
    assert worker.tick() > 0
    assert source.loads["2"] == 0


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


def test_it_sleeps_until_the_next_row_is_due(
    redis: Redis, redis_server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Memory()
    worker = RowWorker({"items": source})
    cache().schedule("1", 600)
    assert worker.tick() == 1  # the longest wait of a row that is scheduled meanwhile
    let_whole_delays_pass()
    monkeypatch.setattr("components.services.rows.worker._LONGEST_NAP", 1_000)
    worker.loader.look()
    with sent_to(redis_server) as commands:
        assert 500 < worker.tick() <= 600
    assert len(commands) <= len(BUCKETS) + 1
    let_pass(redis, 600)
    worker.tick()
    assert source.loads["1"] == 2


def test_an_exception_of_one_source_stops_no_other(redis: Redis, caplog: pytest.LogCaptureFixture) -> None:
    cache().schedule("1", 60)
    cache("others").schedule("1", 60)
    RowWorker({"items": Broken(), "others": Memory()}).tick()
    assert cache("others").get("1") is not None
    assert failure_of("1").error == "LookupError: what nobody has thought of"
    assert "The rows of items cannot be loaded" in caplog.text


def test_while_redis_is_away_it_waits_and_goes_on(server: EmbeddedServer) -> None:
    source = Memory()
    worker = RowWorker({"items": source})
    with redis_at(server.url):
        cache().schedule("1", 0.01)
        with running(worker):
            assert eventually(lambda: source.loads["1"] > 1)  # the first try is not over before
            server.kill()
            assert eventually(lambda: bool(worker.outage))
            server.start()
            loads = source.loads["1"]
            assert eventually(lambda: source.loads["1"] > loads)


# A node of a cluster is away.

KEYS = [str(number) for number in range(40)]


@pytest.fixture
def nodes(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[list[Master]]:
    with three_masters(tmp_path, request.config.getoption("--redis-server")) as nodes:
        yield nodes


def keys_of(node: Master) -> set[str]:
    return {key for key in KEYS if node.has(RowKeys(bucket(member("items", key))).schedule)}


@pytest.mark.slow
def test_rows_of_other_nodes_are_loaded_as_ever(
    nodes: list[Master], caplog: pytest.LogCaptureFixture
) -> None:
    rows, source, dead = cache(), Memory(), nodes[2]
    rows.schedule_many(dict.fromkeys(KEYS, 0.01))
    worker = RowWorker({"items": source})
    worker.tick()
    lost = keys_of(dead)
    there = set(KEYS) - lost
    assert 0 < len(lost) < len(KEYS)

    def tick() -> bool:
        return worker._try_tick() >= 0

    dead.kill()
    before = Counter(source.loads)
    with caplog.at_level(logging.WARNING, "components"):
        assert eventually(
            lambda: tick() and all(source.loads[key] > before[key] + 2 for key in there), within=30
        )
    assert {key: source.loads[key] for key in lost} == {key: before[key] for key in lost}
    found = rows.get_many(there)
    assert {key: row["stock"] for key, row in found.items()} == {key: source.loads[key] for key in there}
    assert sum("Waiting for Redis" in each.getMessage() for each in caplog.records) == 1

    dead.start()
    assert eventually(lambda: tick() and not worker.outage, within=60)
    assert "Redis answers again" in caplog.text


@pytest.mark.slow
def test_rows_claimed_from_a_node_that_died_are_not_stored_and_the_rest_is(nodes: list[Master]) -> None:
    rows, loader, dead = cache(), Loader(), nodes[0]
    rows.schedule_many(dict.fromkeys(KEYS, 60))
    claims = loader.claim(1_000)
    assert claimed(claims) == sorted(KEYS)
    lost = keys_of(dead)

    dead.kill()
    refused = loader.store(claims.claims, bodies({key: ["sword", 1] for key in KEYS}))

    assert refused == {member("items", key) for key in lost}
    assert rows.get_many(set(KEYS) - lost).keys() == set(KEYS) - lost


SITE = {"APPS": "tests.db", "DATABASE": ":memory:"}


def test_it_lives_on_without_its_tables_until_it_is_stopped(server: EmbeddedServer, tmp_path: Path) -> None:
    pulse = tmp_path / "pulse"
    with (
        redis_at(server.url),
        Command(server.url, "cacherows", "--heartbeat-file", str(pulse), **SITE) as daemon,
    ):
        Ware.cached.schedule(1, delay=0.01)
        assert daemon.says("the database does not answer: no such table: db_ware. Trying again in 0.5 s.")
        assert pulse.exists()
        Token.cached.schedule("a", delay=0.01)
        assert daemon.says("the database does not answer: no such table: db_token")
        daemon.signal(signal.SIGTERM)

        assert daemon.exit_code() == 0
        assert RowReader().failing() == 0
    assert "INFO Cached rows of 4 models" in daemon.output
    assert "Traceback" not in daemon.output
    assert not pulse.exists()


def test_it_says_so_if_redis_does_not_answer() -> None:
    with Command("redis://127.0.0.1:1", "cacherows", **SITE) as daemon:
        assert daemon.exit_code() == 2
    assert "Is it running?" in daemon.output


@pytest.mark.slow
@pytest.mark.parametrize("option", [["--batch", "0"], ["--lease", "0"], ["--lease", "x"]])
def test_wrong_options_are_refused(server: EmbeddedServer, option: list[str]) -> None:
    with Command(server.url, "cacherows", *option, **SITE) as daemon:
        assert daemon.exit_code() == 2
