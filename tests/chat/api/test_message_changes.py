"""Replies, edits, reactions and badges over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from components.services.chat import Chat
from tests.fixtures.api import Asker, problem

pytestmark = pytest.mark.usefixtures("redis")


@pytest.fixture
def chat(joe: Asker, jill: Asker) -> Chat:
    return Chat.create(joe.id, members=[jill.id], text="**Who** has the key?")


def sync(asker: Asker, cursor: str = "") -> dict[str, Any]:
    told: dict[str, Any] = asker("GET", f"sync?cursor={cursor}&timeout=0").json()
    return told


def test_a_reply_has_the_message_that_it_replies_to(joe: Asker, jill: Asker, chat: Chat) -> None:
    sent = jill("POST", f"chats/{chat.id}/messages", {"text": "I have", "reply_to": 2})

    assert sent.status_code == 201
    told = joe("GET", f"chats/{chat.id}/messages/3").json()
    assert told["reply_to"] == {"seq": 2, "sender": joe.id, "text": "Who has the key?"}
    assert told["people"][joe.id] == "joe"
    assert joe("GET", f"chats/{chat.id}/messages/2").json()["reply_to"] is None
    problem(jill("POST", f"chats/{chat.id}/messages", {"text": "x", "reply_to": 9}), 404, "message-not-found")
    problem(jill("POST", f"chats/{chat.id}/messages", {"text": "x", "reply_to": 0}), 422, "invalid-value")


def test_the_history_around_a_message(joe: Asker, chat: Chat) -> None:
    chat.configure(rate_limit=0)
    for number in range(10):
        chat.send(joe.id, f"text {number}")

    told = joe("GET", f"chats/{chat.id}/messages?around=6&limit=4").json()

    assert [message["seq"] for message in told["messages"]] == [5, 6, 7, 8]
    assert (told["has_more"], told["has_newer"]) == (True, True)
    assert problem(joe("GET", f"chats/{chat.id}/messages?around=6&before=3"), 422, "invalid-value")["field"]


def test_an_edit_comes_with_the_next_sync(joe: Asker, jill: Asker, stranger: Asker, chat: Chat) -> None:
    cursor = sync(jill)["cursor"]

    edited = joe("PUT", f"chats/{chat.id}/messages/2", {"text": "Who has the keys?"})

    assert edited.status_code == 200
    [told] = sync(jill, cursor)["chats"]
    [message] = told["changed"]
    assert (told["messages"], told["unread"]) == ([], 1)
    assert (message["seq"], message["text"], message["rich"]) == (
        2,
        "Who has the keys?",
        ["Who has the keys?"],
    )
    assert message["edited_at"] == edited.json()["edited_at"]
    assert told["last_message"]["text"] == "Who has the keys?"
    address = f"chats/{chat.id}/messages/2"
    problem(jill("PUT", address, {"text": "mine"}), 403, "not-allowed")
    problem(stranger("PUT", address, {"text": "mine"}), 404, "chat-not-found")
    problem(joe("PUT", f"chats/{chat.id}/messages/9", {"text": "x"}), 404, "message-not-found")
    problem(joe("PUT", address, {"text": "x" * 4_001}), 422, "invalid-message")


def test_a_reaction_is_added_and_removed(joe: Asker, jill: Asker, stranger: Asker, chat: Chat) -> None:
    cursor, address = sync(joe)["cursor"], f"chats/{chat.id}/messages/2/reactions"

    for _ in range(2):
        assert jill("POST", address, {"emoji": "👍"}).status_code == 204

    told = sync(joe, cursor)
    [message] = told["chats"][0]["changed"]
    assert message["reactions"] == {"👍": [jill.id]}
    assert told["people"][jill.id] == "jill"
    assert jill("POST", address, {"emoji": "👍", "is_on": False}).status_code == 204
    assert joe("GET", f"chats/{chat.id}/messages/2").json()["reactions"] == {}
    problem(jill("POST", address, {"emoji": "x"}), 422, "invalid-message")
    problem(jill("POST", address, {}), 422, "invalid-value")
    problem(stranger("POST", address, {"emoji": "👍"}), 404, "chat-not-found")


def test_a_message_has_its_formatting_as_a_tree(jill: Asker, chat: Chat) -> None:
    told = jill("GET", f"chats/{chat.id}/messages").json()["messages"][1]

    assert (told["text"], told["rich"]) == ("**Who** has the key?", [["strong", "Who"], " has the key?"])


def test_the_badge_has_what_is_unread_in_all_chats(joe: Asker, jill: Asker, chat: Chat) -> None:
    chat.send(joe.id, "@jill", mentions=[jill.id])
    Chat.create(joe.id, members=[jill.id], text="hello")

    assert jill("GET", "unread").json() == {"messages": 3, "mentions": 1, "chats": 2}
    assert joe("GET", "unread").json() == {"messages": 0, "mentions": 0, "chats": 0}
