"""Marks: instants with a name, which charts show."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from redis import Redis

from components.exceptions import InvalidName, InvalidValue
from components.services.counters import Counter, CounterReader, Mark, Marks, clean, marks


def now() -> datetime:
    return datetime.now(UTC)


def test_a_mark_is_found_between_two_instants(redis: Redis) -> None:
    ago = now() - timedelta(hours=2)
    first = Marks().add("version 1", ago)
    second = Marks().add("version 2")

    assert first == Mark("version 1", first.at)
    assert abs(first.at - ago) < timedelta(milliseconds=1)
    assert Marks().between(ago - timedelta(minutes=1), now() + timedelta(minutes=1)) == [first, second]
    assert Marks().between(ago + timedelta(minutes=1), now() + timedelta(minutes=1)) == [second]


def test_counters_are_read_with_the_marks_of_their_time(redis: Redis) -> None:
    for name in ("hits", "hits:/a", "misses"):
        Counter(name).update(3)
    Marks().add("yesterday", now() - timedelta(days=1))
    mark = Marks().add("version 1")

    found, marked = CounterReader().read_marked(["hits", "hits:/a", "misses"], 60)

    assert found == CounterReader().read(["hits", "hits:/a", "misses"], 60, fill=None)
    assert marked == [mark]


def test_the_same_name_may_be_marked_again(redis: Redis) -> None:
    for _ in range(2):
        Marks().add("restart")

    assert len(Marks().between(now() - timedelta(minutes=1), now() + timedelta(minutes=1))) == 2


def test_marks_are_bounded_and_end_by_themselves(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marks, "_MOST", 3)
    Marks().add("of long ago", now() - timedelta(days=400))
    for number in range(5):
        Marks().add(f"version {number}")

    [key] = redis.keys("*:marks")
    assert redis.zcard(key) == 3
    assert 0 < redis.ttl(key) <= 120 * 86_400
    redis.persist(key)
    assert clean().mended == 1


def test_wrong_marks_are_refused(redis: Redis) -> None:
    with pytest.raises(InvalidName):
        Marks().add("")
    with pytest.raises(InvalidValue):
        Marks().add("version 1", datetime(2026, 1, 1))


def test_the_command_sets_a_mark(redis: Redis) -> None:
    told = StringIO()
    call_command("mark", "version 1.2", stdout=told)
    call_command("mark", "version 1.1", "--at", f"{now() - timedelta(hours=1):%Y-%m-%dT%H:%MZ}", stdout=told)

    found = Marks().between(now() - timedelta(hours=2), now() + timedelta(minutes=1))
    assert [each.name for each in found] == ["version 1.1", "version 1.2"]
    assert "Marked version 1.2 at 20" in told.getvalue()
    for wrong in (["x" * 501], ["version", "--at", "yesterday"]):
        with pytest.raises(CommandError):
            call_command("mark", *wrong)
