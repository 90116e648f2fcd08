"""Presence: who has a chat open, who is typing, who is told, and what that costs."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from django.test.utils import override_settings
from hypothesis import given, settings
from hypothesis import strategies as st
from redis import Redis

from components.exceptions import ChatNotFound, Muted
from components.kit.pubsub import channel
from components.services.chat import Chat, Inbox, Presence, Present
from components.services.chat.keys import ChatKeys
from tests.chat.test_inboxes import LONG, while_waiting
from tests.support.chats import FREE, let_pass
from tests.support.snapshots import snapshot

NOBODY = Present((), 0, ())


@pytest.fixture
def chat(redis: Redis) -> Chat:
    return Chat.create("joe", members=["jack", "jill"], text="hello", settings=FREE)


@pytest.fixture
def presence(chat: Chat) -> Presence:
    return Presence(chat.id)


def seen(chat: Chat, user: str = "joe") -> dict[str, tuple[bool, bool]]:
    """Return of each member whether it is known when they were here, and whether they are."""
    return {each.user: (each.seen_at is not None, each.is_here) for each in chat.members(user=user)}


def test_who_was_here_is_forgotten_after_thirty_days(redis: Redis, chat: Chat, presence: Presence) -> None:
    presence.attend("jack")
    let_pass(redis, chat.id, 29 * 86_400)
    presence.attend("jill")
    assert seen(chat)["jack"] == (True, False)
    at = {each.user: each.seen_at for each in chat.members()}
    assert at["jill"] - at["jack"] >= timedelta(days=29)

    let_pass(redis, chat.id, 2 * 86_400)
    presence.attend("jill")
    assert seen(chat)["jack"] == (False, False)
    assert redis.pttl(ChatKeys(chat.id).here) > 29 * 86_400_000


def test_what_is_told_and_stored_is_bounded(redis: Redis) -> None:
    many = [f"person {number}" for number in range(120)]
    chat = Chat.create("joe", members=many, settings=FREE)
    presence = Presence(chat.id)
    for person in many:
        presence.attend(person)
    keys = ChatKeys(chat.id)
    old = {f"former {number}": 1_000_000_000_000 + number for number in range(10_050)}
    redis.zadd(keys.here, old)

    told = presence.attend("joe")

    assert (len(told.here), told.count) == (50, 120)
    assert redis.zcard(keys.here) == 121  # nobody from years ago is left
    now = max(score for _person, score in redis.zrange(keys.here, 0, -1, withscores=True))
    redis.zadd(keys.here, dict.fromkeys(old, now - 3600000))
    redis.zrem(keys.here, "joe")
    presence.attend("joe")
    assert redis.zcard(keys.here) == 10_001


@pytest.mark.parametrize("act", ["leave", "kick", "block", "erase"])
def test_a_former_member_is_told_nothing(redis: Redis, chat: Chat, presence: Presence, act: str) -> None:
    presence.attend("jack")
    presence.type("jack")
    presence.attend("joe")

    if act == "erase":
        Inbox("jack").erase()
    else:
        getattr(chat, act)("jack")

    assert presence.look("joe") == NOBODY
    assert redis.zscore(ChatKeys(chat.id).here, "jack") is None
    for ask in (presence.attend, presence.look, presence.type):
        with pytest.raises(ChatNotFound):
            ask("jack")
    assert presence.look("joe") == NOBODY


def test_whoever_is_muted_is_neither_shown_nor_told(redis: Redis, chat: Chat, presence: Presence) -> None:
    for person in ("joe", "jack"):
        presence.attend(person)
    presence.type("jack")
    chat.mute("jack", seconds=60)

    assert presence.look("joe") == NOBODY
    assert presence.attend("jack") == presence.look("jack") == NOBODY
    assert presence.look("joe") == NOBODY
    assert seen(chat, "jack") == dict.fromkeys(("joe", "jack", "jill"), (False, False))
    with pytest.raises(Muted):
        presence.type("jack")
    chat.unmute("jack")
    assert presence.attend("jack").here == ("joe",)


def test_a_site_can_do_without(redis: Redis, chat: Chat, presence: Presence) -> None:
    presence.attend("jack")
    before = snapshot(redis)
    with override_settings(COMPONENTS={"CHAT_PRESENCE": False}):
        assert presence.attend("joe") == presence.look("joe") == NOBODY
        assert asyncio.run(presence.aattend("joe")) == NOBODY
        presence.type("jack")
        assert seen(chat)["jack"] == (False, False)

    assert snapshot(redis) == before


def test_a_clock_that_jumped_back_keeps_nobody_present(redis: Redis, chat: Chat, presence: Presence) -> None:
    presence.attend("jack")
    presence.type("jack")
    let_pass(redis, chat.id, -3_600)

    assert presence.look("joe") == NOBODY
    assert seen(chat)["jack"] == (True, False)
    presence.attend("jack")
    presence.type("jack")
    assert presence.look("joe") == Present(("jack",), 1, ("jack",))


# Typing


def test_five_type_at_once_at_most(redis: Redis) -> None:
    many = [f"person {number}" for number in range(7)]
    chat = Chat.create("joe", members=many, settings=FREE)
    for person in many:
        Presence(chat.id).type(person)

    assert Presence(chat.id).look("joe").typing == tuple(many[:5])
    let_pass(redis, chat.id, 7)
    Presence(chat.id).type(many[6])
    assert Presence(chat.id).look("joe").typing == (many[6],)


def test_only_somebody_who_begins_wakes_others_and_no_crowd(redis: Redis, chat: Chat) -> None:
    crowd = [f"person {number}" for number in range(101)]
    chat.configure(max_members=200)
    chat.add(crowd)
    presence = Presence(chat.id)
    told = redis.pubsub(ignore_subscribe_messages=True)
    told.subscribe(channel("typing", chat.id))
    told.get_message(timeout=5)

    def news() -> int:
        found = 0
        while told.get_message(timeout=0.05):
            found += 1
        return found

    presence.attend("joe")
    for _ in range(3):
        presence.type("jack")
    let_pass(redis, chat.id, 4)
    presence.type("jack")
    assert news() == 1
    chat.send("jack", "text")
    presence.type("jack")
    assert news() == 1

    for person in crowd:
        presence.attend(person)
    presence.type("jill")
    assert news() == 0
    assert set(presence.look("joe").typing) == {"jack", "jill"}
    told.close()


def test_typing_wakes_those_who_look_at_the_chat(presence: Presence, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> Present:
        waiting = presence.aattend("joe", typing=(), wait=LONG)
        return await while_waiting(monkeypatch, waiting, lambda: presence.atype("jack"))

    assert asyncio.run(main()).typing == ("jack",)
    assert presence.look("jack").here == ("joe",)


def test_waiting_ends_when_typing_does(redis: Redis, chat: Chat, presence: Presence) -> None:
    presence.type("jack")
    let_pass(redis, chat.id, 5.8)

    async def main() -> Present:
        return await asyncio.wait_for(presence.aattend("joe", typing=("jack",), wait=LONG), LONG / 2)

    assert asyncio.run(main()).typing == ()


def test_what_is_known_is_not_told_again(presence: Presence) -> None:
    presence.type("jack")

    async def ask(known: tuple[str, ...] | None, wait: float) -> tuple[str, ...]:
        return tuple((await presence.aattend("joe", typing=known, wait=wait)).typing)

    for known, wait in ((("jack",), 0.05), (("jill",), LONG), ((), LONG), (None, LONG)):
        assert asyncio.run(ask(known, wait)) == ("jack",)


PEOPLE = ("joe", "jack", "jill")
_STEPS = st.one_of(
    st.tuples(st.sampled_from(["attend", "hide", "type", "send"]), st.sampled_from(PEOPLE)),
    st.tuples(st.just("pass"), st.sampled_from([1, 2.5, 4, 7, 15, 30, 61])),
)


@settings(max_examples=40)
@given(st.lists(_STEPS, max_size=12))
def test_members_see_what_a_model_says(redis: Redis, steps: list[tuple[str, str | float]]) -> None:
    chat = Chat.create("joe", members=PEOPLE[1:], settings=replace(FREE, max_messages=99))
    presence, now = Presence(chat.id), 0.0
    last, typed = dict[str, float](), dict[str, float]()
    for step, what in steps:
        if isinstance(what, float | int):
            let_pass(redis, chat.id, what)
            now += what
        elif step == "attend":
            presence.attend(what)
            if now - last.get(what, -99) >= 20:
                last[what] = now
        elif step == "hide":
            presence.attend(what, is_shown=False)
            last.pop(what, None)
            typed.pop(what, None)
        elif step == "type":
            presence.type(what)
            if now - typed.get(what, -99) >= 3:
                typed[what] = now
        else:
            chat.send(what, "text")
            typed.pop(what, None)
    for person in PEOPLE:
        told = presence.look(person)
        others = {who for who, at in last.items() if now - at < 60 and who != person}
        assert (set(told.here), told.count) == (others, len(others))
        assert set(told.typing) == {who for who, at in typed.items() if now - at < 6 and who != person}
    chat.delete()
