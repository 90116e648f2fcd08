"""Limits of how many chats a person creates, into how many a person is put, and how fast."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.test.utils import override_settings
from redis import Redis

from components.exceptions import TooFast, TooManyChats
from components.services.chat import Chat, ChatSettings, Inbox
from components.services.chat.hints import YOUNG, YOUNG_AFTER_LEAVING
from components.services.chat.keys import InboxKeys
from tests.support.chats import FREE

OPEN = ChatSettings(rate_limit=0, is_open=True)
SMALL = {"CHAT_CREATE_LIMIT": 3, "CHAT_ADD_LIMIT": 5, "MAX_CHATS_CREATED": 4, "MAX_CHATS_JOINED": 4}


def limited(**more: Any) -> override_settings:
    return override_settings(COMPONENTS={**SMALL, **more})


def later(redis: Redis, person: str, kind: str, seconds: float) -> None:
    """Let what *person* has paid for be so much older."""
    key = f"{InboxKeys(person).rate}/{kind}"
    if (paid := redis.get(key)) is not None:
        redis.set(key, f"{float(paid) - seconds * 1000:.3f}", keepttl=True)


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

        later(redis, "joe", "create", 1_200)
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

        assert chat.add([f"more {number}" for number in range(9)]) != []  # the system may do all


def test_a_request_for_all_permits_waits_for_all(redis: Redis) -> None:
    with limited():
        chat = create("joe")
        many = [f"p{number}" for number in range(9)]
        assert chat.add(many, by="joe") == many
        with pytest.raises(TooFast):
            chat.add(["one more"], by="joe")


def test_there_are_so_many_chats_that_a_person_has_created(redis: Redis) -> None:
    with limited(CHAT_CREATE_LIMIT=0, MAX_CHATS_JOINED=0):
        chats = [create("joe", "jack") for _ in range(4)]
        for chat in chats:
            chat.leave("joe")  # they are still there
        with pytest.raises(TooManyChats, match="has created"):
            create()

        age = dict.fromkeys(redis.zrange((created := _created("joe")), 0, -1), -YOUNG)
        for chat_id, seconds in age.items():
            redis.zincrby(created, seconds, chat_id)
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


def _created(person: str) -> str:
    return InboxKeys(person).created


@pytest.mark.parametrize(
    "enter",
    [
        lambda chat: create("mallory", "victim"),
        lambda chat: create("victim"),
        lambda chat: chat.add(["other", "victim"], by="mallory"),
        lambda chat: chat.join("victim"),
    ],
)
def test_there_are_so_many_chats_that_a_person_can_be_put_into(
    redis: Redis, enter: Callable[[Chat], object]
) -> None:
    chat = Chat.create("mallory", settings=OPEN)
    with limited(CHAT_ADD_LIMIT=0, CHAT_CREATE_LIMIT=0):
        full = [create(f"p{number}", "victim") for number in range(4)]
        with pytest.raises(TooManyChats, match="'victim'"):
            enter(chat)
        assert hints(redis, "victim") == 4
        assert hints(redis, "other") == 0
        assert [each.user for each in chat.members()] == ["mallory"]

        full[0].kick("victim")  # whose hint is young, so it stays for a while
        redis.zincrby(InboxKeys("victim").hints, -YOUNG_AFTER_LEAVING, full[0].id)
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
        make()
        for _ in range(3):
            make()
        for person in ("jack", "joe"):
            Chat("guild:7").leave(person)
        with pytest.raises(TooFast):  # it is another chat then
            make()


def test_nought_is_no_limit(redis: Redis) -> None:
    with limited(**dict.fromkeys(SMALL, 0)):
        chat, *_others = [create("joe", "jack") for _ in range(40)]
        assert len(chat.add([f"p{number}" for number in range(20)], by="joe")) == 20
    assert not redis.exists(_created("joe"))
    assert [key for key in redis.keys("*:rate:joe/*") if b"/call/" not in key] == []
