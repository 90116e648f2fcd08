"""Workers of logs: each line counts once, whatever befalls the worker, its callbacks or Redis."""

import logging
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from components.exceptions import AggregationNotFound, RedisUnavailable, WorkersDiffer
from components.kit.scripts import Script
from components.services.logs import Aggregation, Consumer
from components.services.logs.lines import Columns
from components.services.logs.traffic import Traffic
from components.services.logs.traffic.place_counter import PlaceCounter
from components.services.logs.worker.log_worker import LogWorker
from components.workers.signals import Killed
from tests.support.counting_logs import DAY, LINES, TABLES, hand_out, import_places_into, lines, worker
from tests.support.logs import let_leases_pass, stream
from tests.support.waiting import eventually

Patch, Log = pytest.MonkeyPatch, pytest.LogCaptureFixture

pytestmark = pytest.mark.usefixtures("redis")


@pytest.fixture(autouse=True)
def _prepared(redis: Redis, tmp_path: Path, caplog: Log) -> Iterator[None]:
    import_places_into(tmp_path)
    with caplog.at_level(logging.INFO, "components"):
        yield


class Events:
    """Counts lines by what follows their time."""

    def __init__(self) -> None:
        self.sums: Counter[str] = Counter()

    def block(self, columns: Columns) -> None:
        for line in columns:
            self.sums[line.rest.decode().split()[1]] += 1

    def flush(self) -> Mapping[str, Mapping[str, int]]:
        sums, self.sums = self.sums, Counter()
        return {"events": sums}


@contextmanager
def running(counting: LogWorker) -> Iterator[None]:
    """A worker at work in a thread, until the end of the block."""
    thread = threading.Thread(target=counting.run)
    thread.start()
    yield
    counting.stop()
    thread.join(20)
    assert not thread.is_alive()


def tables_of_places() -> dict[str, dict[str, int]]:
    return {name: Aggregation("places").table(name) for name in TABLES}


@pytest.mark.parametrize("level", ["country", "region", "city"])
def test_lines_are_counted_by_day_and_place_to_the_level_that_is_asked_for(level: str) -> None:
    hand_out(LINES, lines("1.0.0.1", day="2011-10-11"))
    assert worker(level=level).run() == 0
    known = {each: number for number, each in enumerate(TABLES)}
    last = known[f"daily:{level}:{DAY}"]
    assert tables_of_places() == {name: TABLES[name] if known[name] <= last else {} for name in TABLES}
    assert [(each.day.isoformat(), each.lines) for each in Traffic().days()] == [(DAY, 6), ("2011-10-11", 1)]
    assert Traffic().totals() == {"lines": 7, "counted": 7}
    assert stream().status().chunks == 0


def test_lines_that_do_not_count_are_counted_too_and_shown() -> None:
    tomorrow = datetime.now(UTC).date() + timedelta(1)
    bad = [b"junk\n", b"\n", b"1.2.3 2011-10-10 x\n", b"1.2.3.4 2011-02-30 x\n", b"\xff\0 2011-10-10 x\n"]
    odd = [lines("1.0.0.1", day="0001-01-01"), lines("1.0.0.1", day="9999-12-31")]
    hand_out(LINES, lines("1.0.0.1") + b"".join(bad + odd) + lines("1.0.0.1", day=tomorrow.isoformat()))

    worker().run()

    assert Traffic().totals() == {
        "lines": 15, "counted": 8, "format": 1, "empty": 1, "address": 2, "date": 1, "late": 1, "future": 1
    }  # fmt: skip
    samples = [sample for sample, _at in Aggregation("places").samples()]
    assert {(each.line, each.reason, each.head[:10]) for each in samples} == {
        *((8, "format", "junk"), (9, "empty", ""), (10, "address", "1.2.3 2011"), (11, "date", "1.2.3.4 20")),
        *((12, "address", "\\xff\0 2011"), (13, "late", "1.0.0.1 00"), (14, "future", "1.0.0.1 99")),
    }
    [junk] = [each for each in samples if each.reason == "format"]
    assert (junk.file, junk.byte) == ("access.log", len(LINES) + len(lines("1.0.0.1")))


@pytest.mark.parametrize(
    ("beat_at", "said"), [(0.0, "The lease of 1 chunks was over"), (1e12, "1 of 2 chunks are no longer held")]
)
def test_chunks_that_were_lost_count_once(redis: Redis, caplog: Log, beat_at: float, said: str) -> None:
    """A worker is stopped beyond its lease between two chunks; another takes both over and counts one of them."""
    hand_out(LINES, LINES)
    ours = Aggregation("places")
    other = ours.consumer()

    class Stopping(PlaceCounter):
        stops = True

        def block(self, columns: Columns) -> None:
            super().block(columns)
            if Stopping.stops:
                Stopping.stops = False
                let_leases_pass(redis, ours)
                other.flush(other.claim(1), {"days": {DAY: 6}, f"daily:city:{DAY}": {"unknown": 6}})

    slow = worker(lambda: Stopping(kernel="naive"))
    slow._limit, slow._renew_at = 2, beat_at
    slow.run()

    assert ours.table("days") == {DAY: 12}
    assert ours.table(f"daily:city:{DAY}")["US/CA/Palo Alto"] == 2
    assert said in caplog.text


def test_a_flush_whose_answer_was_lost_is_sent_again(monkeypatch: Patch, caplog: Log) -> None:
    hand_out(LINES)
    counting = worker()
    run, errors = Consumer._run, [RedisUnavailable("No answer.")]

    def lossy(self: Consumer, script: Script, **args: Any) -> Any:
        answer = run(self, script, **args)
        while errors and script.name == "logs/flush":
            raise errors.pop()
        return answer

    monkeypatch.setattr(Consumer, "_run", lossy)
    counting.run()

    assert tables_of_places() == TABLES
    assert not errors
    assert "Redis answers again" in caplog.text


def test_a_chunk_that_cannot_be_counted_spoils_no_other(redis: Redis, caplog: Log) -> None:
    _good, bad, _other = hand_out(lines("1.0.0.1"), lines("6.6.6.6"), lines("1.0.0.2"))
    aggregation = Aggregation("events", tries=2)

    class Picky(Events):
        def block(self, columns: Columns) -> None:
            super().block(columns)
            if b"6.6.6.6" in columns.data:
                let_leases_pass(redis, aggregation, [bad])
                raise ValueError("What is this?")

    counting = worker(Picky, name="events", tries=2)
    counting._limit = 3
    counting.run()

    assert aggregation.table("events") == {"achievement-762": 2}
    assert [chunk for chunk, _at in aggregation.dead()] == [bad]
    for number in (1, 2):
        said = f"Chunk {bad} cannot be counted (access.log, from line 2 on, try {number} of 2)"
        assert caplog.text.count(said) == 1
    assert "What is this?" in caplog.text


def test_callbacks_count_side_by_side_with_places() -> None:
    for name in ("places", "events"):
        Aggregation(name).join()
    hand_out(LINES, LINES)

    for number, each in enumerate((worker(Events, Events, name="events"), worker())):
        each.run()
        assert stream().status().chunks == (2, 0)[number]

    assert Aggregation("events").table("events") == {"achievement-762": 24}  # of two that add to one table
    assert Aggregation("events").table("totals:events") == {"lines": 12, "counted": 12}
    assert Aggregation("places").table("days") == {DAY: 12}


def test_another_geo_table_is_taken_between_two_blocks(tmp_path: Path, monkeypatch: Patch) -> None:
    hand_out(LINES, LINES)

    class Moving(PlaceCounter):
        def block(self, columns: Columns) -> None:
            super().block(columns)
            import_places_into(tmp_path, {"1.0.0.0/8": NOWHERE})
            self._kept._look_at = 0.0

    monkeypatch.setattr("components.services.geo.lookups.INTERVAL", 1_000)
    counting = worker(lambda: Moving(kernel="naive"))
    counting._limit = 2
    counting.run()

    found = Aggregation("places").table(f"daily:country:{DAY}")
    assert found == {"US": 3, "DE": 2, "unknown": 1 + 4, "FR": 2}


NOWHERE = {"country": {"iso_code": "FR", "names": {"en": "France"}}}


def test_workers_that_would_count_otherwise_are_refused() -> None:
    with running(worker(drains=False, about=("book", "city"))):
        assert eventually(lambda: Aggregation("places").workers())
        with pytest.raises(WorkersDiffer, match=r"\(book, city\) than this one \(book, country\)"):
            worker(about=("book", "country")).run()
        assert worker(about=("book", "city"), drains=True).run() == 0


def test_a_worker_that_is_stopped_flushes_what_it_has_counted() -> None:
    hand_out(*[LINES] * 4)

    class Stopping(Events):
        def block(self, columns: Columns) -> None:
            super().block(columns)
            stopped.stop()

    stopped = worker(Stopping, name="events", drains=False)
    stopped._limit = 4
    assert stopped.run() == 0
    assert Aggregation("events").table("events") == {"achievement-762": 6}
    assert [each.tries for each in Aggregation("events").consumer().claim(9)] == [1, 1, 1]


def test_a_worker_that_must_end_at_once_leaves_its_chunks_to_others() -> None:
    hand_out(*[LINES] * 2)
    begun: list[Columns] = []

    class Killing(Events):
        def block(self, columns: Columns) -> None:
            begun.append(columns)
            if len(begun) == 2:
                raise Killed
            super().block(columns)

    killed = worker(Killing, name="events", drains=False)
    killed._limit = 2
    killed.run()

    assert Aggregation("events").table("events") == {}
    assert stream().status().chunks == len(begun) == 2


def test_a_quiet_worker_claims_nothing(monkeypatch: Patch) -> None:
    monkeypatch.setattr("components.services.logs.worker.log_worker._NAP", 0.01)
    counting, steps = worker(drains=False), []
    tick = counting.tick
    monkeypatch.setattr(counting, "tick", lambda: (steps.append(1), tick())[1])
    counting.quiet()
    with running(counting):
        hand_out(LINES)
        begun = len(steps)
        assert eventually(lambda: len(steps) > begun + 2)
    assert stream().status().chunks == 1
    assert Aggregation("places").consumer().claim(2)[0].tries == 1


def test_an_aggregation_that_has_left_has_no_workers() -> None:
    counting = worker(drains=False)
    counting.aggregation.join()
    counting.tick = lambda: counting.aggregation.leave() or type(counting).tick(counting)  # type: ignore[method-assign, func-returns-value]
    with pytest.raises(AggregationNotFound, match="it has left"):
        counting.run()


def test_batches_grow_to_as_many_members_as_a_flush_may_have(monkeypatch: Patch) -> None:
    monkeypatch.setattr("components.services.logs.worker.batch.MEMBERS", 50)
    monkeypatch.setattr("components.services.logs.worker.batch._FIRST", 6)
    monkeypatch.setattr("components.services.logs.worker.log_worker._LATEST", 1_000)
    hand_out(*[LINES] * 40)
    sent: list[tuple[int, int]] = []
    counting = worker()
    flush = counting.consumer.flush

    def note(chunks: Any, tables: Any) -> None:
        sent.append((len(chunks), sum(map(len, tables.values()))))
        flush(chunks, tables)

    monkeypatch.setattr(counting.consumer, "flush", note)
    counting._limit = 40
    counting.run()

    chunks, members = zip(*sent, strict=True)
    assert (sum(chunks), chunks[:3]) == (40, (1, 3, 9))
    assert max(members) <= 50
