"""What is counted in memory: all of it arrives, whoever counts and whatever becomes of Redis meanwhile."""

import asyncio
import itertools
import logging
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.test.utils import override_settings
from redis import Redis

from components.embedded import EmbeddedServer
from components.exceptions import CountRefused, RedisNotPrivate, RedisUnavailable
from components.kit.client import get_client
from components.kit.keyspace import bucket
from components.kit.scripts import Call, Script
from components.kit.sync_async import at_once
from components.services.counters import (
    Counter,
    CounterReader,
    buffer,
    count,
    cumulated,
    flush,
    forget,
    measuring,
    observe,
    read_sums,
    sum_up,
    sums_key,
    tally,
)
from components.services.counters.additions import ADD, MAX_COUNT, SUM, Sum, addition, additions
from components.services.counters.keys import CounterKeys, SourceKeys
from components.testing import empty, redis_at
from tests.support.counters import samples_key, seconds, stored
from tests.support.forks import fork_in_c
from tests.support.masters import Master, three_masters
from tests.support.proxy import LossyProxy
from tests.support.restricted import operator
from tests.support.snapshots import snapshot
from tests.support.waiting import eventually


def total(name: str = "hits") -> int:
    return Counter(name).get(3_600).total


@pytest.fixture(autouse=True)
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is sent but by flush()."""
    monkeypatch.setattr(buffer, "INTERVAL", 3_600.0)


@pytest.fixture
def failing(tmp_path: Path) -> Iterator[EmbeddedServer]:
    """A server of its own, which can be killed."""
    with EmbeddedServer(tmp_path / "redis", appendfsync="always") as server, redis_at(server.url):
        yield server


def test_counts_are_added_up_and_sent_together(redis: Redis) -> None:
    for _ in range(1_000):
        Counter("hits").count()
        count("hits", 2)
        count("others", 3)
    assert CounterReader().count() == 0
    redis.config_resetstat()

    flush()

    assert (total(), total("others")) == (3_000, 3_000)
    assert redis.info("commandstats")["cmdstat_hincrby"]["calls"] == 6


def test_counts_are_sent_by_themselves(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffer, "INTERVAL", 0.05)
    for number in range(3):
        count("hits")
        assert eventually(lambda expected=number + 1: total() == expected)  # type: ignore[misc]


def test_threads_lose_nothing(redis: Redis) -> None:
    def work(number: int) -> None:
        for _ in range(10_000):
            count("hits")
            count(f"hits:{number % 3}")

    with ThreadPoolExecutor(8) as pool:
        done = [pool.submit(work, number) for number in range(8)]
        while not all(each.done() for each in done):
            flush()
        for each in done:
            each.result()
    flush()

    assert total() == 80_000
    assert sum(total(f"hits:{number}") for number in range(3)) == 80_000


def test_an_interrupted_count_loses_nothing(redis: Redis) -> None:
    """A handler of a signal counts, also while the thread that it interrupts holds the buffer."""
    numbers, handled = itertools.count(), list[int]()

    def handle(number: int, frame: object) -> None:
        mine = next(numbers)  # another signal may come at any place
        count("hits")
        count(f"hits:{mine}")
        handled.append(mine)

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        own = 0
        while len(handled) < 200:
            count("hits")
            own += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    flush()

    assert total() == own + len(handled)
    assert CounterReader().count("hits") == len(handled)


def test_a_buffer_that_is_never_let_go_loses_nothing(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the handler of a signal had raised an exception just when the buffer was taken. Nobody waits."""
    monkeypatch.setattr(buffer, "_LONGEST_HOLD", 0.01)
    count("hits", 2)
    buffer._buffer.guard.acquire()
    count("hits", 3)
    flush()
    count("hits", 4)
    assert buffer._buffer.counts == {"hits": 4}
    flush()

    assert total() == 9


def test_more_than_can_be_sent_stays_at_the_largest_number(redis: Redis) -> None:
    for _ in range(1_100):  # together more than Redis can add
        count("hits", MAX_COUNT)
    flush()

    assert total() == MAX_COUNT


def test_the_names_in_memory_are_bounded(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffer, "MAX_NAMES", 10)
    for number in range(25):
        count(f"hits:{number}", 2)
    count("hits:3", 2)
    count("pay-us:card", 5_000_000)
    flush()

    assert CounterReader().count("hits") == 10
    assert (total("hits:3"), total(buffer.DROPPED)) == (4, 30)
    assert total(buffer.DROPPED_TIME) == 5_000_000


def test_an_outage_is_told_once_and_counted(
    failing: EmbeddedServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, buffer.logger.name)
    failing.kill()
    monkeypatch.setattr(buffer, "INTERVAL", 0.01)
    count("hits")
    assert eventually(lambda: caplog.messages)
    failing.start()
    assert eventually(lambda: len(caplog.messages) > 1)

    assert eventually(lambda: total(buffer.OUTAGES) == 1)
    assert total() == 1
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


def test_a_call_that_nobody_answered_for_long_is_dropped_and_told(
    failing: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Redis may have counted it, and forgotten that."""
    failing.kill()
    count("hits", 10)
    with pytest.raises(RedisUnavailable):
        flush()
    monkeypatch.setattr(buffer, "clock", lambda before=buffer.clock: before() + buffer.PATIENCE + 1)
    count("hits")
    failing.start()
    flush()

    assert (total(), total(buffer.DROPPED)) == (1, 10)


def test_refused_counts_are_dropped_and_the_rest_is_counted(
    redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    now = seconds(redis)
    for second in range(now, now + 20):
        redis.set(samples_key("wrong", 1, second), "not a hash")
    count("wrong", 7)
    count("hits")
    flush()
    flush()

    assert (total(), total(buffer.DROPPED)) == (1, 7)
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    with pytest.raises(CountRefused):
        Counter("wrong").update()
    with pytest.raises(CountRefused):
        asyncio.run(Counter("wrong").aupdate())


def test_what_is_lost_at_the_end_of_a_process_is_told_once(
    redis: Redis, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the thread were sending, and had no answer."""
    monkeypatch.setattr(buffer, "_LAST_WAIT", 0.01)
    buffer._buffer._unanswered = additions({"pay:card": 2, "pay-us:card": 4_000_000})
    count("pay:card")
    count("pay:cash", -2)
    count("pay-us:card", 1_000_000)
    with buffer._buffer._sending:
        buffer.finish()

    buffer.finish()  # nothing is left

    [told] = caplog.messages
    assert "5 counts are lost, and 5 s" in told


def test_a_test_without_a_redis_keeps_no_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: buffer.Buffer) -> None:
        raise RedisNotPrivate

    monkeypatch.setattr(buffer.Buffer, "_flush", refuse)
    buffer._buffer._unanswered = additions({"others": 1})
    count("hits")

    assert buffer._buffer._try_flush()
    assert not buffer._buffer.counts
    assert not buffer._buffer._unanswered


@override_settings(COMPONENTS={"CACHE": "nowhere"})
def test_wrong_settings_harm_nobody_who_counts(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buffer, "INTERVAL", 0.01)
    count("hits")
    assert eventually(lambda: caplog.messages)
    count("hits")

    assert len(caplog.messages) == 1
    buffer.forget()


@pytest.mark.parametrize("fork", [os.fork, fork_in_c], ids=["Python", "C"])
def test_a_forked_child_begins_with_nothing(
    redis: Redis, monkeypatch: pytest.MonkeyPatch, fork: Callable[[], int]
) -> None:
    monkeypatch.setattr(buffer, "FORKS_IN_C", True)
    monkeypatch.setattr(
        buffer.Buffer, "_start", lambda self: None
    )  # a fork of C may leave no room for a thread
    count("hits", 10)
    mine = addition("00", [])
    mine.is_over()
    pid = fork()
    if not pid:
        count("hits")
        is_new = buffer._buffer.counts == {"hits": 1} and addition("00", []).source.id != mine.source.id
        os._exit(0 if is_new else 1)
    _pid, status = os.waitpid(pid, 0)
    flush()

    assert os.waitstatus_to_exitcode(status) == 0
    assert total() == 10


@pytest.fixture
def proxy(redis_server: EmbeddedServer) -> Iterator[LossyProxy]:
    with LossyProxy(redis_server) as proxy, empty(redis_server):
        yield proxy


def total_of(names: list[str]) -> int:
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
        assert total_of(names[:1_000]) == len(names)
        assert stored(operator(), names[0]) == {1: 1, 60: 1, 3_600: 1}


def test_a_call_that_comes_too_late_counts_no_more(redis: Redis) -> None:
    """It was given up, and others of its source came before it arrived; then the last of those comes again."""
    tag = bucket("hits")
    first = addition(tag, [("hits", 1)])
    first.is_over()
    second = addition(tag, [("hits", 10)])

    for call in (second, first, second, first):
        keys, args = call.call
        at_once(ADD.acall(redis, keys=keys, args=args))

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
    answers = [at_once(ADD.acall(redis, keys=keys, args=args))]
    before = snapshot(redis)

    answers += [at_once(ADD.acall(redis, keys=keys, args=args)) for _ in range(2)]
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


METRICS = override_settings(COMPONENTS={"METRICS": True})


def sums(redis: Redis) -> dict[str, dict[str, Sum]]:
    flush()
    return read_sums(redis.hgetall(sums_key()))


@METRICS
def test_events_are_summed_up_by_what_they_were_of(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffer, "MAX_NAMES", 0)  # sums are few, so they have room though counters have none
    tally("tasks:enqueued", 2, of="mail")
    tally("tasks:enqueued", of="mail")
    tally("tasks:enqueued", of="a name with blanks")
    tally("locks:acquired")

    found = sums(redis)

    assert found["tasks:enqueued"] == {"mail": Sum(3), "a name with blanks": Sum(1)}
    assert found["locks:acquired"] == {"": Sum(1)}


@METRICS
def test_durations_are_a_histogram(redis: Redis) -> None:
    for took in (0.005, 0.02, 3_600.0, 0.02):
        observe("tasks:run", took, of="shop.pay")

    found = sums(redis)["tasks:run"]["shop.pay"]

    assert found.buckets == {"0.005": 1, "0.025": 2, "+Inf": 1}
    assert found.seconds == pytest.approx(3_600.045)
    bounds = dict(cumulated(found.buckets))
    assert (bounds["0.005"], bounds["0.025"], bounds["1800"], bounds["+Inf"]) == (1, 3, 3, 4)


@METRICS
def test_names_beyond_a_limit_are_summed_up_together(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "_names", {})
    for number in range(250):
        sum_up("tasks:enqueued", of=f"queue-{number}")

    found = sums(redis)["tasks:enqueued"]

    assert len(found) == 201
    assert found["others"].count == 50


@METRICS
def test_sums_that_redis_refuses_hold_no_counts_back(redis: Redis) -> None:
    redis.set(sums_key(), "something else")
    sum_up("chat:sent")
    count("hits")
    flush()

    assert total() == 1


def test_nothing_is_added_unless_the_setting_says_so(redis: Redis) -> None:
    tally("tasks:enqueued", of="mail")
    observe("tasks:run", 1.0)
    sum_up("chat:sent")

    assert sums(redis) == {}
    assert redis.keys("*") == []


@METRICS
def test_a_call_without_an_answer_counts_once(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = type(SUM).aoutcomes

    async def send_and_lose(self: Script, client: Redis, calls: Sequence[Call]) -> list[Any]:
        await outcomes(self, client, calls)
        return [RedisUnavailable("The reply was lost.")] * len(calls)

    sum_up("chat:sent", 2)
    with monkeypatch.context() as patch:
        patch.setattr(type(SUM), "aoutcomes", send_and_lose)
        with pytest.raises(RedisUnavailable):
            flush()
    sum_up("chat:sent", 3)

    assert sums(redis)["chat:sent"][""].count == 5


NAMES = [f"page:{number}" for number in range(24)]


@pytest.fixture
def nodes(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[Master]]:
    monkeypatch.setattr(buffer, "INTERVAL", 3_600.0)  # nothing is sent but by flush()
    with three_masters(tmp_path, request.config.getoption("--redis-server")) as nodes:
        yield nodes


def names_of(node: Master) -> list[str]:
    return [name for name in NAMES if node.has(CounterKeys(bucket(name)).names)]


def count_all(times: int) -> None:
    for name in NAMES:
        count(name, times)


def totals(names: list[str]) -> set[int]:
    return {Counter(name).get(3_600).total for name in names}


@pytest.mark.slow
def test_a_dead_node_delays_no_result_of_the_others(nodes: list[Master]) -> None:
    dead = nodes[1]
    lost, there = names_of(dead), [name for node in (nodes[0], nodes[2]) for name in names_of(node)]
    assert lost
    assert there
    count_all(1)
    flush()

    dead.kill()
    for done in (2, 3, 4):
        count_all(1)
        with pytest.raises(RedisUnavailable):
            flush()
        assert totals(there) == {done}

    dead.start()
    assert eventually(lambda: get_client().cluster_info()["cluster_state"] == "ok", within=60)  # type: ignore[no-untyped-call]
    assert eventually(flushes, within=60)
    assert totals(there) == {4}
    assert totals(lost) == {3}  # the first of all is gone with the node's memory
    assert not buffer._buffer.counts.keys() & set(NAMES)


def flushes() -> bool:
    try:
        flush()
    except RedisUnavailable:
        return False
    return True
