"""What is no chat, no person and no message is said so, and nothing is stored."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis

from components.exceptions import (
    ChatNotFound,
    InvalidMessage,
    InvalidName,
    InvalidValue,
    TooManyMembers,
)
from components.services.chat import Chat, ChatSettings, Inbox, Position
from components.services.chat.settings import read_settings, write_settings
from tests.support.chats import FREE, texts


def nested(depth: int) -> Any:
    """A list in a list in a list, so many."""
    found: Any = []
    for _ in range(depth - 1):
        found = [found]
    return found


SELF: list[Any] = []
SELF.append(SELF)


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("", None),
        (" \n", None),
        ("\ud800", None),
        ("a\0b", None),
        ("a" * 4_001, None),
        ("a", "b" * 8_191),
        ("a", {1, 2}),
        ("a", float("nan")),
        ("a", "\udfff"),
        ("a", SELF),
        ("a", nested(33)),
        ("a", {"a": nested(32)}),
        ("a", nested(1_400)),
        ("a", nested(100_000)),
        (7, None),
        ("a" * 1_000_000, None),
    ],
)
def test_a_value_that_is_no_message_is_refused(redis: Redis, text: Any, data: Any) -> None:
    chat = Chat.create("joe")

    with pytest.raises(InvalidMessage):
        chat.send("joe", text, data=data)
    if (text, data) != ("", None):
        with pytest.raises(InvalidMessage):
            Chat.create("joe", text=text, data=data)

    assert chat.info().messages == 1
    assert len(Inbox("joe").chats()) == 1


@pytest.mark.parametrize("depth", [1, 31, 32])
def test_values_nested_32_deep_come_back(redis: Redis, depth: int) -> None:
    chat = Chat.create("joe")

    chat.send("joe", "a", data=nested(depth))

    [*_, message] = chat.history("joe").messages
    assert (message.data, message.is_unreadable) == (nested(depth), False)


@pytest.mark.parametrize("client_id", ["", "a" * 65, "a\n", "\ud800", 7])
def test_an_invalid_client_id_is_refused(redis: Redis, client_id: Any) -> None:
    chat = Chat.create("joe")

    with pytest.raises(InvalidMessage):
        chat.send("joe", "hello", client_id=client_id)


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


@pytest.mark.parametrize("person", ["", "a" * 501, "\ud800", None, 7])
def test_an_invalid_person_is_refused(redis: Redis, person: Any) -> None:
    chat = Chat.create("joe")

    for act in (
        lambda: Inbox(person),
        lambda: chat.send(person, "hello"),
        lambda: chat.send("joe", "hello", mentions=[person]),
        lambda: chat.join(person),
        lambda: chat.add([person]),
        lambda: chat.kick(person),
        lambda: chat.acknowledge(person, 1),
        lambda: chat.history(person),
        lambda: Chat.create("joe", members=[person]),
    ):
        with pytest.raises(InvalidName):
            act()


@pytest.mark.parametrize(
    "asked",
    [{"before": -1}, {"after": -1}, {"before": 1, "after": 1}, {"limit": 0}, {"limit": 201}, {"limit": True}],
)
def test_an_invalid_page_is_refused(redis: Redis, asked: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must be|only one"):
        Chat.create("joe").history("joe", **asked)


def test_seqs_above_all_are_the_last_and_below_none(redis: Redis) -> None:
    chat = Chat.create("joe", members=["jack"])

    assert chat.acknowledge("jack", 10**30) == 1
    assert texts(chat.history("joe", before=10**30).messages) == ["created"]
    assert texts(chat.history("joe", before=0).messages) == []
    assert texts(chat.history("joe", after=10**30).messages) == []
    with pytest.raises(ValueError, match="must be"):
        chat.acknowledge("jack", -1)


@pytest.mark.parametrize(
    ("error", "wrong"),
    [
        (InvalidValue, {"max_messages": 0}),
        (InvalidValue, {"max_messages": True}),
        (InvalidValue, {"max_members": 1.5}),
        (InvalidValue, {"history": -1}),
        (InvalidValue, {"is_open": 1}),
        (InvalidValue, {"max_age": 0}),
        (InvalidValue, {"rate_period": -1}),
        (InvalidValue, {"slow_mode": None}),
        (InvalidValue, {"drop_read_after": float("inf")}),
    ],
)
def test_settings_that_cannot_be_are_refused(redis: Redis, error: Any, wrong: dict[str, Any]) -> None:
    chat = Chat.create("joe")

    with pytest.raises(error):
        chat.configure(**wrong)
    with pytest.raises(error):
        Chat.create("joe", settings=ChatSettings(**wrong))

    assert chat.info().settings == ChatSettings()
    assert len(Inbox("joe").chats()) == 1


def test_too_many_members_are_refused_before_anything_is_stored(redis: Redis) -> None:
    with pytest.raises(TooManyMembers):
        Chat.create("joe", members=[str(number) for number in range(10_000)])
    assert redis.keys("*") == []

    chat = Chat.create("joe", members=["jack"])
    before = set(redis.keys("*"))
    with pytest.raises(TooManyMembers):
        chat.add([str(number) for number in range(10_000)])
    assert set(redis.keys("*")) == before


@given(
    history=st.none() | st.integers(0, 99),
    max_age=st.none() | st.integers(1, 10**9),
    slow_mode=st.sampled_from([0.0, 0.5, 30.0]),
    is_open=st.booleans(),
)
def test_settings_are_stored_as_they_are(
    history: int | None, max_age: int | None, slow_mode: float, is_open: bool
) -> None:
    chosen = ChatSettings(history=history, max_age=max_age, slow_mode=slow_mode, is_open=is_open)

    stored = {name: text.encode() for name, text in write_settings(chosen).items()}
    assert read_settings(stored) == chosen


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


@pytest.mark.slow
def test_a_message_of_100_bytes_costs_at_most_216(redis: Redis) -> None:
    chat = Chat.create("user 1", settings=ChatSettings(rate_limit=0, max_messages=10_000))
    for _ in range(3_000):
        chat.send("user 1", "a" * 100)

    used = sum(redis.memory_usage(key, samples=0) for key in redis.keys("*"))

    assert used / 3_000 <= 216
