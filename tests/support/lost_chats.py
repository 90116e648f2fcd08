"""The scripts of chats, each with what is done when its calls are repeated."""

from __future__ import annotations

from dataclasses import replace

import pytest
from redis import Redis

from components.exceptions import NotAllowed
from components.kit.at_once import at_once
from components.kit.client import get_client
from components.kit.news import channel
from components.services.chat import Chat, ChatSettings, Presence
from components.services.chat.chat import CHANGE, CREATE
from components.services.chat.erasure import _erase
from components.services.chat.hints import DROP, FORGET, HINT, YOUNG
from components.services.chat.keys import ChatKeys, InboxKeys
from components.services.chat.limits import CHARGE
from components.services.chat.settings import write_settings
from tests.support.chats import FREE, let_pass
from tests.support.repeating import Act, cases

case = cases("chat")

_ID = "guild:7"


def _chat(settings: ChatSettings = FREE) -> Chat:
    chat = Chat.create("joe", members=["jack", "jill"], id=_ID, client_id="first", settings=settings)
    for number in range(4):
        chat.send("joe", f"text {number}", client_id=f"joe {number}", mentions=["jill"])
        chat.send("jack", f"text {number}", client_id=f"jack {number}")
    return chat


@case
def create(redis: Redis) -> Act:
    settings = write_settings(ChatSettings(max_messages=9, max_age=60, is_open=True))
    args = {
        "id": _ID,
        "client_id": "a",
        "title": "Party",
        "event": b"e7:created3:joe0:0:",
        "message": b"thello",
        "inboxes": channel("inbox", ""),
        "people": 2,
        "more": ["joe", "jack", *(word for pair in settings.items() for word in pair)],
    }
    return lambda: at_once(CREATE.run(get_client(), ChatKeys(_ID), **args))


@case
def send(redis: Redis) -> Act:
    chat = _chat(replace(FREE, rate_limit=100, rate_period=36_000.0))
    return lambda: chat.send("jack", "hello", mentions=["jill", "joe"], client_id="a").seq


@case
def reply(redis: Redis) -> Act:
    chat = _chat()
    return lambda: chat.send("jack", "hello", reply_to=2, client_id="a").seq


@case
def read(redis: Redis) -> Act:
    chat = _chat(replace(FREE, drop_read_after=60))
    let_pass(redis, _ID, 3600)
    return lambda: chat.acknowledge("jill", 5)


@case
def enter(redis: Redis) -> Act:
    return _entering(_chat(), ["mary", "jack", "joan"])


def _entering(chat: Chat, persons: list[str]) -> Act:
    _new, out = at_once(chat._enter(get_client(), "joe", persons))
    return lambda: at_once(chat._enter(get_client(), "joe", persons, after=out))


@case
def leave(redis: Redis) -> Act:
    chat = _chat()
    return lambda: chat.leave("joe")


@case
def leave_as_the_last(redis: Redis) -> Act:
    chat = _chat()
    for person in ("joe", "jack"):
        chat.leave(person)
    return lambda: chat.leave("jill")


@case
def kick(redis: Redis) -> Act:
    chat = _chat()
    return lambda: chat.kick("jack", by="joe")


@case
def block(redis: Redis) -> Act:
    chat = _chat()
    return lambda: chat.block("jack", by="joe")


@case
def unblock(redis: Redis) -> Act:
    chat = _chat()
    chat.block("jack")
    return lambda: chat.unblock("jack", by="joe")


@case
def role(redis: Redis) -> Act:
    chat = _chat()
    return lambda: chat.set_role("jack", "owner", by="joe")


@case
def give_up_being_owner(redis: Redis) -> Act:
    """Give up being owner: a second such call would not be allowed."""
    chat = _chat()
    chat.set_role("jack", "owner")
    return lambda: chat.set_role("joe", "member", by="joe")


@case
def mute(redis: Redis) -> Act:
    chat = _chat()
    return lambda: chat.mute("jack", seconds=60, by="joe")


@case
def unmute(redis: Redis) -> Act:
    chat = _chat()
    chat.mute("jack")
    return lambda: chat.unmute("jack", by="joe")


@case
def unmute_who_has_left(redis: Redis) -> Act:
    chat = _chat()
    chat.mute("jack")
    chat.leave("jack")
    return lambda: chat.unmute("jack", by="joe")


@case
def leave_muted(redis: Redis) -> Act:
    chat = _chat()
    chat.mute("jack", seconds=60)
    return lambda: [chat.leave("jack"), chat.muted().keys()]


@case
def come_back_muted(redis: Redis) -> Act:
    chat = _chat()
    chat.mute("jack")
    chat.leave("jack")
    return _entering(chat, ["jack"])


@case
def rename(redis: Redis) -> Act:
    chat = _chat()
    return lambda: chat.rename("Party", by="joe")


@case
def configure(redis: Redis) -> Act:
    chat = _chat()
    at_once(chat._trim_all(get_client()))
    args = {
        "least": "o",
        "by": "joe",
        "call": "a call",
        "event": b"e",
        "channel": channel("chat", "one"),
        "facts": ["max_age", "0", "60000", "max_messages", "*", "9"],
    }
    return lambda: at_once(CHANGE.run(get_client(), ChatKeys(_ID), **args))


@case
def refused(redis: Redis) -> Act:
    chat = _chat()

    def act() -> str:
        with pytest.raises(NotAllowed) as refused:
            chat.close(by="jack")
        return str(refused.value)

    return act


@case
def delete_message(redis: Redis) -> Act:
    chat = _chat()
    chat.edit("jack", 3, "changed", mentions=["jill"])
    return lambda: chat.delete_message(3, by="jack")


@case
def edit(redis: Redis) -> Act:
    chat = _chat(replace(FREE, rate_limit=100, rate_period=36_000.0))
    return lambda: chat.edit("jack", 3, "changed", mentions=["jill"])


@case
def edit_of_an_edit(redis: Redis) -> Act:
    """Change a text back: whoever does that again would change nothing."""
    chat = _chat()
    chat.edit("jack", 3, "changed")
    return lambda: chat.edit("jack", 3, "text 0")


@case
def react(redis: Redis) -> Act:
    chat = _chat(replace(FREE, rate_limit=100, rate_period=36_000.0))
    chat.react("jill", 3, "👍")
    return lambda: [chat.react("jack", 3, "👍"), chat.message("joe", 3).reactions]


@case
def take_a_reaction_back(redis: Redis) -> Act:
    chat = _chat()
    chat.react("jack", 3, "👍")
    return lambda: [chat.react("jack", 3, "👍", is_on=False), chat.message("joe", 3).reactions]


@case
def trim(redis: Redis) -> Act:
    chat = _chat()
    chat.delete_message(2)
    chat.edit("jack", 3, "changed")
    return lambda: chat.trim(before=5)


@case
def delete(redis: Redis) -> Act:
    chat = _chat()
    return chat.delete


@case
def erase(redis: Redis) -> Act:
    chat = _chat()
    chat.react("jack", 2, "👍")
    chat.react("jill", 2, "👍")
    chat.kick("jack")
    return lambda: at_once(_erase(get_client(), chat, "jack"))


@case
def attend(redis: Redis) -> Act:
    chat = _chat()
    Presence(chat.id).attend("jack")
    return lambda: Presence(chat.id).attend("joe")


@case
def attend_hidden(redis: Redis) -> Act:
    chat = _chat()
    Presence(chat.id).attend("joe")
    return lambda: [Presence(chat.id).attend("joe", is_shown=False), Presence(chat.id).look("jack")]


@case
def type_something(redis: Redis) -> Act:
    chat = _chat()
    return lambda: [Presence(chat.id).type("joe"), Presence(chat.id).look("jack")]


@case
def hint(redis: Redis) -> Act:
    return lambda: at_once(HINT.run(get_client(), InboxKeys("joe"), id=_ID, most=9, is_done=1))


@case
def charge(redis: Redis) -> Act:
    """Create a chat, and add people to another; both count once towards the limits."""
    args = {"people": 5, "create_limit": 2, "create_period": 60_000, "add_limit": 9, "add_period": 60_000}
    keys, args["most_created"] = InboxKeys("joe"), 3
    return lambda: [
        at_once(CHARGE.run(get_client(), keys, id=_ID, call="a call", **args)),
        at_once(CHARGE.run(get_client(), keys, id="", call="another", **args))[0],
    ]


@case
def forget(redis: Redis) -> Act:
    """Remove the hint of a chat that denies it."""
    redis.zadd(InboxKeys("jack").hints, {_ID: 1, "other": 2})
    return lambda: at_once(FORGET.run(get_client(), InboxKeys("jack"), young=YOUNG, ids=[_ID, "other"]))


@case
def drop(redis: Redis) -> Act:
    """Drop hints; one that was renewed since it was read stays."""
    keys = InboxKeys("jack")
    for key in (keys.hints, keys.past):
        redis.zadd(key, {_ID: 1, "other": 2})
    return lambda: at_once(DROP.run(get_client(), keys, chats=[_ID, 1, 1, 0, "other", 1, 2, 0]))
