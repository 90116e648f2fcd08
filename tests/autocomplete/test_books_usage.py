"""How often books are searched, and how long that takes: counted in each process, told to Redis by a thread of it."""

from __future__ import annotations

import asyncio
import logging
import os
from datetime import UTC, datetime
from threading import Thread

import pytest
from redis import Redis

from components.exceptions import BookNotFound, InvalidPrefix
from components.kit.contracts import record
from components.services.autocomplete import (
    AddressBook,
    AddressBookReader,
    BookUsage,
    SlowSearch,
    keys,
    usage,
)
from components.testing import redis_at

NOBODY = BookUsage(searches=0, per_second=0, mean=None, slowest=[])
MINUTE = 29_000_000  # of some day


@pytest.fixture
def book(redis: Redis) -> AddressBook:
    book = AddressBook("guild:7")
    book.load([(1, "ann smith"), (2, "anna")])
    return book


def counted(name: str = "guild:7") -> BookUsage:
    usage.flush()
    [found] = AddressBookReader().usage([name])
    return found


def at(minute: int) -> datetime:
    return datetime.fromtimestamp(minute * 60, UTC)


def test_searches_are_counted_and_nothing_else(book: AddressBook) -> None:
    book.complete("smi")
    asyncio.run(book.acomplete("an"))
    book.complete("nobody")
    book.select(1)
    book.get(1)
    with pytest.raises(InvalidPrefix):
        book.complete("")
    with pytest.raises(BookNotFound):
        AddressBook("none").complete("a")

    found = counted()

    assert found.searches == 3
    assert 0 < found.per_second <= 3 / 60
    assert found.mean is not None
    assert 0 < found.mean <= found.slowest[0].seconds < 60
    assert found.slowest[0].length in (2, 3, 6)
    assert counted("none") == NOBODY


def test_a_minute_sums_all_processes_and_keeps_the_slowest_search(redis: Redis) -> None:
    AddressBook("guild:7").add("ann", id=1)
    for sent in ([(3, 0.5), (1, 0.25)], [(2, 0.75)], [(9, 0.5)]):  # as three processes would
        for length, seconds in sent:
            usage.note("guild:7", length, seconds)
        usage.flush()

    [raw] = redis.hvals(keys.BookKeys("guild:7").usage)

    assert raw.split()[1:] == [b"4", b"2000000", b"750000", b"2"]
    assert 0 < redis.pttl(keys.BookKeys("guild:7").usage) <= 3_600_000


def test_books_are_told_apart_in_one_answer(book: AddressBook) -> None:
    AddressBook("guild:8").add("bob", id=1)
    for name, times in (("guild:7", 2), ("guild:8", 1)):
        for _each in range(times):
            AddressBook(name).complete("a")
    usage.flush()

    found = AddressBookReader().usage(["guild:8", "none", "guild:7"])

    assert [each.searches for each in found] == [1, 0, 2]
    assert AddressBookReader().usage([]) == []


def test_a_minute_of_an_hour_ago_does_not_count_and_makes_room(redis: Redis, book: AddressBook) -> None:
    now = redis.time()[0] // 60
    key = keys.BookKeys("guild:7").usage
    redis.hset(
        key, mapping={str(minute % 60): f"{minute - 60} 5 5000000 1000000 1" for minute in (now, now - 1)}
    )
    assert counted() == NOBODY

    book.complete("an")

    assert counted().searches == 1


def test_the_figures_are_those_of_an_hour_and_the_rate_that_of_one_to_two_minutes() -> None:
    minutes = [
        f"{MINUTE - 60} 100 1 1 1",  # an hour ago
        f"{MINUTE - 59} 10 1000000 600000 4",
        f"{MINUTE - 1} 60 1000000 900000 1",
        f"{MINUTE} 30 500000 20000 2",
    ]

    found = usage._usage(MINUTE * 60 + 30, map(record("autocomplete", "minute").read, minutes))

    assert (found.searches, found.per_second, found.mean) == (100, 1, 0.025)
    assert found.slowest == [
        SlowSearch(at(MINUTE - 1), 0.9, 1),
        SlowSearch(at(MINUTE - 59), 0.6, 4),
        SlowSearch(at(MINUTE), 0.02, 2),
    ]


def test_a_book_that_was_removed_is_not_counted_and_leaves_nothing(redis: Redis, book: AddressBook) -> None:
    book.complete("an")
    usage.flush()
    book.complete("an")

    book.erase()

    assert counted() == NOBODY
    assert redis.exists(keys.BookKeys("guild:7").usage) == 0


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Thread]:
    """The threads that tell Redis, of a process that has not searched before."""
    threads: list[Thread] = []
    start = Thread.start

    def noted(thread: Thread) -> None:
        if thread.name == "searches":
            threads.append(thread)
        start(thread)

    monkeypatch.setattr(usage._process, "searches", usage._Searches())
    monkeypatch.setattr(Thread, "start", noted)
    return threads


def test_a_thread_tells_redis_and_ends_when_nobody_searches(
    book: AddressBook, started: list[Thread], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage, "_PACE", 0.01)

    for times in (1, 2):
        book.complete("an")
        assert len(started) == times
        started[-1].join(20)
        assert not started[-1].is_alive()
        assert AddressBookReader().usage(["guild:7"])[0].searches == times


def test_a_search_succeeds_where_no_thread_can_be_started_and_is_counted_later(
    book: AddressBook, started: list[Thread], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(thread: Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(Thread, "start", full)
        assert book.complete("an")
    book.complete("an")

    assert len(started) == 1
    assert counted().searches == 2


def test_counts_that_redis_refuses_are_lost_and_logged_once(
    book: AddressBook, caplog: pytest.LogCaptureFixture
) -> None:
    with redis_at("unix:///nowhere/at/all"), caplog.at_level(logging.WARNING, usage.__name__):
        for _again in range(2):
            usage.note("guild:7", 2, 0.1)
            usage.flush()
    [record] = caplog.records
    assert record.getMessage().startswith(
        "Redis did not store the counts of searches in address books. They are lost: "
    )

    book.complete("an")

    assert counted().searches == 1


def test_a_forked_child_sends_what_is_its_own(book: AddressBook, started: list[Thread]) -> None:
    book.complete("an")
    assert len(started) == 1

    pid = os.fork()
    if not pid:
        book.complete("sm")
        usage.flush()
        os._exit(0 if len(started) == 2 else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert counted().searches == 2


def test_searches_on_a_server_that_is_gone_are_reported_to_no_other(redis: Redis, book: AddressBook) -> None:
    with redis_at("unix:///nowhere/at/all"):
        usage.note("guild:7", 2, 0.1)

    assert counted() == NOBODY
