"""Presence and typing over HTTP."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth.models import User
from django.test.utils import override_settings
from redis import Redis

from components.kit.news import channel
from components.services.chat import Chat, Presence
from components.services.chat.api import presence
from components.services.chat.api.presence import Throttle
from components.services.chat.keys import ChatKeys
from tests.api.serving import serve
from tests.fixtures.api import Asker, problem
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("redis")


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "_throttle", Throttle(rate=0.01, burst=5))


@pytest.fixture
def chat(joe: Asker, jill: Asker) -> Chat:
    return Chat.create(joe.id, members=[jill.id], text="hello")


def is_joe(user: str) -> bool:
    return User.objects.get(pk=user).get_username() == "joe"


def test_members_learn_who_is_there_and_who_is_typing(joe: Asker, jill: Asker, chat: Chat) -> None:
    address = f"chats/{chat.id}"
    alone = jill("POST", f"{address}/presence", {"timeout": 0})
    assert alone.json() == {"here": [], "count": 0, "typing": [], "people": {}}
    assert 3 <= int(alone["Retry-After"]) <= 8  # WSGI does not wait

    assert jill("POST", f"{address}/typing", {}).status_code == 204

    told = joe("POST", f"{address}/presence", {"typing": []}).json()
    assert told == {"here": [jill.id], "count": 1, "typing": [jill.id], "people": {jill.id: "jill"}}
    members = {each["id"]: each for each in joe("GET", f"{address}/members").json()["members"]}
    assert (members[jill.id]["is_here"], members[joe.id]["is_here"]) == (True, True)
    assert members[jill.id]["seen_at"]
    jill("POST", f"{address}/messages", {"text": "there"})
    assert joe("POST", f"{address}/presence", {}).json()["typing"] == []


def test_strangers_and_those_who_may_not_send_are_refused(
    joe: Asker, jill: Asker, stranger: Asker, chat: Chat
) -> None:
    address = f"chats/{chat.id}"
    for path in ("presence", "typing"):
        problem(stranger("POST", f"{address}/{path}", {}), 404, "chat-not-found")
        problem(joe("POST", f"chats/no-such-chat/{path}", {}), 404, "chat-not-found")
    problem(joe("POST", f"{address}/presence", {"typing": "joe"}), 422, "invalid-value")
    chat.mute(jill.id)
    problem(jill("POST", f"{address}/typing", {}), 403, "muted")
    joe("POST", f"{address}/presence", {})
    assert jill("POST", f"{address}/presence", {}).json()["count"] == 0
    chat.close()
    problem(joe("POST", f"{address}/typing", {}), 409, "chat-closed")


def test_typing_without_pause_is_too_fast(joe: Asker, chat: Chat) -> None:
    for _ in range(5):
        assert joe("POST", f"chats/{chat.id}/typing", {}).status_code == 204

    problem(joe("POST", f"chats/{chat.id}/typing", {}), 429, "too-fast")


def test_hidden_people_are_not_shown(joe: Asker, jill: Asker, chat: Chat) -> None:
    address = f"chats/{chat.id}"
    joe("POST", f"{address}/presence", {})
    with override_settings(COMPONENTS={"CHAT_HIDDEN": f"{__name__}.is_joe"}):
        assert joe("POST", f"{address}/typing", {}).status_code == 204
        joe("POST", f"{address}/presence", {})
        assert jill("POST", f"{address}/presence", {}).json()["here"] == []
        assert joe("POST", f"{address}/presence", {}).json()["here"] == [jill.id]


def test_a_site_without_presence_tells_clients_to_come_back_later(
    redis: Redis, joe: Asker, jill: Asker, chat: Chat
) -> None:
    with override_settings(COMPONENTS={"CHAT_PRESENCE": False}):
        for asker in (joe, jill):
            asker("POST", f"chats/{chat.id}/typing", {})
            told = asker("POST", f"chats/{chat.id}/presence", {})
        assert (told.json()["here"], told.json()["typing"], told["Retry-After"]) == ([], [], "60")

    assert not redis.exists(ChatKeys(chat.id).here, ChatKeys(chat.id).typing)


def test_a_request_waits_until_somebody_begins_to_type(redis: Redis) -> None:
    chat = Chat.create("joe", members=["jill"], text="hello")
    with serve() as site, ThreadPoolExecutor() as threads:
        asked = {"typing": [], "timeout": 50}
        waiting = threads.submit(site.ask, "POST", f"chats/{chat.id}/presence", asked)
        assert eventually(lambda: redis.pubsub_numsub(channel("typing", chat.id))[0][1])

        assert site.ask("POST", f"chats/{chat.id}/typing", by="jill")[0] == 204

        status, told, headers = waiting.result(20)
        assert (status, told["typing"], headers["Retry-After"]) == (200, ["jill"], None)
        assert Presence(chat.id).look("jill").here == ("joe",)
