"""What bounds each key of logs and of tables of addresses, and what ends it."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from redis import Redis

from components.exceptions import LogsFull
from components.services.logs import Aggregation, Copier, LogStream, Problem, Sample, WorkerRecord
from components.services.logs import stream as stream_module
from components.services.logs.keys import JobKeys
from components.services.logs.traffic import Traffic
from tests.support.logs import bytes_in_flight, fill, joined, lines, stream

FIXED = {"state", "stream", "heads", "jobs"}  # of a job: their size does not grow with what it does


def left(redis: Redis) -> dict[str, int]:
    """All keys that have no end, by the last part of their names."""
    return {
        key.decode().partition("}:")[2]: redis.ttl(key) for key in redis.keys("*") if redis.ttl(key) == -1
    }


def work(redis: Redis, name: str, day: str) -> Aggregation:
    """An aggregation that has counted and rejected something, and leaves nothing claimed."""
    aggregation = joined(name)
    consumer = aggregation.consumer()
    consumer.tell(WorkerRecord("host"))
    while chunks := consumer.claim():
        consumer.sample([Sample("date", "a.log", 1, 1, "x")])
        consumer.flush(chunks, {f"daily:country:{day}": {"US": 1}, "days": {day: 1}})
    return aggregation


def test_data_in_flight_goes_when_counted_and_everything_else_ends(redis: Redis) -> None:
    fill(stream(), 5)
    one = work(redis, "one", "2011-10-10")
    Traffic().forget(date(2012, 1, 1))
    redis.zadd(JobKeys("default").seen, dict.fromkeys(redis.zrange(JobKeys("default").seen, 0, -1), 0))
    LogStream().forget(1)
    one.leave()

    assert bytes_in_flight(redis) == 0
    known = set(left(redis))
    assert known - FIXED <= {"files", "room"}  # the file of the test was never seen
    assert redis.llen(JobKeys("default").room) <= 1
    assert redis.xlen(JobKeys("default").stream) == 0


def test_samples_go_with_their_aggregation(redis: Redis) -> None:
    fill(stream(), 1)
    aggregation = work(redis, "one", "2011-10-10")
    for number in range(300):
        aggregation.consumer().sample([Sample("date", "a.log", number, 1, "x")])
    assert redis.zcard(JobKeys("default").samples("one")) == 100

    aggregation.leave()
    aggregation.leave()

    assert not redis.exists(JobKeys("default").samples("one"))


def test_no_more_files_are_known_than_the_most_and_none_is_counted_twice(
    redis: Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_module, "MOST_FILES", 3)
    problems: list[Problem] = []
    copier = Copier(LogStream(), tell=problems.append)
    for number in range(4):
        (tmp_path / str(number)).write_bytes(lines(100 * number, 50))

    outcomes = [copier.copy(tmp_path / str(number)) for number in range(4)]

    assert outcomes == ["copied", "copied", "copied", "failed"]
    assert len(problems) == 1
    with pytest.raises(LogsFull, match="--forget DAYS"):
        LogStream().recognise(b"another\n", "another")
    assert [copier.copy(tmp_path / str(number)) for number in range(3)] == ["known"] * 3
    assert redis.hlen(JobKeys("default").files) == redis.zcard(JobKeys("default").seen) == 3
    redis.zadd(JobKeys("default").seen, {redis.zrange(JobKeys("default").seen, 0, 0)[0]: 1})
    assert LogStream().forget(86_400) == 1
    assert copier.copy(tmp_path / "3") == "copied"


def test_tables_of_callbacks_can_be_dropped(redis: Redis) -> None:
    fill(stream(), 1)
    aggregation = work(redis, "one", "2011-10-10")

    assert aggregation.drop(["daily:country:2011-10-10", "nothing"]) == 1
    assert aggregation.drop([]) == 0
    assert aggregation.table("daily:country:2011-10-10") == {}
    assert aggregation.table("days") == {"2011-10-10": 1}
