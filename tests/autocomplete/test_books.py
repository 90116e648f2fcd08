"""AddressBook: who is found, by what, in which order."""

from __future__ import annotations

import pytest
from redis import Redis

from components.exceptions import BookNotFound
from components.services.autocomplete import AddressBook, Completions, Entry


@pytest.fixture
def book(redis: Redis) -> AddressBook:
    return AddressBook("guild:7")


def labels(found: Completions) -> list[str]:
    return [entry.label for entry in found]


def test_a_name_is_found_by_its_beginning_and_by_each_word(book: AddressBook) -> None:
    book.add("Ann Smith", id=1)

    for prefix in ("a", "ann", "ANN s", "ann smith", "smi", "  smith ", "smith ann", "s a"):
        assert book.complete(prefix) == [Entry("1", "Ann Smith")]
    for prefix in ("nn", "mith", "annsmith", "b"):
        assert book.complete(prefix) == []


def test_a_name_can_be_found_by_its_beginning_alone(book: AddressBook) -> None:
    assert book.add("Ann Smith", id=1, words=False)
    assert book.complete("smi") == []

    assert not book.add("Ann Smith", id=1)
    assert labels(book.complete("smi")) == ["Ann Smith"]


@pytest.mark.parametrize(
    ("label", "prefixes"),
    [
        ("Éva", ["é", "e", "E", "eva", "e\u0301v"]),
        ("李小龙", ["李", "李小"]),
        ("İrem Işık", ["i", "İ", "irem", "ışık", "isik"]),  # noqa: RUF001
        ("Weiß", ["weiß", "weiss", "WEISS"]),
        ("Åke Łukasz", ["å", "a", "łu", "lu"]),
        ("👩‍👩‍👧 family", ["👩", "👩‍👩", "fam"]),
        ("o{brien", ["o{", "o{b", "brien"]),
        ("Jean-Luc", ["jean-", "luc"]),
        ("1abc", ["1"]),
        ("हिन्दी", ["हि", "हिन्"]),
        ("ﬁnland ４２", ["fi", "42"]),  # noqa: RUF001
        ("Ⅷ \u00a0 x", ["viii x"]),
    ],
)
def test_case_accents_and_width_make_no_difference(
    book: AddressBook, label: str, prefixes: list[str]
) -> None:
    book.load([(1, label), (2, "zzz")])

    assert [labels(book.complete(prefix)) for prefix in prefixes] == [[label]] * len(prefixes)


def test_letters_within_a_word_begin_none(book: AddressBook) -> None:
    book.add("हिन्दी", id=1)

    assert book.complete("न") == book.complete("द") == []


def test_a_whole_name_matches_among_names_that_contain_it(book: AddressBook) -> None:
    book.load([(number, f"Ann Smith {number}") for number in range(300)])
    book.load([(f"end {number:03}", "Joe Ann Smith") for number in range(300)])
    book.load([("x", "ÁNN  smith"), ("y", "Ann Smith"), ("z", "ann-smith")], words=False)

    same = [Entry("x", "ÁNN  smith"), Entry("y", "Ann Smith"), Entry("z", "ann-smith")]
    assert book.called("ann smith") == book.called("Ann\u2010Smith") == same
    assert book.called(" Änn Smith ", limit=1) == [Entry("x", "ÁNN  smith")]
    assert book.called("joe ann smith", limit=3)[-1] == Entry("end 002", "Joe Ann Smith")
    assert book.called("smith") == book.called("ann") == []
    with pytest.raises(BookNotFound):
        AddressBook("guild:8").called("ann smith")


def test_a_page_says_whether_more_match(book: AddressBook) -> None:
    book.load((number, f"name {number:03}") for number in range(30))

    assert (len(book.complete("n")), book.complete("n").is_whole) == (10, False)
    assert (len(book.complete("n", limit=30)), book.complete("n", limit=30).is_whole) == (30, True)
    assert book.complete("name 029").is_whole
    assert book.complete("n", limit=29).is_whole is False


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


def test_an_empty_book_is_a_book(book: AddressBook) -> None:
    with pytest.raises(BookNotFound, match="no address book 'guild:7'"):
        book.complete("a")
    book.add("ann", id=1)
    book.remove(1)

    assert book.complete("a") == []
    book.erase()
    for act in (lambda: book.complete("a"), lambda: book.select(1), book.info):
        with pytest.raises(BookNotFound):
            act()
