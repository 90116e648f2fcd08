"""What does not belong to counters goes, and what has no end gets one; all else stays."""

from __future__ import annotations

import pytest
from django.test.utils import override_settings
from redis import Redis

from components.kit.keyspace import bucket
from components.services.counters import Cleaned, Counter, CounterReader, clean
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


def test_an_end_that_is_too_far_is_drawn_nearer(redis: Redis) -> None:
    """As after COUNTER_SAMPLES was made smaller."""
    with override_settings(COMPONENTS={"COUNTER_SAMPLES": 5_000}):
        Counter("hits").update()
    with override_settings(COMPONENTS={"COUNTER_SAMPLES": 10}):
        clean()
        bounds = sorted(plan().longest_ttl(each) for each in plan().kept)

    found = sorted(redis.ttl(key) for key in redis.keys("*:samples:*"))
    assert all(0 < ttl <= bound for ttl, bound in zip(found, bounds, strict=True))


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


def test_names_of_which_nothing_is_kept_go(redis: Redis) -> None:
    for name in NAMES:
        Counter(name).update()
    for key in redis.keys("*:names") + redis.keys("*:names:*"):
        for name in redis.zrange(key, 0, -1):
            if name != b"hits:/7":
                redis.zincrby(key, -(plan().kept[3_600] + 1) * 1_000_000, name)

    clean()

    assert [info.name for info in CounterReader().page()] == ["hits:/7"]
    assert CounterReader().count("hits") == 1


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
