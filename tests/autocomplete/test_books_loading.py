"""load(): many at once, and a whole book beside the old one, which readers never see half of."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from redis import Redis

from components.embedded import EmbeddedServer
from components.exceptions import InvalidValue, LoadSuperseded, RedisUnavailable
from components.kit.sync_async import at_once
from components.services.autocomplete import AddressBook, AddressBookReader, Entry, RecentContacts
from components.services.autocomplete.contacts import DROP, TOUCH
from components.services.autocomplete.folding import FOLDING
from components.services.autocomplete.keys import BookKeys, ContactsKeys
from components.services.autocomplete.loading import BEGIN, WRITE, row
from components.testing import empty
from tests.support.books import labels
from tests.support.snapshots import snapshot

NAMES = [(number, f"name {number:04}") for number in range(2_100)]


def test_many_are_added_and_progress_is_reported(book: AddressBook) -> None:
    book.add("before", id="x")
    told: list[int] = []

    assert book.load(NAMES, progress=told.append) == 2_100

    assert told == [1_000, 2_100]
    assert (book.count(), labels(book.complete("2099"))) == (2_101, ["name 2099"])
    assert labels(book.complete("before")) == ["before"]


def test_the_old_answers_until_the_new_is_whole(book: AddressBook) -> None:
    book.load([(1, "old one"), (2, "old two")])
    seen: list[object] = []
    caller = threading.get_ident()  # whose database connection the entries may need

    def entries() -> Iterator[tuple[int, str]]:
        for number, _label in NAMES:
            assert threading.get_ident() == caller
            if number % 500 == 0:
                seen.append((labels(book.complete("old")), book.complete("new"), book.count()))
                assert book.info().loading is not None
            yield number, f"new {number:04}"

    book.load(entries(), replace=True)

    assert seen == [(["old one", "old two"], [], 2)] * 5
    assert (book.complete("old"), book.count(), book.info().loading) == ([], 2_100, None)


def test_a_second_load_ends_the_first(book: AddressBook) -> None:
    def first() -> Iterator[tuple[int, str]]:
        yield from NAMES
        book.load([(1, "second")], replace=True)
        yield from NAMES

    with pytest.raises(LoadSuperseded, match="Another load of the address book 'guild:7'"):
        book.load(first(), replace=True)

    assert (labels(book.complete("s")), book.count()) == (["second"], 1)


def test_an_interrupted_load_expires_and_does_no_harm(book: AddressBook, redis: Redis) -> None:
    book.load([(1, "ann")])
    before = snapshot(redis)

    with pytest.raises(InvalidValue, match="The label"):
        book.load([*NAMES, (1, "")], replace=True)

    left = {key: value for key, value in snapshot(redis).items() if before.get(key) != value}
    assert left
    assert all(expires for _value, expires in left.values())
    assert labels(book.complete("a")) == ["ann"]


def test_a_load_that_ends_with_an_error_leaves_nothing_on_its_way(book: AddressBook) -> None:
    async def interrupted() -> None:
        with pytest.raises(InvalidValue, match="The label"):
            await book.aload([*NAMES, (1, "")])
        assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []

    before = threading.enumerate()
    with pytest.raises(InvalidValue, match="The label"):
        book.load([*NAMES, (1, "")])
    assert book.count() == 1_000
    assert [thread for thread in threading.enumerate() if thread not in before] == []
    book.erase()

    asyncio.run(interrupted())
    assert book.count() == 2_000


def test_all_books_are_listed_by_page(redis: Redis) -> None:
    for number in range(7):
        AddressBook(f"guild:{number}").add("ann smith", id=1)
    reader = AddressBookReader()

    assert [info.name for info in reader.page(offset=2, limit=3)] == ["guild:2", "guild:3", "guild:4"]
    assert (reader.count(), reader.page(offset=7)) == (7, [])
    AddressBook("guild").add("ann smith", id=1)
    assert [info.name for info in reader.page("guild:", offset=5)] == ["guild:5", "guild:6"]
    assert (reader.count("guild:"), reader.count(), reader.count("é")) == (7, 8, 0)
    AddressBook("guild").erase()
    found = reader.find("guild:3")
    assert found is not None
    assert (found.count, found.members, found.selected, found.bytes > 100) == (1, 2, 0, True)
    assert (found.loaded_at, found.loading) == (None, None)
    assert reader.find("guild:8") is reader.find("") is None

    AddressBook("guild:3").erase()
    assert (reader.count(), reader.find("guild:3")) == (6, None)
    infos = reader.look(["guild:3", "guild:4"])
    assert [info and info.name for info in infos] == [None, "guild:4"]
    assert AddressBook("guild:2").complete("smi") == [Entry("1", "ann smith")]


def write(redis: Redis, call: str, *rows: str) -> Any:
    keys = BookKeys("guild:7")
    return at_once(WRITE.run(redis, keys, token="", mode="put", folding=FOLDING, call=call, given=rows))


def test_a_repeated_write_does_not_undo_what_others_did_meanwhile(book: AddressBook, redis: Redis) -> None:
    """The reply of a call was lost, so it is sent again."""
    ann = row(1, "ann", words=True)
    write(redis, "before", ann)
    first = write(redis, "removal", "1")
    book.add("ann", id=1)
    assert write(redis, "removal", "1") == first
    assert book.complete("a") == [Entry("1", "ann")]

    book.remove(1)
    first = write(redis, "put", ann)
    book.remove(1)
    assert write(redis, "put", ann) == first
    assert (book.complete("a"), book.count()) == ([], 0)


def test_a_repeated_touch_or_removal_of_a_contact_does_not_either(redis: Redis) -> None:
    recent, its = RecentContacts("jack"), ContactsKeys("jack")
    again = {"contact": "jill", "label": "Jill", "limit": 100, "call": "call"}
    at_once(TOUCH.run(redis, its, **again))
    recent.touch("joe")
    at_once(TOUCH.run(redis, its, **again))
    assert [contact.id for contact in recent.list()] == ["joe", "jill"]

    for _ in range(2):
        assert at_once(DROP.run(redis, its, contact="jill", call="call")) == 1
        recent.touch("jill")
    assert [contact.id for contact in recent.list()] == ["jill", "joe"]


def test_a_load_that_another_ended_is_not_begun_again_by_a_repeated_call(redis: Redis) -> None:
    keys = BookKeys("guild")
    for call in ("first", "second"):
        at_once(BEGIN.run(redis, keys, call=call))

    at_once(BEGIN.run(redis, keys, call="first"))

    assert redis.hget(keys.loading, "token") == b"second"


@pytest.fixture
def replica(redis_server: EmbeddedServer) -> Iterator[None]:
    """A plain server as a replica that has its data, and whose master is gone."""
    with empty(redis_server) as redis:
        book = AddressBook("guild:7")
        book.load((number, f"ann {number:03}") for number in range(200))
        for number in range(150):
            book.select(number)
        RecentContacts("jack").touch("jill")
        redis.script_flush()
        redis.replicaof("127.0.0.1", 1)
        yield
        redis.replicaof("NO", "ONE")


@pytest.mark.usefixtures("replica")
def test_a_replica_answers_reads_and_changes_nothing() -> None:
    book = AddressBook("guild:7")
    assert book.complete("ann", limit=2) == [Entry("149", "ann 149"), Entry("148", "ann 148")]
    assert book.complete("199") == [Entry("199", "ann 199")]
    assert book.get(1) == Entry("1", "ann 001")
    assert [ranked.id for ranked in book.top(1)] == ["149"]
    assert [info.count for info in AddressBookReader().page()] == [book.count()] == [200]
    assert [contact.id for contact in RecentContacts("jack").complete("ji")] == ["jill"]

    for act in (lambda: book.add("bob", id=1), lambda: book.select(1), lambda: book.load([(1, "bob")])):
        with pytest.raises(RedisUnavailable):
            act()
    assert book.complete("bob") == []
