"""Chats over HTTP. Strangers learn nothing, and nothing invalid is stored."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from textwrap import dedent
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test.utils import override_settings
from redis import Redis

from components.embedded import EmbeddedServer
from components.services.chat import Chat, ChatSettings, Inbox
from tests.fixtures.api import Asker, problem

pytestmark = pytest.mark.usefixtures("redis")


@pytest.fixture
def chat(joe: Asker, jill: Asker) -> str:
    """Return the id of joe's chat with jill, which has a first message."""
    made = joe("POST", "chats", {"members": [jill.id], "text": "welcome", "title": "Guild"})
    assert made.status_code == 201, made.content
    id: str = made.json()["id"]
    return id


def send(asker: Asker, chat: str, text: str, **headers: str) -> Any:
    answer = asker("POST", f"chats/{chat}/messages", {"text": text}, **headers)
    assert answer.status_code in (200, 201), answer.content
    return answer.json()


def texts(asker: Asker, chat: str, query: str = "") -> list[str]:
    answer = asker("GET", f"chats/{chat}/messages{query}")
    assert answer.status_code == 200, answer.content
    return [each["text"] for each in answer.json()["messages"] if each["event"] is None]


# Creating and listing


def test_a_chat_is_created_with_members_and_a_first_message(joe: Asker, jill: Asker) -> None:
    made = joe("POST", "chats", {"members": [jill.id, joe.id, jill.id], "text": "welcome", "title": "Guild"})

    told = made.json()
    assert made.status_code == 201
    assert made["Location"] == f"/api/chats/{told['id']}"
    assert (told["title"], told["role"], told["member_count"], told["is_closed"]) == (
        "Guild",
        "owner",
        2,
        False,
    )
    assert told["last_message"]["text"] == "welcome"
    assert jill("GET", "chats").json()["chats"][0]["id"] == told["id"]


def test_a_chat_needs_no_fields(joe: Asker) -> None:
    made = joe("POST", "chats")

    assert made.status_code == 201
    assert made.json()["member_count"] == 1


def test_a_repeated_creation_makes_one_chat(joe: Asker, jill: Asker) -> None:
    content = {"members": [jill.id], "text": "welcome"}
    first, again = (joe("POST", "chats", content, Idempotency_Key="k") for _ in range(2))
    other = jill("POST", "chats", content, Idempotency_Key="k")

    assert first.json()["id"] == again.json()["id"] != other.json()["id"]
    assert texts(joe, first.json()["id"]) == ["welcome"]


def test_the_list_shows_unread_counts_and_last_senders(joe: Asker, jill: Asker, chat: str) -> None:
    told = jill("GET", "chats").json()
    [found] = told["chats"]

    assert (found["title"], found["role"], found["unread"], found["mentions"]) == ("Guild", "member", 1, 0)
    assert found["last_message"]["sender"] == joe.id
    assert told["people"][joe.id] == "joe"
    assert joe("GET", "chats").json()["chats"][0]["unread"] == 0


@pytest.mark.parametrize(
    "content",
    [
        {"members": ["1"] * 10_000},
        {"members": "joe"},
        {"members": [1]},
        {"members": [""]},
        {"members": ["a" * 501]},
        {"members": ["\ud800"]},
        {"members": ["999999"]},
        {"members": None},
        {"title": "a" * 201},
        {"title": 5},
        {"title": "a\0b"},
        {"title": "two\nlines"},
        {"history": -1},
        {"history": 1.5},
        {"slow_mode": -1},
        {"slow_mode": 1e-9},
        {"slow_mode": "1"},
        {"is_open": 1},
        {"id": "guild:1"},
        {"max_bytes": 10**12},
        {"rate_limit": 0},
    ],
)
def test_a_chat_with_invalid_values_is_not_created(joe: Asker, redis: Redis, content: dict[str, Any]) -> None:
    told = problem(joe("POST", "chats", content), 422, "invalid-value")

    assert told["field"] == next(iter(content))
    assert redis.dbsize() == 0


@pytest.mark.parametrize(
    "content", [{"text": "a" * 4_001}, {"text": "a", "data": "b" * 9_000}, {"data": ["\ud800"]}]
)
def test_a_chat_with_an_invalid_first_message_is_not_created(
    joe: Asker, redis: Redis, content: dict[str, Any]
) -> None:
    problem(joe("POST", "chats", content), 422, "invalid-message")
    assert redis.dbsize() == 0


def test_a_chat_of_too_many_people_is_not_created_even_if_they_exist(joe: Asker, redis: Redis) -> None:
    User.objects.bulk_create(User(username=f"user {number}") for number in range(1_001))
    ids = [str(pk) for pk in User.objects.values_list("pk", flat=True)]

    problem(joe("POST", "chats", {"members": ids}), 422, "invalid-value")
    ten_thousand = [str(number) for number in range(10_000)]
    problem(joe("POST", "chats", {"members": ten_thousand}), 413, "too-large")
    problem(joe("POST", "chats", {"members": ids[1:1001]}), 422, "too-many-members")
    assert redis.dbsize() == 0


def test_a_project_says_who_may_be_added(joe: Asker, jill: Asker, redis: Redis) -> None:
    with override_settings(COMPONENTS={"PEOPLE": "tests.test_people.Friends"}):
        told = problem(joe("POST", "chats", {"members": [jill.id]}), 422, "invalid-value")
        assert jill.id in told["detail"]
    assert redis.dbsize() == 0


# Messages


def test_sent_messages_are_read(joe: Asker, jill: Asker, chat: str) -> None:
    sent = jill("POST", f"chats/{chat}/messages", {"text": "hi @joe", "data": {"a": 1}, "mentions": [joe.id]})
    told = sent.json()
    assert sent.status_code == 201
    assert sent["Location"] == f"/api/chats/{chat}/messages/{told['seq']}"

    message = joe("GET", f"chats/{chat}/messages/{told['seq']}").json()
    assert (message["text"], message["data"], message["mentions"]) == ("hi @joe", {"a": 1}, [joe.id])
    assert (message["sender"], message["event"]) == (jill.id, None)
    assert message["sent_at"] == told["sent_at"]
    assert message["people"] == {joe.id: "joe", jill.id: "jill"}
    assert joe("GET", f"chats/{chat}").json()["mentions"] == 1


def test_a_message_sent_twice_is_stored_once(joe: Asker, chat: str) -> None:
    first = joe("POST", f"chats/{chat}/messages", {"text": "a"}, Idempotency_Key="k")
    again = joe("POST", f"chats/{chat}/messages", {"text": "a"}, Idempotency_Key="k")

    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json() == {**first.json(), "is_duplicate": True}
    assert texts(joe, chat) == ["welcome", "a"]


def test_the_history_goes_both_ways(joe: Asker, chat: str) -> None:
    seqs = [send(joe, chat, str(number))["seq"] for number in range(5)]

    assert texts(joe, chat, "?limit=2") == ["3", "4"]
    assert texts(joe, chat, f"?before={seqs[3]}&limit=2") == ["1", "2"]
    assert texts(joe, chat, f"?after={seqs[1]}&limit=2") == ["2", "3"]
    told = joe("GET", f"chats/{chat}/messages?before={seqs[0]}&limit=200").json()
    assert (told["has_more"], told["oldest"]) == (False, 1)
    assert joe("GET", f"chats/{chat}/messages?after=0&limit=1").json()["has_more"] is True


@pytest.mark.parametrize(
    "query",
    [
        "before=-1",
        "after=-1",
        "before=1&after=1",
        "limit=0",
        "limit=201",
        "limit=x",
        "limit=",
        "before=1.5",
        "before=true",
        "before=%00",
        "before=%ff",
        "after=9007199254740992",
        "offset=5",
    ],
)
def test_a_history_with_invalid_values_is_refused(joe: Asker, chat: str, query: str) -> None:
    problem(joe("GET", f"chats/{chat}/messages?{query}"), 422, "invalid-value")


@pytest.mark.parametrize("seq", ["-1", "x", "1.5", "%00", "1" * 17, "99", "9007199254740992", "٣"])
def test_a_message_that_does_not_exist_is_not_found(joe: Asker, chat: str, seq: str) -> None:
    problem(joe("GET", f"chats/{chat}/messages/{seq}"), 404, "message-not-found")


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ({}, "invalid-message"),
        ({"text": "a" * 4_001}, "invalid-message"),
        ({"data": "b" * 9_000}, "invalid-message"),
        ({"text": 5}, "invalid-value"),
        ({"text": "a", "mentions": "joe"}, "invalid-value"),
        ({"text": "a", "mentions": [""]}, "invalid-value"),
        ({"text": "a", "sender": "jill"}, "invalid-value"),
    ],
)
def test_an_invalid_message_is_not_sent(joe: Asker, chat: str, content: Any, kind: str) -> None:
    problem(joe("POST", f"chats/{chat}/messages", content), 422, kind)
    assert texts(joe, chat) == ["welcome"]


def test_the_reading_position_only_moves_forward(joe: Asker, jill: Asker, chat: str) -> None:
    seq = send(joe, chat, "a")["seq"]

    assert jill("POST", f"chats/{chat}/read", {"seq": seq}).json() == {"read_seq": seq}
    assert jill("POST", f"chats/{chat}/read", {"seq": 1}).json() == {"read_seq": seq}
    assert jill("POST", f"chats/{chat}/read", {"seq": 2**53 - 1}).json() == {"read_seq": seq}
    assert jill("GET", f"chats/{chat}").json()["unread"] == 0
    assert joe("GET", f"chats/{chat}").json()["reads"][jill.id] == seq


@pytest.mark.parametrize(
    "content", [{}, {"seq": -1}, {"seq": "1"}, {"seq": None}, {"seq": 2**53}, {"seq": 1.5}]
)
def test_an_invalid_reading_position_is_refused(jill: Asker, chat: str, content: Any) -> None:
    problem(jill("POST", f"chats/{chat}/read", content), 422, "invalid-value")


def test_the_rate_limit_says_when_to_come_back(joe: Asker) -> None:
    chat = Chat.create(joe.id, settings=ChatSettings(rate_limit=2, rate_period=100))
    for _ in range(2):
        send(joe, chat.id, "a")

    answer = joe("POST", f"chats/{chat.id}/messages", {"text": "a"})
    problem(answer, 429, "too-fast")
    assert 1 <= int(answer["Retry-After"]) <= 50
    assert texts(joe, chat.id) == ["a", "a"]


def test_the_limit_holds_across_processes(joe: Asker, redis_server: EmbeddedServer) -> None:
    chat = Chat.create(joe.id, settings=ChatSettings(rate_limit=6, rate_period=1_000))

    with ThreadPoolExecutor(2) as pool:
        sent = sum(pool.map(lambda _: send_elsewhere(redis_server, joe.id, chat.id), range(2)))

    assert sent == 6
    problem(joe("POST", f"chats/{chat.id}/messages", {"text": "a"}), 429, "too-fast")
    assert len(texts(joe, chat.id)) == 6


def send_elsewhere(server: EmbeddedServer, sender: str, chat: str) -> int:
    """Send in another process until the rate limit is reached. Return how many messages were sent."""
    program = f"""
        import django; django.setup()
        from components.exceptions import TooFast
        from components.services.chat import Chat
        from components.testing import redis_at
        sent = 0
        with redis_at({server.url!r}):
            try:
                while sent < 100:
                    Chat({chat!r}).send({sender!r}, "a")
                    sent += 1
            except TooFast:
                print(sent)
    """
    done = subprocess.run(
        [sys.executable, "-c", dedent(program)], capture_output=True, text=True, check=True, timeout=60
    )
    return int(done.stdout)


# Strangers


@pytest.mark.parametrize(
    ("method", "path", "content"),
    [
        ("GET", "", None),
        ("PATCH", "", {"title": "mine"}),
        ("PATCH", "", {"is_open": True}),
        ("PATCH", "", {}),
        ("GET", "/messages", None),
        ("GET", "/messages?after=0", None),
        ("GET", "/messages/1", None),
        ("POST", "/messages", {"text": "a"}),
        ("DELETE", "/messages/2", None),
        ("POST", "/read", {"seq": 1}),
        ("GET", "/members", None),
        ("POST", "/members", {"users": ["999999"]}),
        ("PATCH", "/members/{joe}", {"role": "member"}),
        ("PATCH", "/members/{joe}", {"muted_for": 5}),
        ("PATCH", "/members/{joe}", {"muted_for": None}),
        ("PATCH", "/members/{joe}", {}),
        ("DELETE", "/members/{joe}", None),
        ("DELETE", "/members/{joe}?block=true", None),
        ("DELETE", "/members/{stranger}", None),
        ("DELETE", "/blocked/{joe}", None),
        ("POST", "/join", None),
        ("POST", "/close", None),
        ("POST", "/reopen", None),
    ],
)
def test_a_chat_looks_to_a_stranger_as_if_it_did_not_exist(
    joe: Asker, stranger: Asker, chat: str, redis: Redis, method: str, path: str, content: Any
) -> None:
    path = path.format(joe=joe.id, stranger=stranger.id)
    before = {key: redis.dump(key) for key in redis.scan_iter()}

    answers = [stranger(method, f"chats/{id}{path}", content) for id in (chat, chat[::-1])]
    told = [dict(problem(answer, 404, "chat-not-found")) for answer in answers]
    told[1]["detail"] = told[1]["detail"].replace(chat[::-1], chat)
    assert told[0] == told[1]
    assert {key: redis.dump(key) for key in redis.scan_iter()} == before


@pytest.mark.parametrize("id", ["-1", "%00", "%ff", "a" * 65, ".", "{a}", "a b", "1%0d%0aX-A: b"])
def test_an_id_that_no_chat_can_have_is_not_found(joe: Asker, id: str) -> None:
    problem(joe("GET", f"chats/{id}"), 404, "chat-not-found")
    problem(joe("POST", f"chats/{id}/messages", {"text": "a"}), 404, "chat-not-found")


def test_a_person_who_left_cannot_read(joe: Asker, jill: Asker, chat: str) -> None:
    assert jill("DELETE", f"chats/{chat}/members/{jill.id}").status_code == 204

    problem(jill("GET", f"chats/{chat}/messages"), 404, "chat-not-found")
    assert jill("GET", "chats").json()["chats"] == []
    assert Inbox(joe.id).chats()[0].members == 1


# Members


def test_members_are_listed_with_their_names_and_roles(joe: Asker, jill: Asker, chat: str) -> None:
    found = jill("GET", f"chats/{chat}/members").json()["members"]

    assert [(each["id"], each["name"], each["role"]) for each in found] == [
        (joe.id, "joe", "owner"),
        (jill.id, "jill", "member"),
    ]


def test_the_owner_adds_kicks_and_blocks(joe: Asker, jill: Asker, stranger: Asker, chat: str) -> None:
    added = joe("POST", f"chats/{chat}/members", {"users": [stranger.id, jill.id]})
    assert added.json() == {"added": [stranger.id]}
    problem(jill("DELETE", f"chats/{chat}/members/{stranger.id}"), 403, "not-allowed")

    assert joe("DELETE", f"chats/{chat}/members/{stranger.id}").status_code == 204
    problem(joe("DELETE", f"chats/{chat}/members/{stranger.id}"), 404, "member-not-found")
    assert joe("DELETE", f"chats/{chat}/members/{jill.id}?block=true").status_code == 204
    problem(joe("POST", f"chats/{chat}/members", {"users": [jill.id]}), 403, "blocked")
    assert joe("DELETE", f"chats/{chat}/blocked/{jill.id}").status_code == 204
    assert joe("POST", f"chats/{chat}/members", {"users": [jill.id]}).json() == {"added": [jill.id]}


def test_only_existing_people_can_be_members(joe: Asker, chat: str) -> None:
    for users in (["999999"], ["999999", "\0"], "joe", [5], [str(number) for number in range(1_001)]):
        problem(joe("POST", f"chats/{chat}/members", {"users": users}), 422, "invalid-value")
    problem(joe("POST", f"chats/{chat}/members", {}), 422, "invalid-value")
    problem(joe("DELETE", f"chats/{chat}/members/999999"), 404, "member-not-found")
    problem(joe("DELETE", f"chats/{chat}/members/5?block=maybe"), 422, "invalid-value")


def test_the_owner_mutes_members_and_changes_roles(joe: Asker, jill: Asker, chat: str) -> None:
    muted = joe("PATCH", f"chats/{chat}/members/{jill.id}", {"muted_for": 60})
    assert muted.json()["members"][1]["muted_until"]
    problem(jill("POST", f"chats/{chat}/messages", {"text": "a"}), 403, "muted")
    freed = joe("PATCH", f"chats/{chat}/members/{jill.id}", {"muted_for": None, "role": "moderator"})
    assert [(each["muted_until"], each["role"]) for each in freed.json()["members"]] == [
        (None, "owner"),
        (None, "moderator"),
    ]
    send(jill, chat, "a")

    problem(jill("PATCH", f"chats/{chat}/members/{joe.id}", {"role": "member"}), 403, "not-allowed")
    problem(joe("PATCH", f"chats/{chat}/members/{joe.id}", {"role": "member"}), 403, "not-allowed")
    for content in (
        {"role": "king"},
        {"role": None},
        {"muted_for": -1},
        {"muted_for": 1e-9},
        {"muted_for": "1"},
    ):
        problem(joe("PATCH", f"chats/{chat}/members/{jill.id}", content), 422, "invalid-value")


def test_an_open_chat_can_be_joined(joe: Asker, stranger: Asker) -> None:
    chat = joe("POST", "chats", {"is_open": True, "history": 0}).json()["id"]
    problem(stranger("GET", f"chats/{chat}"), 404, "chat-not-found")

    joined = stranger("POST", f"chats/{chat}/join")
    assert (joined.status_code, joined.json()["role"]) == (200, "member")


def test_a_person_who_may_not_write_to_a_member_cannot_join(joe: Asker, jill: Asker, stranger: Asker) -> None:
    chat = joe("POST", "chats", {"is_open": True, "members": [jill.id]}).json()["id"]
    closed = joe("POST", "chats", {"members": [jill.id]}).json()["id"]

    with override_settings(COMPONENTS={"PEOPLE": "tests.test_people.Friends"}):
        problem(stranger("POST", f"chats/{chat}/join"), 403, "blocked")
        problem(stranger("POST", f"chats/{closed}/join"), 404, "chat-not-found")
        assert jill("POST", f"chats/{chat}/join").status_code == 200  # who is in it stays

    assert {each.user for each in Chat(chat).members()} == {joe.id, jill.id}
    assert Inbox(stranger.id).chats() == []


def unwilling_jill(by: str, ids: Iterable[str]) -> set[str]:
    return {each for each in ids if User.objects.get(pk=each).username == "jill"}


def test_people_join_chats_only_by_their_consent(joe: Asker, jill: Asker, stranger: Asker) -> None:
    chat = joe("POST", "chats", {"is_open": True}).json()["id"]

    with override_settings(COMPONENTS={"CHAT_CONSENT": "tests.chat.api.test_chats.unwilling_jill"}):
        told = problem(joe("POST", "chats", {"members": [jill.id, stranger.id]}), 422, "invalid-value")
        assert jill.id in told["detail"]
        problem(joe("POST", f"chats/{chat}/members", {"users": [jill.id]}), 422, "invalid-value")
        assert joe("POST", f"chats/{chat}/members", {"users": [stranger.id]}).json()["added"] == [stranger.id]
        assert jill("POST", "chats", {}).status_code == 201
        assert jill("POST", f"chats/{chat}/join").status_code == 200  # by their own wish


FEW = {"CHAT_CREATE_LIMIT": 2, "CHAT_ADD_LIMIT": 2, "MAX_CHATS_JOINED": 3}


def test_the_limits_of_creating_and_adding_say_when_there_is_room(
    joe: Asker, jill: Asker, stranger: Asker
) -> None:
    with override_settings(COMPONENTS=FEW):
        first = joe("POST", "chats", {"is_open": True}, Idempotency_Key="same").json()["id"]
        joe("POST", "chats", {"members": [jill.id]})

        refused = joe("POST", "chats")
        problem(refused, 429, "too-fast")
        assert 1_700 < int(refused["Retry-After"]) <= 1_800
        assert joe("POST", "chats", {}, Idempotency_Key="same").json()["id"] == first

        assert joe("POST", f"chats/{first}/members", {"users": [jill.id]}).status_code == 200
        refused = joe("POST", f"chats/{first}/members", {"users": [stranger.id]})
        problem(refused, 429, "too-fast")
        assert 1_700 < int(refused["Retry-After"]) <= 1_800
    assert len(Inbox(joe.id).chats()) == 2
    assert Inbox(stranger.id).chats() == []


def test_the_number_of_chats_of_a_person_is_limited(joe: Asker, jill: Asker, stranger: Asker) -> None:
    for _ in range(3):
        Chat.create(jill.id)
    chat = Chat.create(joe.id, settings=ChatSettings(is_open=True))
    with override_settings(COMPONENTS=FEW):
        problem(joe("POST", "chats", {"members": [jill.id]}), 409, "too-many-chats")
        problem(joe("POST", f"chats/{chat.id}/members", {"users": [jill.id]}), 409, "too-many-chats")
        problem(jill("POST", f"chats/{chat.id}/join"), 409, "too-many-chats")
    with override_settings(COMPONENTS={"MAX_CHATS_CREATED": 1}):
        assert stranger("POST", "chats").status_code == 201
        problem(stranger("POST", "chats"), 409, "too-many-chats")
    assert len(Inbox(jill.id).chats()) == 3


def test_the_list_comes_in_pages_with_shortened_messages(joe: Asker, jill: Asker) -> None:
    made = [
        Chat.create(joe.id, text="x" * 4_000, data={"a": "b" * 4_000}, title=str(number)).id
        for number in range(7)
    ]
    talk = Chat.create(joe.id, members=[jill.id])
    talk.send(joe.id, "y" * 4_000, mentions=[jill.id])
    answer = joe("GET", "chats?limit=3")
    assert len(answer.content) < 3_000
    seen, told = [], answer.json()
    while True:
        seen += told["chats"]
        if told["next"] is None:
            break
        told = joe("GET", f"chats?limit=3&after={told['next']}").json()

    assert sorted(chat["id"] for chat in seen) == sorted([*made, talk.id])
    for chat in seen:
        last = chat["last_message"]
        assert (len(last["text"]), last["data"], last["mentions"]) == (200, None, [])
    for query in ("limit=0", "limit=201", "after=", "after=x", "after=5-%2F", "before=5"):
        problem(joe("GET", f"chats?{query}"), 422, "invalid-value")


# Owners


def test_an_owner_changes_their_chat(joe: Asker, jill: Asker, chat: str) -> None:
    changed = joe("PATCH", f"chats/{chat}", {"title": "Hall", "slow_mode": 5, "history": 10, "is_open": True})
    told = changed.json()
    assert told["title"] == "Hall"
    assert told["settings"] == {
        "history": 10,
        "slow_mode": 5,
        "is_open": True,
        "max_text": 4_000,
        "max_members": 1_000,
    }
    assert joe("PATCH", f"chats/{chat}", {"history": None}).json()["settings"]["history"] is None
    assert joe("PATCH", f"chats/{chat}", {"title": ""}).json()["title"] == ""
    assert joe("PATCH", f"chats/{chat}").json()["title"] == ""

    for content in ({"title": "a"}, {"slow_mode": 0}):
        problem(jill("PATCH", f"chats/{chat}", content), 403, "not-allowed")
    for content in ({"title": None}, {"max_messages": 5}, {"slow_mode": None}):
        problem(joe("PATCH", f"chats/{chat}", content), 422, "invalid-value")


def test_a_closed_chat_can_be_read_and_not_written_to(joe: Asker, jill: Asker, chat: str) -> None:
    problem(jill("POST", f"chats/{chat}/close"), 403, "not-allowed")
    assert joe("POST", f"chats/{chat}/close").status_code == 204

    problem(jill("POST", f"chats/{chat}/messages", {"text": "a"}), 409, "chat-closed")
    assert texts(jill, chat) == ["welcome"]
    assert jill("GET", f"chats/{chat}").json()["is_closed"] is True
    assert joe("POST", f"chats/{chat}/reopen").status_code == 204
    send(jill, chat, "a")


def test_a_message_is_deleted_by_its_sender_or_the_owner(joe: Asker, jill: Asker, chat: str) -> None:
    first, second = (send(jill, chat, text)["seq"] for text in "ab")
    mine = send(joe, chat, "c")["seq"]

    problem(jill("DELETE", f"chats/{chat}/messages/{mine}"), 403, "not-allowed")
    assert jill("DELETE", f"chats/{chat}/messages/{first}").status_code == 204
    assert joe("DELETE", f"chats/{chat}/messages/{second}").status_code == 204
    problem(joe("DELETE", f"chats/{chat}/messages/999"), 404, "message-not-found")
    assert texts(joe, chat) == ["welcome", "c"]


@pytest.mark.parametrize("name", ["x" * 501, "x" * 5_000, "%00", "%F0%9F%98%80" * 501, "%ed%a0%80"])
def test_no_name_in_an_address_is_a_server_error(joe: Asker, chat: str, name: str) -> None:
    answers = [
        joe("GET", f"chats/{name}"),
        joe("POST", f"chats/{name}/join"),
        joe("PATCH", f"chats/{chat}/members/{name}", {"role": "member"}),
        joe("PATCH", f"chats/{chat}/members/{name}", {"muted_for": 5}),
        joe("PATCH", f"chats/{chat}/members/{name}", {"muted_for": None}),
        joe("DELETE", f"chats/{chat}/members/{name}"),
        joe("DELETE", f"chats/{chat}/members/{name}?block=true"),
        joe("DELETE", f"chats/{chat}/blocked/{name}"),
        joe("GET", f"chats/{chat}/members?q={name}"),
        joe("GET", f"chats/{chat}/messages/{name}"),
        joe("PUT", f"mailbox/blocked/{name}"),
        joe("DELETE", f"mailbox/blocked/{name}"),
        joe("POST", f"mailboxes/{name}", {"text": "hello"}),
        joe("GET", f"mailboxes/{name}/messages/1"),
        joe("GET", f"books/{name}?q=a"),
        joe("GET", f"books/book?q={name}"),
        joe("POST", f"books/{name}/select", {"id": "a"}),
        joe("GET", f"people?name={name}"),
        joe("GET", f"chats?after={name}"),
    ]

    assert [answer.status_code for answer in answers if answer.status_code >= 500] == []
