"""What is no chat, person or message; how many chats one makes or joins, and how fast; and what bounds their keys."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from django.http import QueryDict
from django.test.utils import override_settings
from hypothesis import given, settings
from hypothesis import strategies as st
from redis import Redis

from components.exceptions import (
    ChatNotFound,
    InvalidMessage,
    InvalidName,
    InvalidValue,
    TooFast,
    TooManyChats,
)
from components.services.chat import Chat, ChatSettings, Inbox, Position, Presence
from components.services.chat.inbox_index import YOUNG
from components.services.chat.keys import ChatKeys, InboxKeys
from components.services.chat.settings import SETTINGS
from tests.support.chats import FREE
from tests.support.snapshots import snapshot

OPEN = ChatSettings(rate_limit=0, is_open=True)
SMALL = {"CHAT_CREATE_LIMIT": 3, "CHAT_ADD_LIMIT": 5, "MAX_CHATS_CREATED": 4, "MAX_CHATS_JOINED": 4}


def limited(**more: Any) -> override_settings:
    return override_settings(COMPONENTS={**SMALL, **more})


def create(owner: str = "joe", *members: str, id: str | None = None) -> Chat:
    return Chat.create(owner, members=members, by=owner, id=id, settings=OPEN)


def hints(redis: Redis, person: str) -> int:
    return int(redis.zcard(InboxKeys(person).hints))


def test_a_person_creates_so_many_chats_in_a_while(redis: Redis) -> None:
    with limited(MAX_CHATS_CREATED=9, MAX_CHATS_JOINED=9):
        for _ in range(3):
            create()
        with pytest.raises(TooFast) as refused:
            create()
        assert 1_100 < refused.value.retry_after <= 1_200
        assert len(Inbox("joe").chats()) == 3
        create("jack")  # each has their own

        paid = f"{InboxKeys('joe').rate}/create"
        redis.set(paid, f"{float(redis.get(paid)) - 1_200_000:.3f}", keepttl=True)
        create()
        with pytest.raises(TooFast):
            create()


def test_a_person_puts_so_many_people_into_chats_in_a_while(redis: Redis) -> None:
    with limited():
        chat = create("joe", "jack", "jill")
        assert chat.add(["a", "b"], by="joe") == ["a", "b"]
        assert chat.add(["a", "b", "joe"], by="joe") == []  # costs nothing
        with pytest.raises(TooFast) as refused:
            chat.add(["c", "d"], by="joe")
        assert 0 < refused.value.retry_after <= 720
        with pytest.raises(TooFast):
            create("joe", "c", "d")
        assert hints(redis, "c") == hints(redis, "d") == 0
        assert chat.add(["c"], by="joe") == ["c"]
        assert chat.add(["d"], by="jack") == ["d"]

        many = [f"more {number}" for number in range(9)]
        assert create("ann").add(many, by="ann") == many  # who has all permits may use them at once
        with pytest.raises(TooFast):
            create("ann").add(["one more"], by="ann")
        assert chat.add(many) == many  # the system may do all


def test_there_are_so_many_chats_that_a_person_has_created(redis: Redis) -> None:
    with limited(CHAT_CREATE_LIMIT=0, MAX_CHATS_JOINED=0):
        chats = [create("joe", "jack") for _ in range(4)]
        for chat in chats:
            chat.leave("joe")  # they are still there
        with pytest.raises(TooManyChats, match="has created"):
            create()

        created = InboxKeys("joe").created
        for chat_id in redis.zrange(created, 0, -1):
            redis.zincrby(created, -YOUNG, chat_id)
        with pytest.raises(TooManyChats):
            create()
        chats[0].leave("jack")
        chats[1].delete()

        create()
        create()
        with pytest.raises(TooManyChats):
            create()
    assert redis.zcard(created) == 4
    assert 0 < redis.ttl(created) <= 366 * 86_400


@pytest.mark.parametrize(
    "enter",
    [
        lambda chat: create("mallory", "victim"),
        lambda chat: create("victim"),
        lambda chat: chat.add(["other", "victim"], by="mallory"),
        lambda chat: chat.join("victim"),
    ],
)
def test_a_person_can_be_put_into_so_many_chats(redis: Redis, enter: Callable[[Chat], object]) -> None:
    chat = Chat.create("mallory", settings=OPEN)
    with limited(CHAT_ADD_LIMIT=0, CHAT_CREATE_LIMIT=0):
        full = [create(f"p{number}", "victim") for number in range(4)]
        with pytest.raises(TooManyChats, match="'victim'"):
            enter(chat)
        assert hints(redis, "victim") == 4
        assert hints(redis, "other") == 0
        assert [each.user for each in chat.members()] == ["mallory"]

        full[0].kick("victim")
        enter(chat)
        assert len(Inbox("victim").chats()) == 4
        assert Chat.create("boss", members=["victim"], settings=FREE)  # the system may do all


def test_the_limit_holds_when_many_ask_at_once(redis: Redis) -> None:
    def try_to(number: int) -> bool:
        try:
            create(f"p{number}", "victim")
        except TooManyChats:
            return False
        return True

    with limited(), ThreadPoolExecutor(8) as pool:
        made = sum(pool.map(try_to, range(24)))

    assert made == 4
    assert hints(redis, "victim") == 4


def test_a_chat_that_is_asked_for_again_is_counted_once(redis: Redis) -> None:
    def make() -> Chat:
        return Chat.create("joe", members=["jack"], id="guild:7", client_id="same", by="joe")

    with limited(CHAT_CREATE_LIMIT=1, MAX_CHATS_CREATED=1):
        for _ in range(4):
            make()
        for person in ("jack", "joe"):
            Chat("guild:7").leave(person)
        with pytest.raises(ChatNotFound):
            make().info()


def test_nought_is_no_limit(redis: Redis) -> None:
    with limited(**dict.fromkeys(SMALL, 0)):
        chat, *_others = [create("joe", "jack") for _ in range(40)]
        assert len(chat.add([f"p{number}" for number in range(20)], by="joe")) == 20
    assert not redis.exists(InboxKeys("joe").created)
    assert [key for key in redis.keys("*:rate:joe/*") if b"/call/" not in key] == []


HOUR, DAY, WEEK = 3_600, 86_400, 7 * 86_400


#: A chat of so few that its limits are reached.
MOST, PEOPLE = 20, 6
#: How large each key of it may become: two fields for each message, or what there is of the chat itself.
LARGEST = max(2 * MOST + 2, 20 + len(SETTINGS))


@pytest.mark.slow
def test_use_does_not_let_a_chat_grow(redis: Redis) -> None:
    settings = replace(FREE, max_messages=MOST, max_members=PEOPLE, rate_limit=10**6, is_open=True)
    chat = Chat.create("joe", members=["jack", "mary"], settings=settings)
    for number in range(40):
        for person in (f"guest {number}", "jill"):
            chat.join(person)
            Presence(chat.id).attend(person)
            Presence(chat.id).type(person)
            for _ in range(6):
                sent = chat.send(person, "hello", mentions=["jack", "mary", "joe"])
                chat.edit(person, sent.seq, "hello again")
                chat.react("mary", sent.seq, "👍")
        chat.delete_message(chat.news("joe").last_seq)
        chat.send("jack", "hello")
        chat.mute(f"guest {number}", seconds=60)
        chat.block(f"guest {number}")
        chat.unblock(f"guest {number}")
        Inbox("jill").erase()
        measures = {b"hash": redis.hlen, b"zset": redis.zcard, b"stream": redis.xlen}
        for key in redis.keys(f"*:{chat.id}*"):
            assert measures.get(redis.type(key), lambda key: 1)(key) <= LARGEST, key
        assert chat.news("mary").unread == sum(
            1 for each in chat.history("mary", limit=200).messages if not each.event
        )
    lasting = [key for key in redis.keys(f"*:{chat.id}*") if redis.ttl(key) == -1]
    assert len(lasting) < 60  # parts of what was sent are small, and go with it

    chat.delete()

    assert [key for key in redis.keys(f"*:{chat.id}*") if redis.ttl(key) == -1] == []
    assert redis.zscore(ChatKeys(chat.id).names, chat.id) is None


def nested(depth: int) -> Any:
    found: Any = []
    for _ in range(depth - 1):
        found = [found]
    return found


SELF: list[Any] = []
SELF.append(SELF)
TOO_DEEP: list[Any] = [SELF, nested(33), {"a": nested(32)}, nested(100_000)]

BLANK = [" ", "\u3164", "\u2800", "\u200d\u2066 \ufe0f\u115f"]
TEXTS: list[Any] = ["", *BLANK, "\ud800", "a\0b", "a" * 4_001, 7]
DATA: list[Any] = ["b" * 8_191, {1, 2}, {7: 1}, [QueryDict("a=1&a=2")], float("nan"), "\udfff", *TOO_DEEP]
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
        (InvalidMessage, BLANK, lambda chat, value: chat.rename(value)),
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


@settings(max_examples=60)
@given(sender=_text, text=_text, data=_json, mentioned=_text)
def test_what_is_sent_is_read(redis: Redis, sender: str, text: str, data: Any, mentioned: str) -> None:
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
