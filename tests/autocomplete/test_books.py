"""AddressBook: who is found, by what, in which order; bad input; and defects that were found in its scripts."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from redis import Redis

from components.exceptions import BookNotFound, InvalidName, InvalidValue
from components.kit.client import AnyRedis
from components.kit.sync_async import at_once
from components.services.autocomplete import (
    AddressBook,
    AddressBookReader,
    Completions,
    Entry,
    RankedEntry,
    RecentContacts,
    keys,
)
from components.services.autocomplete.loading import Load, row
from tests.support.books import assert_whole, labels
from tests.support.names import NOT_OTHERWISE, OTHERWISE
from tests.support.snapshots import snapshot


def test_a_name_can_be_found_by_its_beginning_alone(book: AddressBook) -> None:
    assert book.add("Ann Smith", id=1, words=False)
    assert book.complete("smi") == []

    assert not book.add("Ann Smith", id=1)
    assert labels(book.complete("smi")) == ["Ann Smith"]


def test_case_accents_and_width_make_no_difference(book: AddressBook) -> None:
    for label, prefixes in {
        "Éva": ["é", "e", "E", "eva", "e\u0301v"],
        "李小龙": ["李", "李小"],
        "İrem Işık": ["i", "İ", "irem", "ışık", "isik"],  # noqa: RUF001
        "Weiß": ["weiß", "weiss", "WEISS"],
        "Åke Łukasz": ["å", "a", "łu", "lu"],
        "👩‍👩‍👧 family": ["👩", "👩‍👩", "fam"],
        "o{brien": ["o{", "o{b", "brien"],
        "Jean-Luc": ["jean-", "luc"],
        "1abc": ["1"],
        "हिन्दी": ["हि", "हिन्"],
        "ﬁnland ４２": ["fi", "42"],  # noqa: RUF001
        "Ⅷ \u00a0 x": ["viii x"],
    }.items():
        book.load([(1, label), (2, "zzz")], replace=True)
        assert [labels(book.complete(prefix)) for prefix in prefixes] == [[label]] * len(prefixes)


def test_a_whole_name_matches_among_names_that_contain_it(book: AddressBook) -> None:
    book.load([(number, f"Ann Smith {number}") for number in range(300)])
    book.load([(f"end {number:03}", "Joe Ann Smith") for number in range(300)])
    book.load([("x", "ÁNN  smith"), ("y", "Ann Smith"), ("z", "ann-smith")], words=False)

    same = [Entry("x", "ÁNN  smith"), Entry("y", "Ann Smith"), Entry("z", "ann-smith")]
    assert book.called("ann smith") == book.called("Ann\u2010Smith") == same
    assert book.called(" Änn Smith ", limit=1) == [Entry("x", "ÁNN  smith")]
    assert book.called("joe ann smith", limit=3)[-1] == Entry("end 002", "Joe Ann Smith")
    assert book.called("smith") == book.called("ann") == []


def test_each_change_makes_a_later_version(book: AddressBook) -> None:
    book.add("ann", id=1)
    versions = [book.info().version]
    for act in (
        lambda: book.add("bea", id=1),
        lambda: book.rename(1, "bob"),
        lambda: book.select(1),
        lambda: book.load([(2, "joe")]),
        lambda: book.load([(2, "joe")], replace=True),
        lambda: book.remove(2),
    ):
        act()
        versions.append(book.info().version)

    assert versions == sorted(set(versions))
    assert book.complete("a").version == versions[-1]


def test_an_empty_book_is_a_book_and_a_missing_one_is_not(book: AddressBook, redis: Redis) -> None:
    book.add("ann", id=1)
    book.remove(1)
    assert book.complete("a") == []

    book.erase()
    before = snapshot(redis)
    for act in (lambda: book.complete("a"), lambda: book.called("a"), lambda: book.select(1), book.info):
        with pytest.raises(BookNotFound):
            act()
    assert not book.remove(1)
    assert not book.rename(1, "ann")
    assert (AddressBookReader().count(), snapshot(redis)) == (0, before)


NAMES: list[Any] = ["", "x" * 501, b"guild", None, 7, "\ud800"]
PREFIXES: list[Any] = [
    "",
    " \u00a0",
    "\u0301\u200d",
    "x" * 201,
    "a\0",
    "a\nb",
    "ab\x85",
    "\ud800",
    b"a",
    None,
]
LABELS: list[Any] = [
    "",
    " ",
    "\u2800",
    "\u200b\u0301",
    "x" * 201,
    "a\0",
    "a\1",
    "a\tb",
    "a\udfff",
    b"ann",
    None,
]
IDS: list[Any] = ["", "x" * 101, "a\0", "a\1", "a\2", "\ud800", None, 1.0, True, 10**99, -(10**99), 10**5_000]
LIMITS: list[Any] = [0, -1, 1.0, True, "3", 1_001]


@pytest.mark.parametrize(
    ("values", "act"),
    [
        (NAMES, lambda book, value: AddressBook(value)),
        (PREFIXES, lambda book, value: book.complete(value)),
        (PREFIXES, lambda book, value: book.called(value)),
        (LABELS, lambda book, value: book.add(value, id=2)),
        (LABELS, lambda book, value: book.rename(1, value)),
        (LABELS, lambda book, value: book.load([(2, "bob"), (3, value)])),
        (IDS, lambda book, value: book.add("bob", id=value)),
        (IDS, lambda book, value: book.remove(value)),
        (IDS, lambda book, value: book.rename(value, "bob")),
        (IDS, lambda book, value: book.get(value)),
        (IDS, lambda book, value: book.select(value)),
        (IDS, lambda book, value: book.load([(value, "bob")])),
        ([*LIMITS, 101], lambda book, value: book.complete("a", limit=value)),
        (LIMITS, lambda book, value: book.top(value)),
    ],
)
def test_an_invalid_value_is_refused_and_changes_nothing(
    book: AddressBook, redis: Redis, values: list[Any], act: Callable[[AddressBook, Any], object]
) -> None:
    book.add("ann", id=1)
    book.select(1)
    before = snapshot(redis)

    for value in values:
        with pytest.raises(InvalidName if values is NAMES else InvalidValue):
            act(book, value)

    assert snapshot(redis) == before


def test_the_longest_that_is_allowed_is_found(book: AddressBook) -> None:
    """Of everything: names, ids, labels, prefixes, limits."""
    AddressBook("x" * 500).add("x" * 200, id=10**99 - 1)
    assert AddressBook("x" * 500).complete("x" * 200, limit=100) == [Entry("9" * 99, "x" * 200)]
    book.add("bob", id="x" * 100)
    assert book.top(1_000) == []
    for label in ("ﷺ" * 200, "a " * 99 + "ab", "\U0001f468" * 200, "{" * 200):
        book.add(label, id=2)
        assert book.get(2) == Entry("2", label)
        assert "2" in [found.id for found in book.complete(label)]
        assert book.count() == 2


def test_a_name_is_found_however_it_is_typed(redis: Redis) -> None:
    book = AddressBook("guild")
    book.load({label: label for label, _typed in OTHERWISE}.items())

    found = {
        (label, typed): label in [each.id for each in book.complete(typed)] for label, typed in OTHERWISE
    }

    assert [pair for pair, is_found in found.items() if not is_found] == []


def test_another_name_finds_nobody(redis: Redis) -> None:
    for label, typed in [*NOT_OTHERWISE, ("हिन्दी", "न"), ("हिन्दी", "द")]:
        book = AddressBook(f"{label} {typed}")
        book.add(label, id=1)
        assert book.complete(typed) == [], (label, typed)


def test_recent_contacts_are_found_likewise(redis: Redis) -> None:
    for label, typed in OTHERWISE:
        recent = RecentContacts(f"{label} {typed}")
        recent.touch("1", label=label)
        assert recent.complete(typed), (label, typed)


def test_a_search_looks_at_a_thousand_candidates_of_the_rarest_word(redis: Redis) -> None:
    """The answer says that it need not be all; who was selected is found beyond them."""
    book = AddressBook("guild")
    book.load((number, f"Ann{number:04} Smith{number:04}") for number in range(1_500))
    book.select(1_400)

    found = book.complete("smith ann", limit=100)

    assert found[0].id == "1400"
    assert len(found) == 100
    assert not found.is_whole
    assert [each.id for each in book.complete("smith ann1499")] == ["1499"]


def test_a_book_of_an_older_release_says_that_it_must_be_loaded_again(redis: Redis) -> None:
    book = AddressBook("guild")
    book.add("Ann", id=1)
    assert not book.info().is_outdated

    redis.hdel(keys.BookKeys("guild").book, "folding")
    book.add("Bob", id=2)
    assert book.info().is_outdated
    [info] = AddressBookReader().page()
    assert info.is_outdated

    book.load([(1, "Ann")], replace=True)
    assert not book.info().is_outdated


LONGEST = "\ufdfa" * 200  # one letter of Arabic that stands for a sentence of eighteen


def ids_of(found: Completions | list[RankedEntry]) -> list[str]:
    return [entry.id for entry in found]


def test_a_selection_during_a_load_without_end_leaves_nothing(book: AddressBook, redis: Redis) -> None:
    book.add("ann", id=1)

    def entries() -> Iterator[tuple[int, str]]:
        yield from ((number, f"name {number}") for number in range(1_000))  # a first batch is sent
        yield 1_000, "bob"
        book.select(1)
        yield 1_001, ""

    with pytest.raises(InvalidValue):
        book.load(entries(), replace=True)

    assert redis.exists(keys.BookKeys(book.name).next_selected)
    assert redis.ttl(keys.BookKeys(book.name).next_selected) > 0


def test_a_load_that_begins_while_another_ends_keeps_the_ranks_of_whom_it_has(redis: Redis) -> None:
    """Who is not in the first load leaves; but when his rank is to be forgotten, he is in the second already."""

    second = Load("guild", replaces=True)

    class Overtaken(AddressBook):
        """Between the end of a load and what follows it, a second begins and loads its first batch."""

        async def _ranked(self, client: AnyRedis, first: int, last: int) -> list[bytes]:
            if not redis.exists(keys.BookKeys("guild").loading):
                await second.begin(client)
                rows = [row(one, label, words=True) for one, label in ((1, "ann"), (2, "anna"))]
                await second.write(client, rows)
            return await super()._ranked(client, first, last)

    book = AddressBook("guild")
    book.load([(1, "ann"), (2, "anna")])
    book.select(2)
    Overtaken("guild").load([(1, "ann")], replace=True)

    at_once(second.finish(redis))

    assert ids_of(book.complete("a")) == ["2", "1"]
    assert_whole(redis, "guild")


def test_the_best_that_are_left_stay_when_too_many_are_selected(book: AddressBook) -> None:
    book.load((number, f"a{number:04}") for number in range(1_200))
    for number in range(1_199):
        book.select(number)
    for number in range(1_071, 1_140):
        book.remove(number)

    book.select(1_199)

    assert ids_of(book.complete("a")) == ids_of(book.top())


def test_many_of_one_long_name_cost_no_more_than_of_a_short_one(book: AddressBook, redis: Redis) -> None:
    """A selection looks at the prefixes of an entry that many of the selected match: here at all of them."""
    label = "a" * 190
    book.load((number, label) for number in range(80))
    for number in range(80):
        book.select(number)

    assert {len(prefix) for prefix in redis.hkeys(keys.BookKeys(book.name).tops)} == set(range(1, 25))
    for prefix in (label[:3], label[:24], label[:25], label):
        assert ids_of(book.complete(prefix, limit=3)) == ["79", "78", "77"]
    for number in range(80):
        book.remove(number)
    assert not redis.exists(keys.BookKeys(book.name).tops, keys.BookKeys(book.name).selected)


def test_the_longest_name_is_no_longer_in_the_index_than_others(book: AddressBook, redis: Redis) -> None:
    book.add(LONGEST, id=1)

    assert max(map(len, redis.zrange(keys.BookKeys(book.name).entries, 0, -1))) <= 2 * 200 + 2
    assert [ids_of(book.complete(prefix)) for prefix in (LONGEST[0], LONGEST)] == [["1"], ["1"]]
