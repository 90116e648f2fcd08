"""What is counted in memory: all of it arrives, whoever counts and whatever becomes of Redis meanwhile."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.test.utils import override_settings
from redis import Redis

from components.embedded import EmbeddedServer
from components.exceptions import CountRefused, InvalidName, InvalidValue, RedisNotPrivate, RedisUnavailable
from components.services.counters import Counter, CounterReader, aflush, buffer, count, flush
from components.services.counters.additions import MAX_COUNT, addition, additions
from components.testing import redis_at
from tests.support.counters import samples_key, seconds
from tests.support.waiting import eventually


def total(name: str = "hits") -> int:
    return Counter(name).get(3_600).total


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is sent but by flush()."""
    monkeypatch.setattr(buffer, "INTERVAL", 3_600.0)


@pytest.fixture
def failing(tmp_path: Path, by_hand: None) -> Iterator[EmbeddedServer]:
    """A server of its own, which can be killed."""
    with EmbeddedServer(tmp_path / "redis", appendfsync="always") as server, redis_at(server.url):
        yield server


@pytest.mark.usefixtures("by_hand")
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


@pytest.mark.usefixtures("by_hand")
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


@pytest.mark.usefixtures("by_hand")
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


@pytest.mark.usefixtures("by_hand")
def test_callers_do_not_wait_for_the_holder_of_the_buffer(redis: Redis) -> None:
    with buffer._buffer.guard:
        count("hits", 5)
    flush()

    assert total() == 5


@pytest.mark.usefixtures("by_hand")
def test_a_buffer_that_is_never_let_go_loses_nothing(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the handler of a signal had raised an exception just when the buffer was taken."""
    monkeypatch.setattr(buffer, "_LONGEST_HOLD", 0.01)
    count("hits", 2)
    buffer._buffer.guard.acquire()
    count("hits", 3)
    flush()
    count("hits", 4)
    assert buffer._buffer.counts == {"hits": 4}
    flush()

    assert total() == 9


@pytest.mark.usefixtures("by_hand")
def test_an_uncountable_value_is_reported_at_once(redis: Redis) -> None:
    names: list[Any] = ["", "x" * 501, None, 7, b"hits", ["hits"], "\ud800"]
    numbers: list[Any] = [True, 1.0, float("nan"), "1", None, MAX_COUNT + 1, -MAX_COUNT - 1]
    for name in names:
        with pytest.raises(InvalidName):
            count(name)
        with buffer._buffer.guard, pytest.raises(InvalidName):
            count(name)
    for number in numbers:
        with pytest.raises(InvalidValue):
            count("hits", number)
    flush()

    assert CounterReader().count() == 0


@pytest.mark.usefixtures("by_hand")
def test_more_than_can_be_sent_stays_at_the_largest_number(redis: Redis) -> None:
    for _ in range(1_100):  # together more than Redis can add
        count("hits", MAX_COUNT)
    flush()

    assert total() == MAX_COUNT


@pytest.mark.usefixtures("by_hand")
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


def test_while_redis_is_away_counts_are_kept(
    failing: EmbeddedServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    count("hits")
    asyncio.run(aflush())
    failing.kill()
    for _ in range(3):
        count("hits", 10)
        with pytest.raises(RedisUnavailable):
            flush()
    failing.start()
    flush()

    assert total() == 31


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


@pytest.mark.usefixtures("by_hand")
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


@pytest.mark.usefixtures("by_hand")
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


@pytest.mark.usefixtures("by_hand")
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


@pytest.mark.usefixtures("by_hand")
def test_a_forked_child_begins_with_nothing(redis: Redis) -> None:
    count("hits", 10)
    mine = addition("00", [])
    mine.is_over()
    pid = os.fork()
    if not pid:
        is_empty = not buffer._buffer.counts and addition("00", []).source.id != mine.source.id
        os._exit(0 if is_empty else 1)
    _pid, status = os.waitpid(pid, 0)
    flush()

    assert os.waitstatus_to_exitcode(status) == 0
    assert total() == 10
