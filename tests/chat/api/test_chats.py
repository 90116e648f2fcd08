"""Chats over HTTP: what answers hold, and refusals that the description cannot tell (tests/api/test_contract.py)."""

import asyncio
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

import pytest
from django.contrib.auth.models import User
from django.core import signing
from django.test.utils import override_settings
from redis import Redis

from components.services.chat import Chat, Inbox, Position
from components.services.chat.api import members, messages, presence, shapes
from components.services.chat.api.sync import make_cursor, read_cursor
from components.services.chat.search import Search
from components.services.rates import RateLimit
from tests.fixtures.api import Asker, problem

pytestmark = pytest.mark.usefixtures("redis")


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (members, messages, presence):
        monkeypatch.setattr(module, "RATE", RateLimit(module.__name__, "5/h"))


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


def test_a_chat_with_invalid_values_is_not_created(joe: Asker, redis: Redis) -> None:
    values = ({"members": ["999999"]}, {"title": "a\0b"}, {"title": "two\nlines"}, {"slow_mode": 1e-9})
    for content in (*values, {"id": "guild:1"}, {"rate_limit": 0}):
        told = problem(joe("POST", "chats", content), 422, "invalid-value")
        assert told["field"] == next(iter(content))
    problem(joe("POST", "chats", {"text": "a", "data": "b" * 9_000}), 422, "invalid-message")
    assert redis.dbsize() == 0


def test_the_list_comes_in_pages_with_shortened_messages(joe: Asker, jill: Asker) -> None:
    made = [Chat.create(joe.id, text="x" * 4_000, data={"a": "b" * 4_000}).id for _ in range(4)]
    talk = Chat.create(joe.id, members=[jill.id], title="Guild")
    talk.send(joe.id, "y" * 4_000, mentions=[jill.id])
    seen, told = [], {"next": ""}
    while told["next"] is not None:
        told = joe("GET", f"chats?limit=3&after={told['next']}" if told["next"] else "chats?limit=3").json()
        seen += told["chats"]

    assert sorted(chat["id"] for chat in seen) == sorted([*made, talk.id])
    for chat in seen:
        last = chat["last_message"]
        assert (len(last["text"]), last["data"], last["mentions"]) == (200, None, [])
    for after in ("", "x", "5-%2F"):
        problem(joe("GET", f"chats?after={after}"), 422, "invalid-value")
    told = jill("GET", "chats").json()
    [found] = told["chats"]
    assert (found["title"], found["role"], found["unread"], found["mentions"]) == ("Guild", "member", 1, 1)
    assert (found["last_message"]["sender"], told["people"][joe.id]) == (joe.id, "joe")
    assert jill("GET", "unread").json() == {"messages": 1, "mentions": 1, "chats": 1}


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


def test_a_message_that_does_not_exist_is_not_found(joe: Asker, chat: str) -> None:
    for seq in ("-1", "x", "1.5", "%00", "1" * 17, "9007199254740992", "٣"):
        for method in ("GET", "DELETE"):
            problem(joe(method, f"{chat}/messages/{seq}"), 404, "message-not-found")


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
    assert joe("GET", f"{chat}/search?q=key&limit=1").json()["next"] == 4
    problem(joe("GET", f"{chat}/search?q=a+b+c+d+e+f+g+h+i"), 422, "invalid-value")


def test_texts_and_names_are_read_in_threads(joe: Asker, chat: str, monkeypatch: pytest.MonkeyPatch) -> None:
    send(joe, chat, "gold")
    seen = set[tuple[str, bool]]()

    def noting(read: Any) -> Any:
        return lambda *args: seen.add((path, asyncio._get_running_loop() is None)) or read(*args)

    for place, name in ((Search, "finds"), (shapes, "rich"), (members, "is_found")):
        monkeypatch.setattr(place, name, noting(getattr(place, name)))
    cursor = make_cursor(joe.id, {chat.partition("/")[2]: Position(1)})
    paths = [f"{chat}/{path}" for path in ("search?q=gold", "messages", "messages/3", "members?q=jo")]
    paths.append(f"sync?timeout=0&cursor={cursor}")
    for path in paths:
        assert joe("GET", path).status_code == 200
    assert seen == {(path, True) for path in paths}


# Members


def test_members_are_listed_changed_and_removed(joe: Asker, jill: Asker, stranger: Asker, chat: str) -> None:
    added = joe("POST", f"{chat}/members", {"users": [stranger.id, jill.id]})
    assert added.json() == {"added": [stranger.id]}
    problem(joe("POST", f"{chat}/members", {"users": ["999999"]}), 422, "invalid-value")

    muted = joe("PATCH", f"{chat}/members/{jill.id}", {"muted_for": 60}).json()["members"]
    told = [(each["name"], each["role"], each["muted_until"] is None) for each in muted]
    assert told == [("joe", "owner", True), ("jill", "member", False), ("stranger", "member", True)]
    freed = joe("PATCH", f"{chat}/members/{jill.id}", {"muted_for": None, "role": "moderator"}).json()
    assert [(each["role"], each["muted_until"]) for each in freed["members"]][1] == ("moderator", None)
    problem(joe("PATCH", f"{chat}/members/{joe.id}", {"role": "member"}), 403, "not-allowed")
    # A request that is refused changes nothing, though one of both had been allowed.
    wanted = {"role": "owner", "muted_for": 60}
    problem(jill("PATCH", f"{chat}/members/{stranger.id}", wanted), 403, "not-allowed")
    problem(jill("PATCH", chat, {"title": "Hers", "slow_mode": 5}), 403, "not-allowed")
    problem(joe("PATCH", f"{chat}/members/{joe.id}", {"role": "member", "muted_for": 60}), 403, "not-allowed")
    assert joe("GET", chat).json()["title"] != "Hers"
    assert {each["name"]: each["muted_until"] for each in joe("GET", f"{chat}/members").json()["members"]} == {
        "joe": None, "jill": None, "stranger": None,
    }  # fmt: skip

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
    wanted = [{"is_open": is_open, "members": [jill.id]} for is_open in (True, False)]
    open, closed = (joe("POST", "chats", each).json()["id"] for each in wanted)

    with override_settings(COMPONENTS={"PEOPLE": "tests.test_people.Friends"}):
        refused = problem(joe("POST", "chats", {"members": [jill.id]}), 422, "invalid-value")
        assert jill.id in refused["detail"]
        problem(stranger("POST", f"chats/{open}/join"), 403, "blocked")
        problem(stranger("POST", f"chats/{closed}/join"), 404, "chat-not-found")
        assert jill("POST", f"chats/{open}/join").status_code == 200  # who is in it stays

    assert {each.user for each in Chat(open).members()} == {joe.id, jill.id}
    assert Inbox(stranger.id).chats() == []


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


# sync: all that is new since a cursor, which nobody can forge


def sync(asker: Asker, cursor: str = "", timeout: float = 0) -> dict[str, Any]:
    answer = asker("GET", f"sync?cursor={quote(cursor)}&timeout={timeout}")
    assert answer.status_code == 200, answer.content
    told: dict[str, Any] = answer.json()
    return told


def said(told: dict[str, Any]) -> list[str]:
    return [each["text"] for chat in told["chats"] for each in chat["messages"] if each["event"] is None]


def test_all_chats_come_first_and_then_new_messages_in_their_order(joe: Asker, jill: Asker) -> None:
    chat, other = (Chat.create(joe.id, members=[jill.id], text="hi") for _ in range(2))
    first = sync(joe)
    told = {each["id"]: (each["last_message"]["text"], each["messages"]) for each in first["chats"]}
    assert told == {chat.id: ("hi", []), other.id: ("hi", [])}
    assert (first["user"], first["people"]) == (joe.id, {joe.id: "joe", jill.id: "jill"})
    cursor = first["cursor"]
    for text in "abc":
        chat.send(jill.id, text)

    told = sync(joe, cursor)
    assert [found["id"] for found in told["chats"]] == [chat.id]
    assert said(told) == ["a", "b", "c"]
    assert (told["chats"][0]["unread"], told["gone"]) == (3, [])
    other.send(jill.id, "d")
    assert said(sync(joe, told["cursor"])) == ["d"]
    # A lost answer can be had again.
    assert said(sync(joe, cursor)) == ["d", "a", "b", "c"]


def test_many_chats_come_in_parts(joe: Asker, jill: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("components.services.chat.api.sync._MOST_CHATS", 10)
    made = [Chat.create(joe.id, members=[jill.id], text="x" * 4_000) for _ in range(25)]
    told = sync(jill)
    sizes = [(len(told["chats"]), told["has_more_chats"])]
    seen = [chat["id"] for chat in told["chats"]]
    assert len(told["chats"][0]["last_message"]["text"]) == 200
    missing = next(chat for chat in made if chat.id not in seen)
    missing.send(joe.id, "said meanwhile")  # which makes it the first

    while told["has_more_chats"]:
        told = sync(jill, told["cursor"], timeout=5)
        sizes.append((len(told["chats"]), told["has_more_chats"]))
        seen += [chat["id"] for chat in told["chats"]]
    assert sizes == [(10, True), (10, True), (4, False)]
    told = sync(jill, told["cursor"])
    assert [chat["id"] for chat in told["chats"]] == [missing.id]
    assert said(told)[-1] == "said meanwhile"
    assert sorted([*seen, missing.id]) == sorted(chat.id for chat in made)
    assert sync(jill, told["cursor"])["chats"] == []


def test_a_cursor_too_long_for_an_address_can_be_posted(joe: Asker, jill: Asker) -> None:
    chat = Chat.create(joe.id, members=[jill.id])
    positions = {f"{number:032x}"[::-1] + str(number): Position(1) for number in range(2_000)}
    cursor = make_cursor(joe.id, positions | {chat.id: Position(1)})
    assert len(cursor) > 8_000

    told = joe("POST", "sync", {"cursor": cursor, "timeout": 0}).json()
    assert len(told["gone"]) == 2_000
    assert read_cursor(joe.id, told["cursor"]).keys() == {chat.id}


def test_a_forged_cursor_is_refused(joe: Asker, redis: Redis) -> None:
    own = sync(joe)["cursor"]
    guessed = signing.dumps({"a": [1, 0]}, key="guessed", salt="components.api.cursor.1:1")
    others = make_cursor("somebody else", {"a": Position(1)})
    cut = (own[:-1], f"a{own}", own.partition(":")[0])

    for cursor in (*cut, "x", "\0", "ä", "a" * 5_000, guessed, others):
        problem(joe("GET", f"sync?timeout=0&cursor={quote(cursor)}"), 400, "invalid-cursor")
        problem(joe("POST", "sync", {"cursor": cursor, "timeout": 0}), 400, "invalid-cursor")
    assert redis.dbsize() == 0


def test_the_cursor_stays_the_same_if_nothing_comes_in_time(joe: Asker) -> None:
    Chat.create(joe.id)
    cursor = sync(joe)["cursor"]

    told = sync(joe, cursor, 0.05)
    assert (told["cursor"], told["chats"], told["gone"]) == (cursor, [], [])
