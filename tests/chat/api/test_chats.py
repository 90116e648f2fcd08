"""Chats over HTTP: what answers hold, and refusals that the description cannot tell (tests/api/test_contract.py)."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test.utils import override_settings
from redis import Redis

from components.api.throttle import Throttle
from components.kit.news import channel
from components.services.chat import Chat, Inbox, Presence
from components.services.chat.api import members, messages, presence
from components.services.chat.keys import ChatKeys
from tests.api.serving import serve
from tests.fixtures.api import Asker, problem
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("redis")


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (members, messages, presence):
        monkeypatch.setattr(module, "_throttle", Throttle(rate=0.01, burst=5))


@pytest.fixture
def chat(joe: Asker, jill: Asker) -> str:
    """Return the address of joe's chat with jill, which has a first message."""
    made = joe("POST", "chats", {"members": [jill.id], "text": "welcome", "title": "Guild"})
    return f"chats/{made.json()['id']}"


def send(asker: Asker, chat: str, text: str, **more: Any) -> Any:
    answer = asker("POST", f"{chat}/messages", {"text": text, **more})
    assert answer.status_code == 201, answer.content
    return answer.json()


def texts(asker: Asker, chat: str, query: str = "") -> list[str]:
    told = asker("GET", f"{chat}/messages{query}").json()
    return [each["text"] for each in told["messages"] if each["event"] is None]


# Creating and listing


def test_a_chat_is_created_once(joe: Asker, jill: Asker) -> None:
    content = {"members": [jill.id, joe.id, jill.id], "text": "welcome", "title": "Guild"}
    made, again = (joe("POST", "chats", content, Idempotency_Key="k") for _ in range(2))
    other = jill("POST", "chats", content, Idempotency_Key="k")

    told = made.json()
    assert made["Location"] == f"/api/chats/{told['id']}"
    assert (told["title"], told["role"], told["member_count"]) == ("Guild", "owner", 2)
    assert (told["is_closed"], told["last_message"]["text"]) == (False, "welcome")
    assert told["id"] == again.json()["id"] != other.json()["id"]
    assert texts(joe, f"chats/{told['id']}") == ["welcome"]
    assert joe("POST", "chats").json()["member_count"] == 1  # it needs no fields


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ({"members": ["999999"]}, "invalid-value"),
        ({"title": "a\0b"}, "invalid-value"),
        ({"title": "two\nlines"}, "invalid-value"),
        ({"slow_mode": 1e-9}, "invalid-value"),
        ({"id": "guild:1"}, "invalid-value"),
        ({"rate_limit": 0}, "invalid-value"),
        ({"text": "a", "data": "b" * 9_000}, "invalid-message"),
        ({"data": ["\ud800"]}, "invalid-message"),
    ],
)
def test_a_chat_with_invalid_values_is_not_created(
    joe: Asker, redis: Redis, content: dict[str, Any], kind: str
) -> None:
    told = problem(joe("POST", "chats", content), 422, kind)

    assert told.get("field", next(iter(content))) == next(iter(content))
    assert redis.dbsize() == 0


def test_the_list_comes_in_pages_with_shortened_messages(joe: Asker, jill: Asker) -> None:
    made = [
        Chat.create(joe.id, text="x" * 4_000, data={"a": "b" * 4_000}, title=str(number)).id
        for number in range(4)
    ]
    talk = Chat.create(joe.id, members=[jill.id], title="Guild")
    talk.send(joe.id, "y" * 4_000, mentions=[jill.id])
    seen, told = [], {"next": ""}
    while told["next"] is not None:
        told = joe("GET", f"chats?limit=3&after={told['next']}" if told["next"] else "chats?limit=3").json()
        seen += told["chats"]

    assert seen[0]["id"] == talk.id
    assert sorted(chat["id"] for chat in seen) == sorted([*made, talk.id])
    for chat in seen:
        last = chat["last_message"]
        assert (len(last["text"]), last["data"], last["mentions"]) == (200, None, [])
    for query in ("after=", "after=x", "after=5-%2F"):
        problem(joe("GET", f"chats?{query}"), 422, "invalid-value")
    told = jill("GET", "chats").json()
    [found] = told["chats"]
    assert (found["title"], found["role"], found["unread"], found["mentions"]) == ("Guild", "member", 1, 1)
    assert (found["last_message"]["sender"], told["people"][joe.id]) == (joe.id, "joe")


def test_the_badge_has_what_is_unread_in_all_chats(joe: Asker, jill: Asker, chat: str) -> None:
    send(joe, chat, "@jill", mentions=[jill.id])
    Chat.create(joe.id, members=[jill.id], text="hello")

    assert jill("GET", "unread").json() == {"messages": 3, "mentions": 1, "chats": 2}
    assert joe("GET", "unread").json() == {"messages": 0, "mentions": 0, "chats": 0}


# Messages


def test_a_message_is_sent_once_and_read(joe: Asker, jill: Asker, chat: str) -> None:
    content = {"text": "**hi** @joe", "data": {"a": 1}, "mentions": [joe.id]}
    sent, again = (jill("POST", f"{chat}/messages", content, Idempotency_Key="k") for _ in range(2))

    told = sent.json()
    assert (sent.status_code, again.status_code) == (201, 200)
    assert again.json() == {**told, "is_duplicate": True}
    assert sent["Location"] == f"/api/{chat}/messages/{told['seq']}"
    message = joe("GET", f"{chat}/messages/{told['seq']}").json()
    assert message == {
        "seq": 3,
        "sender": jill.id,
        "text": "**hi** @joe",
        "rich": [["strong", "hi"], " @joe"],
        "data": {"a": 1},
        "mentions": [joe.id],
        "sent_at": told["sent_at"],
        "client_id": "k",
        "event": None,
        "is_unreadable": False,
        "reply_to": None,
        "edited_at": None,
        "reactions": {},
        "people": {joe.id: "joe", jill.id: "jill"},
    }
    assert joe("GET", chat).json()["mentions"] == 1


def test_the_history_goes_both_ways(joe: Asker, chat: str) -> None:
    for number in range(7):
        send(joe, chat, str(number))

    for query, seqs, has_more, has_newer in (
        ("before=8&limit=2", [6, 7], True, False),
        ("after=8", [9], False, False),
        ("around=6&limit=4", [5, 6, 7, 8], True, True),
    ):
        told = joe("GET", f"{chat}/messages?{query}").json()
        assert [each["seq"] for each in told["messages"]] == seqs
        assert (told["has_more"], told["has_newer"], told["oldest"]) == (has_more, has_newer, 1)
    for both in ("before=1&after=1", "around=6&before=3", "after=0&around=0"):
        problem(joe("GET", f"{chat}/messages?{both}"), 422, "invalid-value")


@pytest.mark.parametrize("seq", ["-1", "x", "1.5", "%00", "1" * 17, "9007199254740992", "٣"])
def test_a_message_that_does_not_exist_is_not_found(joe: Asker, chat: str, seq: str) -> None:
    for method in ("GET", "DELETE"):
        problem(joe(method, f"{chat}/messages/{seq}"), 404, "message-not-found")


def test_the_reading_position_only_moves_forward(joe: Asker, jill: Asker, chat: str) -> None:
    seq = send(joe, chat, "a")["seq"]

    for wanted in (seq, 1, 2**53 - 1):
        assert jill("POST", f"{chat}/read", {"seq": wanted}).json() == {"read_seq": seq}
    assert jill("GET", chat).json()["unread"] == 0
    assert joe("GET", chat).json()["reads"][jill.id] == seq


def test_replies_edits_and_reactions_are_told(joe: Asker, jill: Asker, chat: str) -> None:
    send(jill, chat, "thanks", reply_to=2)
    cursor = joe("GET", "sync").json()["cursor"]

    edited = joe("PUT", f"{chat}/messages/2", {"text": "**Welcome**", "mentions": [jill.id]})
    for _ in range(2):
        assert jill("POST", f"{chat}/messages/2/reactions", {"emoji": "👍"}).status_code == 204
    told = joe("GET", f"sync?timeout=0&cursor={cursor}").json()

    [found] = told["chats"]
    [message] = found["changed"]
    assert (found["messages"], message["seq"], message["edited_at"]) == ([], 2, edited.json()["edited_at"])
    assert (message["rich"], message["mentions"]) == ([["strong", "Welcome"]], [jill.id])
    assert (message["reactions"], told["people"][jill.id]) == ({"👍": [jill.id]}, "jill")
    reply = joe("GET", f"{chat}/messages/3").json()["reply_to"]
    assert reply == {"seq": 2, "sender": joe.id, "text": "Welcome"}
    jill("POST", f"{chat}/messages/2/reactions", {"emoji": "👍", "is_on": False})
    assert joe("GET", f"{chat}/messages/2").json()["reactions"] == {}


def test_messages_are_found(joe: Asker, jill: Asker, chat: str) -> None:
    for text in ("The **keys**", "My keyboard"):
        send(jill, chat, text)

    told = joe("GET", f"{chat}/search?q=KEY").json()
    assert [each["text"] for each in told["messages"]] == ["My keyboard", "The **keys**"]
    assert (told["next"], told["people"][jill.id]) == (None, "jill")
    first = joe("GET", f"{chat}/search?q=key&limit=1").json()
    rest = joe("GET", f"{chat}/search?q=key&limit=1&before={first['next']}").json()
    assert [each["seq"] for each in (*first["messages"], *rest["messages"])] == [4, 3]
    problem(joe("GET", f"{chat}/search?q=a+b+c+d+e+f+g+h+i"), 422, "invalid-value")


# Members


def test_members_are_listed_changed_and_removed(joe: Asker, jill: Asker, stranger: Asker, chat: str) -> None:
    added = joe("POST", f"{chat}/members", {"users": [stranger.id, jill.id]})
    assert added.json() == {"added": [stranger.id]}
    problem(joe("POST", f"{chat}/members", {"users": ["999999"]}), 422, "invalid-value")

    muted = joe("PATCH", f"{chat}/members/{jill.id}", {"muted_for": 60}).json()["members"]
    assert [(each["name"], each["role"], each["muted_until"] is None) for each in muted] == [
        ("joe", "owner", True),
        ("jill", "member", False),
        ("stranger", "member", True),
    ]
    freed = joe("PATCH", f"{chat}/members/{jill.id}", {"muted_for": None, "role": "moderator"}).json()
    assert [(each["role"], each["muted_until"]) for each in freed["members"]][1] == ("moderator", None)
    problem(joe("PATCH", f"{chat}/members/{joe.id}", {"role": "member"}), 403, "not-allowed")

    assert joe("DELETE", f"{chat}/members/{stranger.id}").status_code == 204
    assert joe("DELETE", f"{chat}/members/{jill.id}?block=true").status_code == 204
    problem(joe("POST", f"{chat}/members", {"users": [jill.id]}), 403, "blocked")
    assert joe("DELETE", f"{chat}/blocked/{jill.id}").status_code == 204
    joe("POST", f"{chat}/members", {"users": [jill.id]})
    assert jill("DELETE", f"{chat}/members/{jill.id}").status_code == 204
    assert jill("GET", "chats").json()["chats"] == []


def test_an_owner_changes_closes_and_reopens_their_chat(joe: Asker, jill: Asker, chat: str) -> None:
    content = {"title": "Hall", "slow_mode": 5, "history": 10, "is_open": True}
    told = joe("PATCH", chat, content).json()

    limits = {"max_text": 4_000, "max_members": 1_000}
    assert told["title"] == "Hall"
    assert told["settings"] == {"history": 10, "slow_mode": 5, "is_open": True, **limits}
    assert joe("PATCH", chat, {"history": None}).json()["settings"]["history"] is None
    assert joe("PATCH", chat, {"title": ""}).json()["title"] == ""
    assert joe("PATCH", chat).json()["title"] == ""
    problem(jill("PATCH", chat, {"slow_mode": 0}), 403, "not-allowed")
    assert joe("POST", f"{chat}/close").status_code == 204
    assert jill("GET", chat).json()["is_closed"] is True
    assert joe("POST", f"{chat}/reopen").status_code == 204
    send(jill, chat, "a")


def unwilling_jill(by: str, ids: Iterable[str]) -> set[str]:
    return {each for each in ids if User.objects.get(pk=each).username == "jill"}


def test_people_join_chats_only_by_their_consent(joe: Asker, jill: Asker, stranger: Asker) -> None:
    chat = f"chats/{joe('POST', 'chats', {'is_open': True, 'history': 0}).json()['id']}"

    with override_settings(COMPONENTS={"CHAT_CONSENT": f"{__name__}.unwilling_jill"}):
        told = problem(joe("POST", "chats", {"members": [jill.id, stranger.id]}), 422, "invalid-value")
        assert jill.id in told["detail"]
        problem(joe("POST", f"{chat}/members", {"users": [jill.id]}), 422, "invalid-value")
        assert joe("POST", f"{chat}/members", {"users": [stranger.id]}).json()["added"] == [stranger.id]
        assert jill("POST", f"{chat}/join").json()["role"] == "member"  # by their own wish


def test_a_project_says_who_may_be_added_and_who_may_join(joe: Asker, jill: Asker, stranger: Asker) -> None:
    open, closed = (
        joe("POST", "chats", {"is_open": is_open, "members": [jill.id]}).json()["id"]
        for is_open in (True, False)
    )

    with override_settings(COMPONENTS={"PEOPLE": "tests.test_people.Friends"}):
        assert (
            jill.id in problem(joe("POST", "chats", {"members": [jill.id]}), 422, "invalid-value")["detail"]
        )
        problem(stranger("POST", f"chats/{open}/join"), 403, "blocked")
        problem(stranger("POST", f"chats/{closed}/join"), 404, "chat-not-found")
        assert jill("POST", f"chats/{open}/join").status_code == 200  # who is in it stays

    assert {each.user for each in Chat(open).members()} == {joe.id, jill.id}
    assert Inbox(stranger.id).chats() == []


def test_the_limits_of_creating_say_when_there_is_room(joe: Asker) -> None:
    with override_settings(COMPONENTS={"CHAT_CREATE_LIMIT": 2}):
        first, _other = (joe("POST", "chats", {}, Idempotency_Key=key).json()["id"] for key in "ab")
        refused = joe("POST", "chats")

        problem(refused, 429, "too-fast")
        assert 1_700 < int(refused["Retry-After"]) <= 1_800
        assert joe("POST", "chats", {}, Idempotency_Key="a").json()["id"] == first


# Presence


def is_joe(user: str) -> bool:
    return User.objects.get(pk=user).get_username() == "joe"


def test_members_learn_who_is_there_and_who_is_typing(joe: Asker, jill: Asker, chat: str) -> None:
    alone = jill("POST", f"{chat}/presence", {"timeout": 0})
    assert alone.json() == {"here": [], "count": 0, "typing": [], "people": {}}
    assert 3 <= int(alone["Retry-After"]) <= 8
    assert jill("POST", f"{chat}/typing", {}).status_code == 204

    told = joe("POST", f"{chat}/presence", {"typing": []}).json()

    assert told == {"here": [jill.id], "count": 1, "typing": [jill.id], "people": {jill.id: "jill"}}
    members = {each["id"]: each for each in joe("GET", f"{chat}/members").json()["members"]}
    assert (members[jill.id]["is_here"], members[joe.id]["is_here"]) == (True, True)
    assert members[jill.id]["seen_at"]
    with override_settings(COMPONENTS={"CHAT_HIDDEN": f"{__name__}.is_joe"}):
        assert joe("POST", f"{chat}/typing", {}).status_code == 204
        assert joe("POST", f"{chat}/presence", {}).json()["here"] == [jill.id]
        hidden = jill("POST", f"{chat}/presence", {}).json()
        assert (hidden["here"], hidden["typing"]) == ([], [])


def test_a_site_without_presence_tells_clients_to_come_back_later(
    joe: Asker, redis: Redis, chat: str
) -> None:
    with override_settings(COMPONENTS={"CHAT_PRESENCE": False}):
        joe("POST", f"{chat}/typing", {})
        told = joe("POST", f"{chat}/presence", {})

    assert (told.json()["here"], told.json()["typing"], told["Retry-After"]) == ([], [], "60")
    keys = ChatKeys(chat.partition("/")[2])
    assert not redis.exists(keys.here, keys.typing)


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
