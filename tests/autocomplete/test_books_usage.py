"""How often books are searched, and how long that takes: counted in each process, told to Redis by a thread of it."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from threading import Thread
from typing import Any

import pytest
from redis import Redis

from components.exceptions import BookNotFound, InvalidPrefix
from components.kit.contracts import record
from components.services.autocomplete import (
    AddressBook,
    AddressBookReader,
    BookUsage,
    Miss,
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
    assert list(found.misses) == []  # nobody asked for them
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


def misses_of(name: str = "guild:7") -> Sequence[Miss]:
    return AddressBookReader().usage([name], with_misses=True)[0].misses


def missed(name: str = "guild:7") -> list[tuple[str, int]]:
    usage.flush()
    return [(each.text, each.count) for each in misses_of(name)]


def test_searches_that_found_nothing_are_kept_as_they_were_compared(redis: Redis, book: AddressBook) -> None:
    for typed in ("Zoé", "ZOE", "an", "x", "ann  SMYTHE", "가나"):
        book.complete(typed)
    asyncio.run(book.acomplete("zoe"))
    book.complete("nobody", is_counted=False)

    assert missed()[0] == ("zoe", 3)
    assert {text for text, _count in missed()} == {"zoe", "ann smythe", "가나"}
    assert counted().searches == 7
    age = datetime.now(UTC) - misses_of()[0].last_at
    assert abs(age.total_seconds()) < 60
    assert 29 * 86_400_000 < redis.pttl(keys.BookKeys("guild:7").missed) <= 30 * 86_400_000
    assert missed("guild:8") == []


def test_what_was_typed_is_cut(book: AddressBook) -> None:
    book.complete("z" * 200)

    assert missed() == [("z" * 50, 1)]


def test_the_searches_of_all_processes_are_summed_and_the_most_frequent_come_first(book: AddressBook) -> None:
    for sent in (["zoe", "bob"], ["bob"], ["bob", "joe", "joe"]):
        for text in sent:
            usage.note("guild:7", 3, 0.1, missed=text)
        usage.flush()

    assert missed() == [("bob", 3), ("joe", 2), ("zoe", 1)]


def test_a_process_sends_fifty_texts_of_a_book_at_once(book: AddressBook) -> None:
    for number in (*range(60), 0):
        usage.note("guild:7", 3, 0.1, missed=f"nobody {number}")

    assert len(missed()) == 50
    assert missed()[0] == ("nobody 0", 2)
    assert counted().searches == 61


def test_two_hundred_are_kept_and_the_rare_and_old_make_room(redis: Redis, book: AddressBook) -> None:
    now, day = redis.time()[0], 86_400
    stored = {f"nobody {number}": f"9 {now - day}" for number in range(197)}
    stored |= {"rare": f"1 {now - 2}", "old": f"5 {now - 29 * day}", "frequent": f"60 {now - 20 * day}"}
    redis.hset(keys.BookKeys("guild:7").missed, mapping=stored)

    usage.note("guild:7", 3, 0.1, missed="first")
    texts = dict(missed())
    assert len(texts) == 200
    assert "old" not in texts
    assert {"first", "rare", "frequent"} <= texts.keys()

    usage.note("guild:7", 3, 0.1, missed="second")
    texts = dict(missed())
    assert len(texts) == 200
    assert {"second", "frequent"} <= texts.keys()
    assert "rare" not in texts


def test_what_nobody_has_searched_for_in_a_month_goes(redis: Redis, book: AddressBook) -> None:
    now, month = redis.time()[0], 30 * 86_400
    stored = {"late": f"900 {now - month - 60}", "just": f"1 {now - month + 60}", "odd": "what is this?"}
    redis.hset(keys.BookKeys("guild:7").missed, mapping=stored)

    book.complete("zoe")

    assert {text for text, _count in missed()} == {"just", "zoe"}


def test_a_removed_book_leaves_no_typed_text(redis: Redis, book: AddressBook) -> None:
    book.complete("zoe")
    usage.flush()
    book.complete("zoe")

    book.erase()

    assert missed() == []
    assert redis.exists(keys.BookKeys("guild:7").missed) == 0


@pytest.fixture
def unset(settings: Any) -> None:
    """The setting, as it is in a project that does not set it."""
    settings.COMPONENTS = {
        name: value for name, value in settings.COMPONENTS.items() if name != "BOOK_MISSES"
    }


@pytest.mark.usefixtures("unset")
def test_without_the_setting_no_typed_text_is_kept(redis: Redis, book: AddressBook) -> None:
    now = redis.time()[0]
    redis.hset(keys.BookKeys("guild:7").missed, "zoe", f"1 {now}")
    assert list(misses_of()) == []

    book.complete("nobody")
    usage.flush()

    assert redis.exists(keys.BookKeys("guild:7").missed) == 0
    assert counted().searches == 1
    assert not [key for key in redis.keys("*") if b"nobody" in key]
