"""What is sent again counts once: calls of many names too, whichever of their replies was lost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from redis import Redis

from components.embedded import EmbeddedServer
from components.exceptions import RedisUnavailable
from components.kit.keyspace import bucket
from components.services.counters import Counter, CounterReader, count, flush, forget
from components.services.counters.additions import ADD, addition, additions
from components.services.counters.keys import SourceKeys
from components.testing import empty, redis_at
from tests.support.counters import samples_key, seconds, stored
from tests.support.proxy import LossyProxy
from tests.support.restricted import operator
from tests.support.snapshots import snapshot


@pytest.fixture
def proxy(redis_server: EmbeddedServer) -> Iterator[LossyProxy]:
    """To the plain server, which is empty."""
    with LossyProxy(redis_server) as proxy, empty(redis_server):
        yield proxy


def total(names: list[str]) -> int:
    return sum(series.total for series in CounterReader().read(names, 86_400).values())


@pytest.mark.slow
@pytest.mark.parametrize("is_known", [True, False], ids=["known script", "script unknown to the server"])
@pytest.mark.parametrize("times", [1, 5])
def test_a_buffer_whose_replies_were_lost_counts_once(proxy: LossyProxy, times: int, is_known: bool) -> None:
    """
    Calls in one pipeline, of which the server has seen all or some; then singly, twice each; then when it is sent
    the next time.
    """
    names = [f"hits:/{number}" for number in range(1_000)]
    Counter("other").update()
    if not is_known:
        operator().script_flush()
    with redis_at(proxy.url):
        proxy.lose_replies(to="EVALSHA", times=times)
        for name in names:
            count(name)
        for _ in range(times):
            try:
                flush()
                break
            except RedisUnavailable:
                count(names[7])
                names.append(names[7])

        assert proxy.lost
        assert total(names[:1_000]) == len(names)
        assert stored(operator(), names[0]) == {1: 1, 60: 1, 3_600: 1}


def test_a_call_that_comes_too_late_counts_no_more(redis: Redis) -> None:
    """It was given up, and others of its source came before it arrived; then the last of those comes again."""
    tag = bucket("hits")
    first = addition(tag, [("hits", 1)])
    first.is_over()
    second = addition(tag, [("hits", 10)])

    for call in (second, first, second, first):
        keys, args = call.call
        ADD(redis, keys=keys, args=args)

    assert first.source is second.source
    [source] = redis.keys(SourceKeys(tag, "*").source)
    assert 3_590 < redis.ttl(source) <= 3_600
    assert stored(redis, "hits") == {1: 10, 60: 10, 3_600: 10}


def test_a_partly_refused_request_stays_so_and_adds_nothing_more(redis: Redis) -> None:
    """Nobody knows which part of it was done; the next call of its source is one like any other."""
    tag = bucket("hits")
    wrong = next(f"wrong:{number}" for number in range(999) if bucket(f"wrong:{number}") == tag)
    now = seconds(redis)
    for at in range(now, now + 600, 60):
        redis.set(samples_key(wrong, 60, at), "no hash")
    refused = addition(tag, [("hits", 1), (wrong, 1), ("hits", 5)])
    keys, args = refused.call
    answers = [ADD(redis, keys=keys, args=args)]
    before = snapshot(redis)

    answers += [ADD(redis, keys=keys, args=args) for _ in range(2)]
    after = snapshot(redis)
    refused.is_over()
    Counter("hits").update(10)

    assert answers == [0, 0, 0]
    assert after == before
    assert stored(redis, "hits") == {1: 16, 60: 11, 3_600: 10}


def test_memory_grows_with_the_senders_and_not_with_their_messages(redis: Redis) -> None:
    forget()
    for number in range(300):
        Counter("hits").update()
        count(f"hits:/{number % 64}")
        flush()

    assert len(redis.keys("*:source:*")) <= 32
    calls = additions({f"hits:/{number}": 1 for number in range(40_000)})
    assert len({call.source.id for call in calls}) == len(calls) <= 32 * 3
