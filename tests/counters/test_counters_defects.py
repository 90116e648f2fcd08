"""The defects of the book's counters, each as a sentence that holds here."""

from __future__ import annotations

import re
import threading
import time
from datetime import UTC, datetime

import pytest
from redis import Redis

from components.embedded import EmbeddedServer
from components.kit.keyspace import bucket
from components.services.counters import Counter, CounterReader, clean, count, flush
from components.services.counters.keys import CounterKeys
from components.services.counters.precisions import WINDOW, plan
from components.testing import empty, redis_at
from tests.support.counters import count_at, samples_key, seconds, stored
from tests.support.proxy import LossyProxy
from tests.support.restricted import operator


def test_1_a_name_whose_samples_are_lost_goes_all_the_same(redis: Redis) -> None:
    """The book's cleaner never removes one that it finds without samples."""
    Counter("hits").update()
    redis.delete(*redis.keys("*:samples:*"))

    assert 0 < redis.ttl(CounterKeys(bucket("hits")).names) <= plan().kept[plan().coarsest]
    assert Counter("hits").get(60).total == 0
    Counter("hits").update()
    assert [info.name for info in CounterReader().page()] == ["hits"]


@pytest.mark.slow
def test_2_nothing_is_done_from_time_to_time_however_many_names_there_are(redis: Redis) -> None:
    """No thread and no command, but of who counts."""
    for number in range(2_000):
        count(f"hits:{number}")
    flush()
    redis.config_resetstat()

    assert all(redis.ttl(key) > 0 for key in redis.keys("*"))
    assert set(redis.info("commandstats")) <= {
        "cmdstat_keys",
        "cmdstat_ttl",
        "cmdstat_info",
        "cmdstat_config",
        "cmdstat_config|resetstat",
    }


def test_3_two_may_clean_at_once_while_others_count(redis: Redis) -> None:
    """The book's goes through a list by rank, while others change it."""
    stop = threading.Event()

    def clean_again_and_again() -> None:
        while not stop.is_set():
            clean()

    cleaners = [threading.Thread(target=clean_again_and_again) for _ in range(2)]
    for each in cleaners:
        each.start()
    try:
        for number in range(100):
            Counter(f"hits:{number}").update()
    finally:
        stop.set()
        for each in cleaners:
            each.join()

    assert sum(each.count for each in CounterReader().top("hits", 200)) == 100
    assert CounterReader().count("hits") == 100


def test_4_what_is_read_or_dropped_at_once_is_bounded(redis: Redis) -> None:
    """The book reads a whole hash, which grows for as long as its cleaner is away."""
    now = seconds(redis)
    for second in range(now - 3_000, now, 2):
        count_at(redis, "hits", second)

    found = [redis.hlen(key) for key in redis.keys("*:samples:hits/1:*")]

    assert max(found) <= WINDOW
    assert len(found) <= plan().kept[1] // WINDOW + 2


@pytest.fixture
def wrong_clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clocks of this process are an hour off, back and forth."""
    real, offsets = time.time, iter([3_600, -3_600] * 10_000)
    monkeypatch.setattr(time, "time", lambda: real() + next(offsets))


@pytest.mark.usefixtures("wrong_clocks")
def test_5_the_clocks_of_clients_have_no_part_in_it(redis: Redis) -> None:
    before = seconds(redis)
    for _ in range(20):
        Counter("hits").update()
        count("hits")
    flush()
    after = seconds(redis)

    series = Counter("hits").get(60)

    assert stored(redis, "hits") == {1: 40, 60: 40, 3_600: 40}
    slots = {samples_key("hits", 1, second).encode() for second in range(before, after + 1)}
    assert set(redis.keys("*:samples:hits/1:*")) <= slots
    assert datetime.fromtimestamp(before, UTC) <= series.until <= datetime.fromtimestamp(after + 60, UTC)


def test_5b_the_beginning_of_time_is_an_instant(redis: Redis) -> None:
    """The book takes 0 for "now"."""
    with pytest.raises(ValueError, match=re.escape("1970-01-01 00:00:00+00:00 is too long ago")):
        Counter("hits").get(60, since=datetime.fromtimestamp(0, UTC))


def test_6_an_update_is_one_command_and_three_numbers(redis: Redis) -> None:
    """The book sends sixteen commands for each event."""
    Counter("hits").update()
    redis.config_resetstat()
    Counter("hits").update()

    calls = {name: each["calls"] for name, each in redis.info("commandstats").items()}
    assert calls["cmdstat_evalsha"] == 1
    assert calls["cmdstat_hincrby"] == 3


@pytest.mark.parametrize("silently", [False, True])
def test_7_an_update_whose_reply_is_lost_counts_once(redis_server: EmbeddedServer, silently: bool) -> None:
    """redis-py sends it again by itself, up to ten times, and each counts."""
    with LossyProxy(redis_server) as proxy, empty(redis_server), redis_at(proxy.url, SOCKET_TIMEOUT=0.5):
        Counter("hits").update()
        proxy.lose_replies(to="EVALSHA", silently=silently)
        Counter("hits").update()

        assert proxy.lost == 1
        assert stored(operator(), "hits") == {1: 2, 60: 2, 3_600: 2}
