"""RecentContacts: whom a person used last."""

import asyncio
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redis import Redis

from components.exceptions import InvalidName, InvalidValue
from components.services.autocomplete import (
    AddressBook,
    Contact,
    RecentContacts,
    contacts,
    fold,
    folding,
    keys,
)
from components.services.autocomplete.folding import spell
from tests.support.snapshots import snapshot


@pytest.fixture
def recent(redis: Redis) -> RecentContacts:
    return RecentContacts("jack", limit=3)


def ids(found: list[Contact]) -> list[str]:
    return [contact.id for contact in found]


def test_a_clock_that_was_ahead_keeps_nobody_from_the_front(recent: RecentContacts, redis: Redis) -> None:
    recent.touch("a")
    redis.zadd(keys.ContactsKeys("jack").contacts, {"a": 2**52})

    recent.touch("b")

    assert ids(recent.list()) == ["b", "a"]


TOUCHES = st.tuples(
    st.sampled_from(["touch", "touch", "touch", "remove"]),
    st.sampled_from("abcdefg"),
    st.sampled_from(["Ann", "Änne", "Jill Ann", "李小龙", ""]),
)


@given(
    calls=st.lists(TOUCHES, max_size=30),
    limit=st.integers(1, 5),
    prefix=st.sampled_from(["a", "AN", "李", "j"]),
)
@settings(max_examples=40)
def test_any_sequence_of_calls_does_as_a_list_of_python(
    redis: Redis, calls: list[tuple[str, str, str]], limit: int, prefix: str
) -> None:
    """What is touched without a label keeps the one that it has; one that has none is shown by its id."""
    recent, labels = RecentContacts("jack", limit=limit), dict[str, str]()
    recent.clear()
    for call, one, label in calls:
        before = labels.pop(one, None)
        if call == "remove":
            assert recent.remove(one) == (before is not None)
        else:
            recent.touch(one, label=label)
            labels = dict([(one, label or before or ""), *labels.items()][:limit])

        found = recent.list()
        assert [(each.id, each.label) for each in found] == [
            (one, label or one) for one, label in labels.items()
        ]
        assert all(one.touched_at > two.touched_at for one, two in pairwise(found))
        assert redis.hlen(keys.ContactsKeys("jack").labels) == len(labels)
    words = {one: [*fold(label).split(), one] for one, label in labels.items()}
    begun = [one for one in labels if any(word.startswith(fold(prefix)) for word in words[one])]
    assert ids(recent.complete(prefix)) == begun
    assert ids(recent.complete(prefix, limit=2)) == begun[:2]


def test_an_invalid_value_is_refused_and_nothing_is_stored(recent: RecentContacts, redis: Redis) -> None:
    refused: list[tuple[Callable[[Any], object], list[Any]]] = [
        (recent.touch, ["", "x" * 501, "a\0", "a\n", "\ud800", None, 7]),
        (recent.remove, ["", "x" * 501, "a\0", "a\n", "\ud800", None, 7]),
        (lambda label: recent.touch("a", label=label), ["x" * 201, "a\0", "\ud800", " "]),
        (recent.touch_all, [{"a": "", "": ""}, {"a": "", "b": "\0"}]),
        (recent.complete, ["", " ", "\u0301", "a\0", "\udfff", "x" * 10_000]),
        (lambda limit: RecentContacts("jack", limit=limit), [0, -1, 1_001, True, 1.0]),
    ]
    for act, values in refused:
        for value in values:
            with pytest.raises(InvalidValue):
                act(value)
    for name in ("", None, 7):
        with pytest.raises(InvalidName):
            RecentContacts(name)  # type: ignore[arg-type]
    assert snapshot(redis) == {}


def test_several_are_touched_at_once_and_the_unnamed_reported(recent: RecentContacts, redis: Redis) -> None:
    recent.touch("7", label="Jill")

    assert recent.touch_all({"8": "", "9": "Joe", "7": ""}) == ["8"]
    assert asyncio.run(recent.atouch_all({"9": "", "8": "Ann"})) == []
    assert [(each.id, each.label) for each in recent.list()] == [("8", "Ann"), ("9", "Joe"), ("7", "Jill")]
    assert recent.touch_all({}) == []
    assert recent.clear() == 3
    assert not redis.exists(keys.ContactsKeys("jack").contacts, keys.ContactsKeys("jack").labels)


def test_an_erased_person_forgets_and_is_forgotten(recent: RecentContacts) -> None:
    recent.touch("jill")
    for other in ("jill", "joe", "ann"):
        RecentContacts(other).touch("jack", label="Jack")
        RecentContacts(other).touch("bob")

    assert recent.erase(["joe", "jack", "jill"]) == 2

    assert recent.list() == []
    assert [ids(RecentContacts(other).list()) for other in ("jill", "joe", "ann")] == [
        ["bob"],
        ["bob"],
        ["bob", "jack"],
    ]
    assert asyncio.run(recent.aerase(["ann"])) == 1
    assert ids(RecentContacts("ann").list()) == ["bob"]


def test_names_are_compared_in_a_thread(recent: RecentContacts, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = list[bool]()
    recent.touch("joe", label="Joe Émile")
    for module in (contacts, folding):
        monkeypatch.setattr(
            module, "spell", lambda text: seen.append(asyncio._get_running_loop() is None) or spell(text)
        )
    assert ids(asyncio.run(recent.acomplete("joe"))) == ["joe"]
    assert asyncio.run(AddressBook("book").aload([(1, "Joe Émile")])) == 1
    assert seen == [False, True, True]  # the prefix, and the two labels
