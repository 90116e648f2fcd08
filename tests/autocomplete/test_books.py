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


def test_unselected_names_come_in_alphabetical_order(book: AddressBook) -> None:
    book.load([(1, "bob"), (2, "Alan"), (3, "ánna"), (4, "bea alwin"), (5, "al")])

    assert labels(book.complete("al")) == ["al", "Alan", "bea alwin"]
    assert labels(book.complete("a")) == ["al", "Alan", "bea alwin", "ánna"]


def test_a_page_says_whether_more_match(book: AddressBook) -> None:
    book.load((number, f"name {number:03}") for number in range(30))

    assert (len(book.complete("n")), book.complete("n").is_whole) == (10, False)
    assert (len(book.complete("n", limit=30)), book.complete("n", limit=30).is_whole) == (30, True)
    assert book.complete("name 029").is_whole
    assert book.complete("n", limit=29).is_whole is False


def test_selected_names_come_first_and_more_often_selected_ones_before_them(book: AddressBook) -> None:
    book.load([(1, "anna"), (2, "annb"), (3, "annc")])

    assert book.select(2)
    assert book.select("3")
    assert book.select(3)
    assert labels(book.complete("ann")) == ["annc", "annb", "anna"]
    assert [(ranked.id, round(ranked.weight)) for ranked in book.top()] == [("3", 2), ("2", 1)]

    assert not book.select(4)


def test_joining_again_renames(book: AddressBook) -> None:
    assert book.add("ann", id=1)
    before = book.complete("a").version

    assert not book.add("bea", id=1)

    assert book.complete("a") == []
    assert labels(book.complete("b")) == ["bea"]
    assert (book.count(), book.get(1)) == (1, Entry("1", "bea"))
    assert book.complete("b").version > before


def test_only_existing_people_are_renamed(book: AddressBook) -> None:
    book.add("ann", id=1)

    assert book.rename(1, "bea")
    assert not book.rename(2, "joe")
    assert (book.get(1), book.get(2), book.count()) == (Entry("1", "bea"), None, 1)


def test_a_former_member_is_found_no_more(book: AddressBook) -> None:
    book.load([(1, "ann smith"), (11, "ann other")])
    book.select(1)

    assert book.remove(1)
    assert not book.remove(1)
    assert (book.complete("smi"), labels(book.complete("ann"))) == ([], ["ann other"])
    assert (book.get(1), book.top(), book.count()) == (None, [], 1)


def test_selections_follow_a_name_that_changes(book: AddressBook) -> None:
    book.load([(1, "ann"), (2, "bea"), (3, "bob")])
    book.select(1)

    book.rename(1, "bzz")

    assert labels(book.complete("b")) == ["bzz", "bea", "bob"]


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
