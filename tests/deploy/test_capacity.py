"""docs/capacity.md says what each thing takes in Redis; a server is asked, too."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from redis import Redis

from components.services.autocomplete import AddressBook
from components.services.chat import Chat
from components.services.counters import Counter, flush, measure
from components.services.locks import lock
from components.services.mailboxes import Mailbox
from components.services.rows import RowCache
from tests.support.chats import FREE
from tests.support.queues import push_many
from tests.support.rows import SHAPE

ROOT = Path(__file__).resolve().parents[2]
NUMBER = 3_000


def tasks(many: int) -> None:
    for _ in range(many // 500):
        push_many(500)


def messages(many: int) -> None:
    chat = Chat.create("joe", members=["jack"], text="hello", settings=FREE)
    for number in range(many):
        chat.send("joe", f"A message of fifty letters or so, number {number:08}")


def mails(many: int) -> None:
    for number in range(many):
        Mailbox(f"jack{number % 5}").push("joe", f"A message of fifty letters or so, number {number:08}")


def counters(many: int) -> None:
    for number in range(many):
        Counter(f"orders:{number}").update()


def histograms(many: int) -> None:
    for number in range(many):
        measure(f"runs-us:{number}", 12_345)
    flush()


def rows(many: int) -> None:
    cache = RowCache("items", SHAPE)
    for number in range(many):
        cache.schedule(number, 60)


def names(many: int) -> None:
    book = AddressBook("players")
    book.load((number, f"Name of {number:06}") for number in range(many))


def locks(many: int) -> None:
    for number in range(many):
        lock(f"item:{number}", timeout=600).acquire()


#: What the page calls it, and what makes so many.
MADE: dict[str, Callable[[int], None]] = {
    "a ready task": tasks,
    "a message in a chat": messages,
    "a message in a mailbox": mails,
    "a counter that counted once": counters,
    "a histogram that measured once": histograms,
    "a cached row on the schedule, not yet loaded": rows,
    "a name in an address book": names,
    "a held lock": locks,
}


@pytest.mark.slow
@pytest.mark.parametrize("what", MADE)
def test_nothing_takes_a_third_more_than_the_page_says(redis: Redis, what: str) -> None:
    """The page is about Redis 7.0; Valkey 9.1 needs less."""
    page = (ROOT / "docs" / "capacity.md").read_text(encoding="utf-8")
    found = re.search(rf"^\| {re.escape(what)}[^|]*\| ([\d,]+) \|", page, re.M)
    MADE[what](500)  # loads the scripts, whose memory is not that of the things
    redis.flushdb()
    before = redis.info("memory")["used_memory_dataset"]

    MADE[what](NUMBER)

    each = (redis.info("memory")["used_memory_dataset"] - before) / NUMBER
    assert found, f"{what}: {each:.0f}"
    said = int(found[1].replace(",", ""))
    assert 0 < each < said * 4 / 3, f"{what}: {each:.0f}"
