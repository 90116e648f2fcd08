"""Search in the history over HTTP."""

from __future__ import annotations

import pytest

from components.services.chat import Chat
from components.services.chat.api import messages
from components.services.chat.api.messages import Throttle
from tests.fixtures.api import Asker, problem

pytestmark = pytest.mark.usefixtures("redis")


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "_throttle", Throttle(rate=0.01, burst=20))


@pytest.fixture
def chat(joe: Asker, jill: Asker) -> Chat:
    chat = Chat.create(joe.id, members=[jill.id], text="The **keys**")
    chat.send(jill.id, "My keyboard")
    return chat


def test_messages_are_found(joe: Asker, jill: Asker, chat: Chat) -> None:
    address = f"chats/{chat.id}/search"

    told = joe("GET", f"{address}?q=KEY").json()
    assert [each["text"] for each in told["messages"]] == ["My keyboard", "The **keys**"]
    assert (told["next"], told["people"][jill.id]) == (None, "jill")

    first = joe("GET", f"{address}?q=key&limit=1").json()
    rest = joe("GET", f"{address}?q=key&limit=1&before={first['next']}").json()
    assert [each["seq"] for each in (*first["messages"], *rest["messages"])] == [3, 2]


def test_bad_requests_and_strangers_are_refused(joe: Asker, stranger: Asker, chat: Chat) -> None:
    address = f"chats/{chat.id}/search"

    problem(stranger("GET", f"{address}?q=key"), 404, "chat-not-found")
    for query in ("", "?q=", "?q=%20", "?q=a+b+c+d+e+f+g+h+i", f"?q={'x' * 201}", "?q=key&limit=0"):
        problem(joe("GET", address + query), 422, "invalid-value")


def test_searching_without_pause_is_too_fast(joe: Asker, chat: Chat) -> None:
    for _ in range(20):
        assert joe("GET", f"chats/{chat.id}/search?q=key").status_code == 200

    answer = joe("GET", f"chats/{chat.id}/search?q=key")
    problem(answer, 429, "too-fast")
    assert answer["Retry-After"]
