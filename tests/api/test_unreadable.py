"""An unreadable entry breaks neither sync nor lists nor pages, and no unreadable entry is accepted."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from redis import Redis

from components.kit.stored import UNREADABLE
from components.services.chat import Chat
from components.services.chat.keys import ChatKeys
from components.services.mailboxes import Mailbox
from tests.fixtures.api import Asker, problem
from tests.support.chats import FREE
from tests.support.poison import BODIES, put_into_chat, put_into_mailbox

pytestmark = pytest.mark.usefixtures("redis")


def body_of(depth: int) -> bytes:
    """Return a message with data of this depth, as a client sends it."""
    return b'{"text": "a", "data": ' + b"[" * depth + b"]" * depth + b"}"


def no_number(name: str) -> None:
    raise AssertionError(f"{name} is no JSON: browsers cannot read the answer")


def strictly(answer: Any) -> Any:
    """Return the answer as a browser reads it."""
    assert answer.status_code == 200, answer.content
    return json.loads(answer.content, parse_constant=no_number)


@pytest.mark.parametrize("name", ["nested endlessly", "no number", "endless", "half a character", "no UTF-8"])
def test_a_message_that_cannot_be_read_fails_nothing(
    joe: Asker, jill: Asker, redis: Redis, name: str
) -> None:
    bad = Chat.create(jill.id, members=[joe.id], settings=FREE)
    good = Chat.create(jill.id, members=[joe.id])
    cursor = joe("GET", "sync").json()["cursor"]
    seq = put_into_chat(redis, bad.id, b=BODIES[name], s=jill.id.encode())
    good.send(jill.id, "well")

    told = strictly(joe("GET", f"sync?timeout=0&cursor={cursor}"))
    said = [each["text"] for chat in told["chats"] for each in chat["messages"] if each["event"] is None]
    assert sorted(said) == [UNREADABLE, "well"]
    [message] = [each for chat in told["chats"] for each in chat["messages"] if each["is_unreadable"]]
    assert (message["seq"], message["sender"], message["data"]) == (seq, jill.id, None)
    assert {each["id"] for each in strictly(joe("GET", "sync"))["chats"]} == {bad.id, good.id}
    assert {each["id"] for each in strictly(joe("GET", "chats"))["chats"]} == {bad.id, good.id}
    assert strictly(joe("GET", f"chats/{bad.id}"))["last_message"]["text"] == UNREADABLE
    assert strictly(joe("GET", f"chats/{bad.id}/messages"))["messages"][-1]["text"] == UNREADABLE
    assert strictly(joe("GET", f"chats/{bad.id}/messages/{seq}"))["is_unreadable"]

    visitor = Client()
    visitor.force_login(User.objects.get(pk=joe.id))
    assert UNREADABLE in visitor.get("/chat/").text
    assert UNREADABLE in visitor.get(f"/chat/{bad.id}/").text


@pytest.mark.parametrize("name", ["no number", "half a character", "no UTF-8"])
def test_a_mail_that_cannot_be_read_fails_nothing(joe: Asker, redis: Redis, name: str) -> None:
    Mailbox(joe.id).push("jill", "before")
    bad = put_into_mailbox(redis, joe.id, body=BODIES[name])

    for answer in (joe("GET", "mailbox"), joe("POST", "mailbox/pull", {"timeout": 0})):
        told = [(each["text"], each["is_unreadable"]) for each in strictly(answer)["messages"]]
        assert told == [("before", False), (UNREADABLE, True)]
    assert strictly(joe("POST", "mailbox/acknowledge", {"id": bad})) == {"acknowledged": 2}


def test_a_chat_that_cannot_be_read_is_unavailable_and_not_gone(
    joe: Asker, jill: Asker, redis: Redis
) -> None:
    bad, good = (Chat.create(jill.id, members=[joe.id], text="hello") for _ in range(2))
    cursor = joe("GET", "sync").json()["cursor"]
    redis.hset(ChatKeys(bad.id).chat, "max_age", b"\xff")
    bad_seq = ChatKeys(bad.id).chat
    redis.hincrby(bad_seq, "seq", 1)

    for path in ("sync", "chats"):
        told = strictly(joe("GET", path))
        assert ([each["id"] for each in told["chats"]], told["unavailable"]) == ([good.id], [bad.id])
    told = strictly(joe("GET", f"sync?timeout=0&cursor={cursor}"))
    assert (told["gone"], told["unavailable"]) == ([], [bad.id])
    visitor = Client()
    visitor.force_login(User.objects.get(pk=joe.id))
    assert "1 of your chats cannot be shown" in visitor.get("/chat/").text


@pytest.mark.parametrize("depth", [32, 33, 60, 1_480])
def test_how_deep_data_may_be_does_not_depend_on_the_python(joe: Asker, jill: Asker, depth: int) -> None:
    chat = Chat.create(joe.id, members=[jill.id])
    paths = [f"chats/{chat.id}/messages", f"mailboxes/{jill.id}", "chats"]

    for path in paths:
        answer = joe("POST", path, raw=body_of(depth))
        if depth <= 32:
            assert answer.status_code == 201, answer.content
        elif depth <= 60:
            problem(answer, 422, "invalid-message")
        else:
            problem(answer, 400, "malformed")
