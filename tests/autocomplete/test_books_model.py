"""Address books against a naive search in Python, over names in many scripts and any sequence of calls."""

import asyncio
import random
import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import permutations
from typing import Any
from unicodedata import combining, normalize

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from hypothesis.stateful import run_state_machine_as_test as run
from redis import Redis

from components.services.autocomplete import AddressBook, Entry, address_book, fold, keys, loading
from tests.support.books import assert_whole
from tests.support.names import NAMES, SYLLABLES
from tests.support.twins import Awaited

IDS = [f"{number}" for number in range(12)]
#: Before the n-th entry of a load: what is done to whom.
CHANGES = st.lists(
    st.tuples(
        st.integers(0, 6),
        st.sampled_from(["add", "rename", "remove", "select"]),
        st.sampled_from(IDS),
        st.sampled_from(["ann", "Änne An", "bob"]),
    ),
    max_size=6,
)
LABELS = [
    "ann",
    "Anna",
    "ann smith",
    "Änne An",
    "bob",
    "a a a",
    "李小龙",
    "an-ann",
    "İan",
    "smith",
    "Ann-A S",
    "하나 한",
]
PREFIXES = ["a", "an", "ann", "s", "smi", "李", "i", "z", "smith a", "a-a an", "anann", "an an", "한"]
#: A hyphen, or a blank between words of a script that does without.
JOINT = re.compile("-|(?<=[가-힣]) (?=[가-힣])")


@cache
def begun(label: str) -> tuple[tuple[str, ...], ...]:
    """
    The search key of *label* from each of its words on, and the same with what joints join as one word.

    A word is a run of what is no blank or hyphen.
    """
    parts = re.split("([ -])", label)
    ways: tuple[list[str], list[str]] = ([], [])
    for at in range(0, len(parts), 2):
        if fold(parts[at]):
            ways[0].append(fold("".join(parts[at:])))
            ways[1].append(fold(JOINT.sub("", "".join(parts[at:]))))
    return tuple(tuple(dict.fromkeys(each)) for each in zip(*ways, strict=True))


@cache
def starts(label: str) -> frozenset[str]:
    return frozenset(text for texts in begun(label) for text in texts)


@cache
def means(label: str, prefix: str) -> bool:
    """Whether *label* has all of the words of *prefix*, in any order, with or without its blanks and hyphens."""
    words, joined = fold(prefix), fold(JOINT.sub("", prefix))
    ways = {tuple(words.split()), tuple(joined.split()), (words.replace(" ", ""),)}
    return any(
        all(any(text.startswith(word) for text in texts) for word, texts in zip(way, chosen, strict=True))
        for way in ways
        for chosen in permutations(begun(label), len(way))
    )


def expected(entries: dict[str, str], weights: dict[str, float], prefix: str) -> list[str]:
    """
    The ids that match, the heaviest first, and then by what matched.

    Behind them those that have the same words otherwise, the heaviest first, and then by name.
    """
    found, others = [], []
    for one, label in entries.items():
        matching = [start for start in starts(label) if start.startswith(fold(prefix))]
        if matching:
            found.append((-weights.get(one, 0), min(f"{start}\1{one}".encode() for start in matching), one))
        elif " " in fold(prefix) and means(label, prefix):
            others.append((-weights.get(one, 0), fold(label).encode(), one.encode(), one))
    return [each[-1] for each in [*sorted(found), *sorted(others)]]


def ranks(redis: Redis) -> dict[str, float]:
    """Of those that were selected: as often as another, who is before whom is a matter of microseconds."""
    return {
        one.decode(): score
        for one, score in redis.zrange(keys.BookKeys("guild").ranks, 0, -1, withscores=True)
    }


def ids(entries: Iterable[Entry]) -> list[str]:
    return [entry.id for entry in entries]


class Books(RuleBasedStateMachine):
    """What the model knows: labels by id, and how often each was selected."""

    def __init__(self, redis: Redis, awaits: asyncio.Runner | None) -> None:
        super().__init__()
        self.redis = redis
        redis.flushall()
        self.book: Any = Awaited(AddressBook("guild"), awaits) if awaits else AddressBook("guild")
        self.book.load([])
        self.book.load([], replace=True)
        self.entries: dict[str, str] = {}
        self.counts: dict[str, int] = {}

    @rule(one=st.sampled_from(IDS), label=st.sampled_from(LABELS))
    def add(self, one: str, label: str) -> None:
        assert self.book.add(label, id=one) == (one not in self.entries)
        self.entries[one] = label

    @rule(one=st.sampled_from(IDS), label=st.sampled_from(LABELS))
    def rename(self, one: str, label: str) -> None:
        assert self.book.rename(one, label) == (one in self.entries)
        if one in self.entries:
            self.entries[one] = label

    @rule(one=st.sampled_from(IDS))
    def remove(self, one: str) -> None:
        assert self.book.remove(one) == (self.entries.pop(one, None) is not None)
        self.counts.pop(one, None)

    @rule(one=st.sampled_from(IDS))
    def select(self, one: str) -> None:
        assert self.book.select(one) == (one in self.entries)
        if one in self.entries:
            self.counts[one] = self.counts.get(one, 0) + 1

    @rule(given=st.dictionaries(st.sampled_from(IDS), st.sampled_from(LABELS)), replace=st.booleans())
    def load(self, given: dict[str, str], replace: bool) -> None:
        assert self.book.load(given.items(), replace=replace) == len(given)
        self.entries = given if replace else {**self.entries, **given}
        self.counts = {one: count for one, count in self.counts.items() if one in self.entries}

    @rule(
        given=st.lists(st.tuples(st.sampled_from(IDS), st.sampled_from(LABELS)), max_size=6), changes=CHANGES
    )
    def load_while_it_changes(
        self, given: list[tuple[str, str]], changes: list[tuple[int, str, str, str]]
    ) -> None:
        """What changes meanwhile counts, whether it was loaded before that or comes after."""
        changed: set[str] = set()

        def entries() -> Iterator[tuple[str, str]]:
            for at, entry in enumerate([*given, None]):
                for where, verb, one, label in changes:
                    if where == at:
                        if verb != "select" and not (verb == "rename" and one not in self.entries):
                            changed.add(one)
                        getattr(self, verb)(one, *[label] * (verb in ("add", "rename")))
                if entry:
                    yield entry

        assert self.book.load(entries(), replace=True) == len(given)
        kept = {one: label for one, label in self.entries.items() if one in changed}
        self.entries = {one: label for one, label in given if one not in changed} | kept
        self.counts = {one: count for one, count in self.counts.items() if one in self.entries}

    @rule(prefix=st.sampled_from(PREFIXES), limit=st.integers(1, 13))
    def complete(self, prefix: str, limit: int) -> None:
        found, all_ids = self.book.complete(prefix, limit=limit), self._expected(prefix)
        assert found == [Entry(one, self.entries[one]) for one in all_ids[:limit]]
        assert found.is_whole == (len(all_ids) <= limit)

    def _expected(self, prefix: str) -> list[str]:
        return expected(self.entries, ranks(self.redis), prefix)

    @invariant()
    def figures(self) -> None:
        info = self.book.info()
        assert (info.count, info.selected, info.loading) == (len(self.entries), len(self.counts), None)
        assert info.members == sum(len(starts(label)) for label in self.entries.values())
        assert not info.is_outdated
        top = self.book.top(20)
        assert {each.id: round(each.weight) for each in top} == self.counts
        assert [each.weight for each in top] == sorted((each.weight for each in top), reverse=True)
        assert_whole(self.redis, "guild")


@pytest.mark.parametrize("examples", [10, pytest.param(50, marks=pytest.mark.slow)])
@pytest.mark.parametrize("awaits", [False, True])
def test_calls_do_as_the_model(
    redis: Redis, monkeypatch: pytest.MonkeyPatch, examples: int, awaits: bool
) -> None:
    """Loads are sent in small parts, so that some of them are there when something changes."""
    for module, name, size in ((address_book, "BATCH", 2), (loading, "BATCH", 2), (loading, "_MANY", 2)):
        monkeypatch.setattr(module, name, size)
    monkeypatch.setattr(loading, "_FEW", 1)
    checks = settings(max_examples=examples // 2 if awaits else examples, stateful_step_count=25)
    with asyncio.Runner() as runner:
        run(lambda: Books(redis, runner if awaits else None), settings=checks)


@pytest.mark.slow
def test_a_prefix_of_thousands_is_answered_in_parts_as_a_naive_search_does(redis: Redis) -> None:
    book, chosen = AddressBook("guild"), random.Random(7)
    entries = {f"{number}": chosen.choice(NAMES)(chosen) for number in range(3_000)}
    book.load(entries.items())
    for prefix in [fold(syllables[0])[0] for syllables in SYLLABLES.values()]:
        assert ids(book.complete(prefix, limit=100)) == expected(entries, {}, prefix)[:100]


def test_the_best_come_first_however_many_match(redis: Redis) -> None:
    """Of some prefixes, hundreds of those that were selected match; some leave, and some change their names."""
    book, chosen = AddressBook("guild"), random.Random(9)
    names = {f"{number}": NAMES[0](chosen) for number in range(600)}
    entries = dict(names)
    book.load(entries.items())
    for clock in range(700):
        one = chosen.choice(list(names))
        if clock % 10 == 9:
            entries.pop(one, None)
            book.remove(one)
        elif clock % 10 == 8:
            book.add(label := NAMES[0](chosen), id=one)
            entries[one] = label
        elif one in entries:
            book.select(one)

    prefixes = [start[:length] for label in names.values() for start in starts(label) for length in (1, 2, 3)]
    assert len(redis.hkeys(keys.BookKeys("guild").tops)) > 2
    for prefix in [*redis.hkeys(keys.BookKeys("guild").tops)[:20], *chosen.choices(prefixes, k=30)]:
        text = prefix.decode() if isinstance(prefix, bytes) else prefix
        assert ids(book.complete(text)) == expected(entries, ranks(redis), text)[:10]
    assert_whole(redis, "guild")


@given(st.text(max_size=20), st.text(max_size=20))
def test_folding_again_changes_nothing_and_case_and_accents_make_no_difference(text: str, more: str) -> None:
    assert fold(fold(text)) == fold(text)
    assert fold(normalize("NFD", text)) == fold(normalize("NFC", text)) == fold(text)
    assert fold(f"{text}\u0301") == fold(text)


@pytest.mark.parametrize("script", SYLLABLES)
def test_marks_that_make_another_letter_stay(script: str) -> None:
    text = "".join(SYLLABLES[script])
    kept = {each for each in normalize("NFD", text) if combining(each) in (7, 8, 9)}

    assert kept <= set(normalize("NFD", fold(text)))
