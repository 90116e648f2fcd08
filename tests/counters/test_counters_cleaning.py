"""What does not belong to counters goes, and what has no end gets one; all else stays."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test.utils import override_settings
from redis import Redis

from components.kit.keyspace import bucket
from components.services.counters import Cleaned, Counter, Mark, Marks, clean, marks
from components.services.counters.keys import CounterKeys
from components.services.counters.precisions import plan
from components.services.locks import lock
from tests.support.counters import samples_key, seconds
from tests.support.snapshots import snapshot

NAMES = [f"hits:/{number}" for number in range(30)]


def test_a_record_without_expiry_gets_back_the_one_it_had(redis: Redis) -> None:
    for name in NAMES:
        Counter(name).update()
    before = {key: redis.ttl(key) for key in redis.keys("*")}
    for key in before:
        redis.persist(key)

    done = clean()

    assert done == Cleaned(looked=len(before), mended=len(before))
    assert all(abs(redis.ttl(key) - ttl) <= 60 for key, ttl in before.items())
    assert clean() == Cleaned(looked=len(before))


def test_finished_listings_are_removed(redis: Redis) -> None:
    now = seconds(redis)
    for precision, kept in plan().kept.items():
        redis.hset(samples_key("hits", precision, now - kept - 121 * precision), "0", "1")
        redis.hset(samples_key("hits", precision, now), "0", "1")

    assert clean() == Cleaned(looked=6, removed=3, mended=3)
    assert len(redis.keys("*")) == 3


def test_keys_that_are_not_counters_are_removed(redis: Redis) -> None:
    tag = bucket("hits")
    wrong = [
        f"{CounterKeys(tag).samples}:hits",
        f"{CounterKeys(tag).samples}:hits/1:{10**30}",
        f"{CounterKeys(tag).names}-of-old",
        f"{CounterKeys(tag).samples}:wrong/60:{seconds(redis) // 7_200}",
    ]
    for key in wrong:
        redis.set(key, "something else")

    assert clean() == Cleaned(looked=4, removed=4)
    assert redis.keys("*") == []


@pytest.mark.parametrize(
    "prefix", ["other", "components:counters", "c*", "c?mponents", "[c]omponents", "c\\"]
)
def test_nothing_else_is_touched(redis: Redis, prefix: str) -> None:
    redis.set("components:counters", "of somebody else")
    redis.set("components:counters:hits", "of somebody else")
    with lock("hits", timeout=60):
        Counter("hits").update()
        for key in redis.keys("*"):
            redis.persist(key)
        before = snapshot(redis)
        with override_settings(COMPONENTS={"PREFIX": prefix}):
            Counter("hits").update()
            mine = len(redis.keys("*")) - len(before)
            done = clean()
        after = snapshot(redis)

    assert done.looked == mine
    assert {key: after[key] for key in before} == before


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
