"""What only looks at address books and recent contacts is answered by a replica, which refuses to write."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from redis import Redis

from components.exceptions import RedisUnavailable
from components.services.autocomplete import AddressBook, AddressBookReader, Entry, RecentContacts


@pytest.fixture
def replica(redis: Redis) -> Iterator[Redis]:
    """The server as a replica that has its data, and whose master is gone."""
    book = AddressBook("guild:7")
    book.load((number, f"ann {number:03}") for number in range(200))
    for number in range(150):
        book.select(number)
    RecentContacts("jack").touch("jill")
    redis.script_flush()
    redis.replicaof("127.0.0.1", 1)
    yield redis
    redis.replicaof("NO", "ONE")


def test_a_replica_answers_reads(replica: Redis) -> None:
    book = AddressBook("guild:7")

    assert book.complete("ann", limit=2) == [Entry("149", "ann 149"), Entry("148", "ann 148")]
    assert book.complete("199") == [Entry("199", "ann 199")]
    assert book.get(1) == Entry("1", "ann 001")
    assert [ranked.id for ranked in book.top(1)] == ["149"]
    assert [info.count for info in AddressBookReader().page()] == [book.count()] == [200]
    assert [contact.id for contact in RecentContacts("jack").complete("ji")] == ["jill"]


def test_a_replica_changes_nothing(replica: Redis) -> None:
    book = AddressBook("guild:7")
    for act in (lambda: book.add("bob", id=1), lambda: book.select(1), lambda: book.load([(1, "bob")])):
        with pytest.raises(RedisUnavailable):
            act()
    assert book.complete("bob") == []
