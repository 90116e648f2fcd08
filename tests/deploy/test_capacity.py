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


TEXT = "A message of fifty letters or so, number {:08}"

#: What the page calls it, and what makes the one of that number.
MADE: dict[str, Callable[[int], object]] = {
    "a ready task": lambda number: push_many(1),
    "a message in a chat": lambda number: Chat("guild").send("joe", TEXT.format(number)),
    "a message in a mailbox": lambda number: Mailbox(f"jack{number % 5}").push("joe", TEXT.format(number)),
    "a counter that counted once": lambda number: Counter(f"orders:{number}").update(),
    "a histogram that measured once": lambda number: measure(f"runs-us:{number}", 12_345),
    "a cached row on the schedule, not yet loaded": lambda number: RowCache("items", SHAPE).schedule(
        number, 60
    ),
    "a name in an address book": lambda number: AddressBook("players").add(f"Name of {number:06}", id=number),
    "a held lock": lambda number: lock(f"item:{number}", timeout=600).acquire(),
}


def make(what: str, many: int) -> None:
    Chat.create("joe", members=["jack"], text="hello", id="guild", settings=FREE)
    for number in range(many):
        MADE[what](number)
    flush()


@pytest.mark.slow
@pytest.mark.parametrize("what", MADE)
def test_nothing_takes_a_third_more_than_the_page_says(redis: Redis, what: str) -> None:
    """The page is about Redis 7.0; Valkey 9.1 needs less."""
    page = (ROOT / "docs" / "capacity.md").read_text(encoding="utf-8")
    found = re.search(rf"^\| {re.escape(what)}[^|]*\| ([\d,]+) \|", page, re.M)
    make(what, 500)  # loads the scripts, whose memory is not that of the things
    redis.flushdb()
    before = redis.info("memory")["used_memory_dataset"]

    make(what, NUMBER)

    each = (redis.info("memory")["used_memory_dataset"] - before) / NUMBER
    assert found, f"{what}: {each:.0f}"
    said = int(found[1].replace(",", ""))
    assert 0 < each < said * 4 / 3, f"{what}: {each:.0f}"
