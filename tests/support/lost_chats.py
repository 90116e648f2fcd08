"""The scripts of chats, each with what is done while its reply gets lost. (tests/kit/test_lost_replies.py)"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

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

_ID = "guild:7"


def _chat(settings: ChatSettings = FREE) -> Chat:
    chat = Chat.create("joe", members=["jack", "jill"], id=_ID, client_id="first", settings=settings)
    for number in range(4):
        chat.send("joe", f"text {number}", client_id=f"joe {number}", mentions=["jill"])
        chat.send("jack", f"text {number}", client_id=f"jack {number}")
    return chat


def _as_told(chat: Chat) -> list[Any]:
    """Return what a member sees, without instants and random parts."""
    page = chat.history("joe", limit=200)
    return [(each.seq, each.sender, each.text, each.event) for each in page.messages]


def create(redis: Redis) -> Callable[[], Any]:
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


def send(redis: Redis) -> Callable[[], Any]:
    chat = _chat(replace(FREE, rate_limit=100, rate_period=36_000.0))
    return lambda: chat.send("jack", "hello", mentions=["jill", "joe"], client_id="a").seq


def reply(redis: Redis) -> Callable[[], Any]:
    chat = _chat()
    return lambda: chat.send("jack", "hello", reply_to=2, client_id="a").seq


def read(redis: Redis) -> Callable[[], Any]:
    chat = _chat(replace(FREE, drop_read_after=60))
    let_pass(redis, _ID, 3600)
    return lambda: chat.acknowledge("jill", 5)


def enter(redis: Redis) -> Callable[[], Any]:
    return _entering(_chat(), ["mary", "jack", "joan"])


def _entering(chat: Chat, persons: list[str]) -> Callable[[], Any]:
    _new, out = at_once(chat._enter(get_client(), "joe", persons))
    return lambda: at_once(chat._enter(get_client(), "joe", persons, after=out))


def leave(redis: Redis) -> Callable[[], Any]:
    chat = _chat()
    return lambda: chat.leave("joe")


def leave_as_the_last(redis: Redis) -> Callable[[], Any]:
    chat = _chat()
    for person in ("joe", "jack"):
        chat.leave(person)
    return lambda: chat.leave("jill")


def kick(redis: Redis) -> Callable[[], Any]:
    chat = _chat()
    return lambda: [chat.kick("jack", by="joe"), _as_told(chat)]


def block(redis: Redis) -> Callable[[], Any]:
    chat = _chat()
    return lambda: [chat.block("jack", by="joe"), _as_told(chat)]


def unblock(redis: Redis) -> Callable[[], Any]:
    chat = _chat()
    chat.block("jack")
    return lambda: [chat.unblock("jack", by="joe"), _as_told(chat)]


def role(redis: Redis) -> Callable[[], Any]:
    chat = _chat()
    return lambda: [chat.set_role("jack", "owner", by="joe"), _as_told(chat)]


def give_up_being_owner(redis: Redis) -> Callable[[], Any]:
    """Give up being owner: a second such call would not be allowed."""
    chat = _chat()
    chat.set_role("jack", "owner")
    return lambda: [chat.set_role("joe", "member", by="joe"), _as_told(chat)]


def mute(redis: Redis) -> Callable[[], Any]:
    chat = _chat()
    return lambda: chat.mute("jack", seconds=60, by="joe")


def unmute(redis: Redis) -> Callable[[], Any]:
    chat = _chat()
    chat.mute("jack")
    return lambda: [chat.unmute("jack", by="joe"), _as_told(chat)]


def unmute_who_has_left(redis: Redis) -> Callable[[], Any]:
    chat = _chat()
    chat.mute("jack")
    chat.leave("jack")
    return lambda: [chat.unmute("jack", by="joe"), _as_told(chat)]


def leave_muted(redis: Redis) -> Callable[[], Any]:
    chat = _chat()
    chat.mute("jack", seconds=60)
    return lambda: [chat.leave("jack"), chat.muted().keys()]


def come_back_muted(redis: Redis) -> Callable[[], Any]:
    chat = _chat()
    chat.mute("jack")
    chat.leave("jack")
    return _entering(chat, ["jack"])


def rename(redis: Redis) -> Callable[[], Any]:
    chat = _chat()
    return lambda: [chat.rename("Party", by="joe"), _as_told(chat)]


def configure(redis: Redis) -> Callable[[], Any]:
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


def refused(redis: Redis) -> Callable[[], Any]:
    chat = _chat()

    def act() -> str:
        with pytest.raises(NotAllowed) as refused:
            chat.close(by="jack")
        return str(refused.value)

    return act


def delete_message(redis: Redis) -> Callable[[], Any]:
    chat = _chat()
    chat.edit("jack", 3, "changed", mentions=["jill"])
    return lambda: [chat.delete_message(3, by="jack"), _as_told(chat)]


def edit(redis: Redis) -> Callable[[], Any]:
    chat = _chat(replace(FREE, rate_limit=100, rate_period=36_000.0))
    return lambda: [chat.edit("jack", 3, "changed", mentions=["jill"]) and None, _as_told(chat)]


def edit_of_an_edit(redis: Redis) -> Callable[[], Any]:
    """Change a text back: whoever does that again would change nothing."""
    chat = _chat()
    chat.edit("jack", 3, "changed")
    return lambda: [chat.edit("jack", 3, "text 0") and None, _as_told(chat)]


def react(redis: Redis) -> Callable[[], Any]:
    chat = _chat(replace(FREE, rate_limit=100, rate_period=36_000.0))
    chat.react("jill", 3, "👍")
    return lambda: [chat.react("jack", 3, "👍"), chat.message("joe", 3).reactions]


def take_a_reaction_back(redis: Redis) -> Callable[[], Any]:
    chat = _chat()
    chat.react("jack", 3, "👍")
    return lambda: [chat.react("jack", 3, "👍", is_on=False), chat.message("joe", 3).reactions]


def trim(redis: Redis) -> Callable[[], Any]:
    chat = _chat()
    chat.delete_message(2)
    chat.edit("jack", 3, "changed")
    return lambda: [chat.trim(before=5), _as_told(chat)]


def delete(redis: Redis) -> Callable[[], Any]:
    chat = _chat()
    return chat.delete


def erase(redis: Redis) -> Callable[[], Any]:
    chat = _chat()
    chat.react("jack", 2, "👍")
    chat.react("jill", 2, "👍")
    chat.kick("jack")
    return lambda: [at_once(_erase(get_client(), chat, "jack")), _as_told(chat)]


def attend(redis: Redis) -> Callable[[], Any]:
    chat = _chat()
    Presence(chat.id).attend("jack")
    return lambda: Presence(chat.id).attend("joe")


def attend_hidden(redis: Redis) -> Callable[[], Any]:
    chat = _chat()
    Presence(chat.id).attend("joe")
    return lambda: [Presence(chat.id).attend("joe", is_shown=False), Presence(chat.id).look("jack")]


def type_something(redis: Redis) -> Callable[[], Any]:
    chat = _chat()
    return lambda: [Presence(chat.id).type("joe"), Presence(chat.id).look("jack")]


def hint(redis: Redis) -> Callable[[], Any]:
    return lambda: at_once(HINT.run(get_client(), InboxKeys("joe"), id=_ID, most=9, is_done=1))


def charge(redis: Redis) -> Callable[[], Any]:
    """Create a chat, and add people to another; both count once towards the limits."""
    args = {"people": 5, "create_limit": 2, "create_period": 60_000, "add_limit": 9, "add_period": 60_000}
    keys, args["most_created"] = InboxKeys("joe"), 3
    return lambda: [
        at_once(CHARGE.run(get_client(), keys, id=_ID, call="a call", **args)),
        at_once(CHARGE.run(get_client(), keys, id="", call="another", **args))[0],
    ]


def forget(redis: Redis) -> Callable[[], Any]:
    """Remove the hint of a chat that denies it."""
    redis.zadd(InboxKeys("jack").hints, {_ID: 1, "other": 2})
    return lambda: at_once(FORGET.run(get_client(), InboxKeys("jack"), young=YOUNG, ids=[_ID, "other"]))


def drop(redis: Redis) -> Callable[[], Any]:
    """Drop hints; one that was renewed since it was read stays."""
    keys = InboxKeys("jack")
    for key in (keys.hints, keys.past):
        redis.zadd(key, {_ID: 1, "other": 2})
    return lambda: at_once(DROP.run(get_client(), keys, chats=[_ID, 1, 1, 0, "other", 1, 2, 0]))


CASES = {
    "chat/attend": [attend, attend_hidden],
    "chat/change": [rename, configure, refused],
    "chat/charge": [charge],
    "chat/create": [create],
    "chat/delete": [delete],
    "chat/delete_message": [delete_message],
    "chat/drop": [drop],
    "chat/edit": [edit, edit_of_an_edit],
    "chat/enter": [enter, come_back_muted],
    "chat/erase": [erase],
    "chat/forget": [forget],
    "chat/hint": [hint],
    "chat/mute": [mute, unmute, unmute_who_has_left],
    "chat/react": [react, take_a_reaction_back],
    "chat/read": [read],
    "chat/remove": [leave, leave_muted, leave_as_the_last, kick, block],
    "chat/role": [role, give_up_being_owner],
    "chat/send": [send, reply],
    "chat/trim": [trim],
    "chat/type": [type_something],
    "chat/unblock": [unblock],
}
