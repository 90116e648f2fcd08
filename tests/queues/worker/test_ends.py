"""How ends of tasks come into Redis that are too large, that Redis refuses, or that come when it is full."""

import json
import logging
import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from redis import Redis

from components.embedded import EmbeddedServer
from components.exceptions import RedisRefused, RedisUnavailable, StepRefused
from components.services.queues import (
    Claimed,
    Consumer,
    Finished,
    Step,
    TaskFailure,
    TaskQueue,
    every,
    periodic,
)
from components.services.queues.backend import RedisBackend
from components.services.queues.consumer import Request
from components.services.queues.formats import write_errors
from components.services.queues.worker.refused_ends import RefusedEnds, is_refused
from components.services.queues.worker.runs import ServerClock
from components.services.queues.worker.tasks import how_many_fit
from components.services.queues.worker.worker import Poller, Worker
from components.testing import redis_at
from tests import tasks
from tests.fixtures.worker import NOTE, WAIT, MakeWorker, counts, push, reaches
from tests.queues.worker import jobs
from tests.support.queues import claim, failed, options, push_many
from tests.support.waiting import eventually

Start = Callable[[Worker], Worker]
MB = 1024 * 1024


@pytest.fixture
def server(backend: RedisBackend, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[EmbeddedServer]:
    program = request.config.getoption("--redis-server")
    with EmbeddedServer(tmp_path, server=program, appendonly=False) as server, redis_at(server.url):
        yield server


@pytest.fixture
def own(server: EmbeddedServer) -> Iterator[Redis]:
    with Redis.from_url(server.url) as client:
        yield client


def test_a_result_of_the_largest_size_is_stored_and_a_larger_one_is_a_failure_that_says_so(
    backend: RedisBackend, make_worker: MakeWorker
) -> None:
    with options(max_result=5_000, max_attempts=3):
        fits, exceeds = jobs.huge.enqueue(5_000), jobs.huge.enqueue(5_001)
        make_worker(burst=True).run()

        assert backend.queue.get(fits.id).return_value == "x" * 4_998
        info = backend.queue.get(exceeds.id)
    assert (info.state, info.starts) == ("dead", 1)  # it has done its work, and is not tried again
    [error] = info.errors
    assert error.exception_class_path == "components.exceptions.ResultTooLarge"
    assert "5,001 bytes" in error.traceback


@pytest.mark.parametrize("kind", ["set", "keys", "date", "decimal", "nan"])
def test_a_task_whose_value_is_not_json_has_run_and_is_not_tried_again(
    backend: RedisBackend, make_worker: MakeWorker, kind: str
) -> None:
    with options(max_attempts=3):
        result = jobs.odd.enqueue(kind)
        make_worker(burst=True).run()

    info = backend.queue.get(result.id)
    assert (info.state, info.starts) == ("dead", 1)
    [error] = info.errors
    assert error.exception_class_path == "builtins.TypeError"
    assert "the return value" in error.traceback


def test_eight_megabytes_on_a_server_that_has_24_stop_nobody_and_do_not_fill_the_log(
    own: Redis, backend: RedisBackend, make_worker: MakeWorker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "components.done")
    own.config_set("maxmemory", 24 * MB)
    result, wrong = jobs.huge.enqueue(8 * MB), jobs.fail_hugely.enqueue(8 * MB)
    push(NOTE, 20)

    worker = make_worker(max_tasks=23)
    assert worker.run() == 0

    assert counts() == {"successful": 20, "dead": 2}
    assert "ResultTooLarge" in backend.queue.get(result.id).errors[0].traceback
    errors = backend.queue.get(wrong.id).errors
    assert [error.exception_class_path for error in errors] == ["builtins.ValueError"] * 2
    assert "characters are left out" in errors[0].traceback
    assert own.info("memory")["used_memory_dataset"] < 8 * MB
    lines = [record.getMessage() for record in caplog.records if record.name == "components.done"]
    assert max(map(len, lines)) < 2_000


@pytest.mark.parametrize("character", ["x", "\U0001f600", "\ud800", '"'])
@pytest.mark.parametrize("most", [4_096, 100_000, MB])
def test_errors_are_bounded_and_the_latest_are_kept(character: str, most: int) -> None:
    many = [TaskFailure("a.B", f"{number} begins " + character * 300_000 + " ends") for number in range(30)]

    document = write_errors(many, most)

    assert len(document) <= most
    kept = json.loads(document)["errors"]
    assert len(kept) >= 2
    assert kept[-1][1].startswith("29 begins")
    assert kept[-1][1].endswith(" ends")
    if most < MB or len(json.dumps(character)) > 3:
        assert "characters are left out" in kept[-1][1]


def test_a_request_has_so_many_bytes_of_ends_or_one_end(backend: RedisBackend) -> None:
    push_many(4)
    ends = [failed(claimed) for claimed in claim(Consumer(), 4)]
    path, short = write_errors([TaskFailure("a" * 1_000_000, "short")], 4_096), [["a" * 200, "short"]]
    assert json.loads(path)["errors"] == short
    large = [
        end._replace(document="x" * size) for end, size in zip(ends, (9 * MB, MB, 7 * MB, 1), strict=True)
    ]

    assert how_many_fit(ends) == 4
    assert how_many_fit(large) == 1
    assert how_many_fit(large[1:]) == 2
    assert how_many_fit([]) == 0


class Stubborn(Consumer):
    """A consumer whose Redis answers each request with the next of *errors*, and then takes all."""

    def __init__(self, *errors: Exception) -> None:
        super().__init__()
        self.errors = list(errors)
        self.sent: list[tuple[str, str]] = []

    def advance(self, request: Request) -> Step:
        self.sent += [(done.task.id, done.outcome) for done in request.finished]
        if self.errors:
            raise self.errors.pop(0)
        return Step(datetime(2026, 1, 1, tzinfo=UTC), [], None, ["lost"])


def end(task_id: str, outcome: Any = "successful") -> Finished:
    return Finished(Claimed(task_id, "default", "token", 1, b"", b"", b""), outcome, 60.0, "a result")


@pytest.mark.parametrize(
    ("error", "refuses"),
    [
        (StepRefused("no"), True),
        (RedisRefused("used memory > 'maxmemory'"), True),
        (RedisRefused("READONLY"), False),
        (RedisUnavailable("maxmemory"), False),
    ],
)
def test_an_end_that_is_refused_holds_up_no_other_and_a_server_that_is_away_is_not_asked_again(
    error: Exception, refuses: bool
) -> None:
    consumer = Stubborn(error)
    apart = RefusedEnds(consumer, ServerClock())
    apart.add([end("a"), end("b")])
    assert apart.pause() <= 0

    assert is_refused(error) == refuses
    assert apart.send() == (["lost"] if refuses else [])
    assert [task_id for task_id, _outcome in consumer.sent] == (["a", "b"] if refuses else ["a"])
    assert [claimed.id for claimed in apart.tasks()] == (["a"] if refuses else ["a", "b"])
    assert len(apart) == len(apart.tasks())


@pytest.mark.parametrize(
    ("outcome", "becomes"), [("successful", "dead"), ("dead", "dead"), ("retry", "retry")]
)
def test_an_end_that_is_refused_twice_is_sent_without_its_document_at_growing_intervals(
    monkeypatch: pytest.MonkeyPatch, outcome: str, becomes: str
) -> None:
    now, clock = [1_000.0], ServerClock()
    time = SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr("components.services.queues.worker.refused_ends.time", time)
    clock.set(datetime(2026, 1, 1, tzinfo=UTC))
    consumer = Stubborn(*[StepRefused("too large")] * 7)
    apart = RefusedEnds(consumer, clock)
    apart.add([end("a", outcome)])
    pauses = []
    while len(apart):
        apart.send()
        pauses.append(apart.pause())
        now[0] += min(pauses[-1], 60.0) - 0.001
        assert apart.send() == []  # not yet
        now[0] += 0.001

    assert pauses == pytest.approx([1, 2, 4, 8, 16, 30, 30, math.inf])
    assert consumer.sent == [("a", outcome)] * 2 + [("a", becomes)] * 6


@pytest.mark.parametrize("error", [StepRefused("no"), RedisUnavailable("no answer")])
def test_ends_are_sent_one_by_one_if_refused(
    make_worker: MakeWorker, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    advance, refused = Consumer.advance, []

    def one_by_one(self: Consumer, request: Request) -> Step:
        if len(request.finished) > 1:
            refused.append(request.number)
            raise error
        return advance(self, request)

    monkeypatch.setattr(Consumer, "advance", one_by_one)
    push(NOTE, 20)

    assert make_worker(max_tasks=20).run() == 0

    assert counts() == {"successful": 20}
    tries = [refused.count(number) for number in dict.fromkeys(refused)]
    assert set(tries) == {1 if is_refused(error) else 3}


@pytest.mark.slow
def test_an_end_that_redis_refuses_keeps_no_other_from_being_handed_in(
    own: Redis, backend: RedisBackend, make_worker: MakeWorker, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    """A server may be set to take no argument of more than so many bytes, and cuts the connection then."""
    own.config_set("proto-max-bulk-len", MB)
    with options(max_result=4 * MB):
        [waits] = push(WAIT)
        refused = jobs.huge.enqueue(2 * MB)
        others = push(NOTE, 20)
        start(make_worker())
        assert eventually(lambda: backend.queue.get(refused.id).state == "dead", within=40)
        assert counts() == {"running": 1, "successful": 20, "dead": 1}
        tasks.gate.set()

        assert reaches(successful=21, dead=1)
    [error] = backend.queue.get(refused.id).errors
    assert error.exception_class_path == "components.exceptions.EndNotStored"
    assert backend.queue.get(refused.id).starts == 1
    assert backend.queue.get(waits).cut_off == 0
    assert [backend.queue.get(task_id).starts for task_id in others] == [1] * 20


def fill(client: Redis) -> int:
    """Push tasks until Redis takes no more; how many it has taken."""
    client.config_set("maxmemory", client.info("memory")["used_memory"] + MB // 8)
    return sum(1 for _taken in iter(is_taken, False))


def is_taken() -> bool:
    """Whether Redis takes a new task; else it is full."""
    try:
        TaskQueue().push("tests.queues.worker.jobs.huge", [500])
    except RedisRefused:
        return False
    return True


def test_a_server_filled_to_the_brim_is_drained_by_workers_old_and_new(
    own: Redis,
    backend: RedisBackend,
    make_worker: MakeWorker,
    start: Start,
    nothing_declared: None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Results are kept, so Redis is no less full afterwards; a periodic task is due, and cannot be stored."""
    periodic(every(seconds=1), args=["tick"])(tasks.note)
    with options(lease=1.0, max_attempts=2):
        [running] = push(WAIT)
        start(make_worker("other", "default", concurrency=2))
        assert eventually(lambda: backend.queue.get(running).lease_expires_at is not None)
        backend.queue.pause("default")
        number = fill(own)
        own.script_flush()
        before = backend.queue.get(running).lease_expires_at
        assert eventually(lambda: backend.queue.get(running).lease_expires_at > before)

        tasks.gate.set()
        backend.queue.resume("default")
        start(make_worker("default"))
        start(Poller())

        assert eventually(lambda: set(counts()) == {"successful"}, within=60)
        assert counts()["successful"] > number  # and perhaps a tick, when there was room for it
    assert backend.queue.get(running).starts == 1
    assert not is_taken()
    assert "Waiting for Redis" not in caplog.text
