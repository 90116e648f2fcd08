"""What is no chat, no person and no message is said so, and nothing is stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis

from components.exceptions import ChatNotFound, InvalidMessage, InvalidName, InvalidValue
from components.services.chat import Chat, ChatSettings, Inbox, Position
from tests.support.chats import FREE
from tests.support.snapshots import snapshot


def nested(depth: int) -> Any:
    """A list in a list in a list, so many."""
    found: Any = []
    for _ in range(depth - 1):
        found = [found]
    return found


SELF: list[Any] = []
SELF.append(SELF)
TOO_DEEP: list[Any] = [SELF, nested(33), {"a": nested(32)}, nested(100_000)]

TEXTS: list[Any] = ["", " \n", "\ud800", "a\0b", "a" * 4_001, 7]
DATA: list[Any] = ["b" * 8_191, {1, 2}, float("nan"), "\udfff", *TOO_DEEP]
CLIENT_IDS: list[Any] = ["", "a" * 65, "a\n", "\ud800", 7]
PERSONS: list[Any] = ["", "a" * 501, "\ud800", None, 7]
WRONG_SETTINGS: list[Any] = [
    *({"max_messages": 0}, {"max_messages": True}, {"max_members": 1.5}, {"history": -1}, {"is_open": 1}),
    *({"max_age": 0}, {"rate_period": -1}, {"slow_mode": None}, {"drop_read_after": float("inf")}),
]
PAGES: list[Any] = [
    *({"before": -1}, {"after": -1}, {"before": 1, "after": 1}, {"around": 2, "before": 3}),
    *({"limit": 0}, {"limit": 201}, {"limit": True}),
]


@pytest.mark.parametrize(
    ("error", "values", "act"),
    [
        (InvalidMessage, TEXTS, lambda chat, value: chat.send("joe", value)),
        (InvalidMessage, TEXTS, lambda chat, value: chat.edit("joe", 2, value)),
        (InvalidMessage, TEXTS[1:], lambda chat, value: Chat.create("joe", text=value)),
        (InvalidMessage, DATA, lambda chat, value: chat.send("joe", "a", data=value)),
        (InvalidMessage, DATA, lambda chat, value: Chat.create("joe", data=value)),
        (InvalidMessage, CLIENT_IDS, lambda chat, value: chat.send("joe", "a", client_id=value)),
        (InvalidName, PERSONS, lambda chat, value: Inbox(value)),
        (InvalidName, PERSONS, lambda chat, value: chat.send(value, "hello")),
        (InvalidName, PERSONS, lambda chat, value: chat.send("joe", "hello", mentions=[value])),
        (InvalidName, PERSONS, lambda chat, value: chat.edit("joe", 2, "hello", mentions=[value])),
        (InvalidName, PERSONS, lambda chat, value: chat.react(value, 2, "👍")),
        (InvalidName, PERSONS, lambda chat, value: chat.join(value)),
        (InvalidName, PERSONS, lambda chat, value: chat.add([value])),
        (InvalidName, PERSONS, lambda chat, value: chat.kick(value)),
        (InvalidName, PERSONS, lambda chat, value: chat.acknowledge(value, 1)),
        (InvalidName, PERSONS, lambda chat, value: chat.history(value)),
        (InvalidName, PERSONS, lambda chat, value: Chat.create("joe", members=[value])),
        (ValueError, PAGES, lambda chat, value: chat.history("joe", **value)),
        (ValueError, [-1, 1.5, True, "1"], lambda chat, value: chat.acknowledge("joe", value)),
        (ValueError, [-1, 1.5, True, "1"], lambda chat, value: chat.send("joe", "a", reply_to=value)),
        (InvalidValue, WRONG_SETTINGS, lambda chat, value: chat.configure(**value)),
        (
            InvalidValue,
            WRONG_SETTINGS,
            lambda chat, value: Chat.create("joe", settings=ChatSettings(**value)),
        ),
    ],
)
def test_an_invalid_value_is_refused_and_changes_nothing(
    redis: Redis, error: type[Exception], values: list[Any], act: Callable[[Chat, Any], object]
) -> None:
    chat = Chat.create("joe", text="hello")
    before = snapshot(redis)

    for value in values:
        with pytest.raises(error):
            act(chat, value)

    assert snapshot(redis) == before


def test_a_chat_has_limits_of_its_own(redis: Redis) -> None:
    chat = Chat.create("joe", text="one", settings=ChatSettings(max_text=3, max_data=10, rate_limit=0))

    for text, data in (("four", None), ("a", "b" * 9)):
        for act in (chat.send, lambda who, *said, **more: chat.edit(who, 2, *said, **more)):
            with pytest.raises(InvalidMessage):
                act("joe", text, data=data)
    chat.edit("joe", 2, "two", data="b" * 8)

    assert [message.text for message in chat.history("joe").messages] == ["", "two"]


def test_values_at_the_bounds_are_accepted(redis: Redis) -> None:
    chat = Chat.create("j" * 500, members=["jack"], id="a" * 64)

    chat.send("j" * 500, "a" * 4_000, data="b" * 8_190, client_id="a" * 64)
    chat.send("jack", data=nested(32))

    message = chat.message("jack", 3)
    assert (message.data, message.is_unreadable) == (nested(32), False)
    assert chat.acknowledge("jack", 10**30) == 3
    assert [len(chat.history("jack", **where).messages) for where in ({"before": 10**30}, {"before": 0})] == [
        3,
        0,
    ]
    assert chat.history("jack", after=10**30, limit=200).messages == []


@pytest.mark.parametrize("chat_id", ["", "a/b", "-a", "a" * 65, "a b", "é", "a\n", "{a}", 7, None])
def test_an_invalid_chat_id_is_found_nowhere_and_makes_no_chat(redis: Redis, chat_id: Any) -> None:
    chat = Chat(chat_id)

    for act in (
        lambda: chat.send("joe", "hello"),
        lambda: chat.news("joe"),
        lambda: chat.join("joe"),
        chat.info,
        chat.delete,
    ):
        with pytest.raises(ChatNotFound):
            act()
    if chat_id is not None:
        with pytest.raises(InvalidName):
            Chat.create("joe", id=chat_id)
    assert Inbox("joe").acknowledge({chat_id: 1}) == {}
    assert list(Inbox("joe").changes({chat_id: Position(1)}).gone) == [chat_id]
    assert redis.keys("*") == []


_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=60)
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5).filter(str.isprintable), inner),
    max_leaves=8,
)


@settings(suppress_health_check=list(HealthCheck), deadline=None, max_examples=60)
@given(sender=_text, text=_text, data=_json, mentioned=_text)
def test_sent_messages_are_the_ones_read(
    redis: Redis, sender: str, text: str, data: Any, mentioned: str
) -> None:
    redis.flushall()
    chat = Chat.create(sender, members=[mentioned], title="T", settings=FREE)

    sent = chat.send(sender, f".{text}", data=data, mentions=[mentioned])

    message = chat.message(mentioned, sent.seq)
    assert (message.sender, message.text, message.data) == (sender, f".{text}", data)
    assert message.mentions == ((mentioned,) if mentioned != sender else ())
    assert message.sent_at == sent.sent_at


def test_messages_are_recognised_as_long_as_they_are_in_the_history(redis: Redis) -> None:
    chat = Chat.create("joe", settings=ChatSettings(rate_limit=0, max_messages=300))
    sent = [chat.send("joe", "a", client_id=f"{number}") for number in range(700)]

    first = chat.history("joe", limit=1).oldest
    again = [chat.send("joe", "a", client_id=f"{number}") for number in range(first - 2, 700)]

    assert first > 300
    assert [each.seq for each in again] == [each.seq for each in sent[first - 2 :]]
    assert all(each.is_duplicate for each in again)
    assert not chat.send("joe", "a", client_id="0").is_duplicate
    parts = redis.keys("*:sent:*")
    assert sum(redis.hlen(part) for part in parts) == chat.info().messages
