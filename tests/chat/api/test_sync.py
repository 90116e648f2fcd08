"""sync: everything new in all chats since a cursor, which nobody can forge; clients wait without polling."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import pytest
from django.core import signing
from redis import Redis

from components.api import waiting
from components.services.chat import Chat, Position
from components.services.chat.api.sync import make_cursor, read_cursor
from tests.api.serving import Site, serve
from tests.fixtures.api import Asker, problem
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("redis")


def sync(asker: Asker, cursor: str = "", timeout: float = 0) -> dict[str, Any]:
    answer = asker("GET", f"sync?cursor={quote(cursor)}&timeout={timeout}")
    assert answer.status_code == 200, answer.content
    told: dict[str, Any] = answer.json()
    return told


def texts(told: dict[str, Any]) -> list[str]:
    return [each["text"] for chat in told["chats"] for each in chat["messages"] if each["event"] is None]


@pytest.fixture
def site(redis: Redis) -> Iterator[Site]:
    with serve() as site:
        yield site


def test_the_first_answer_has_all_chats_and_their_last_messages(joe: Asker, jill: Asker) -> None:
    first = Chat.create(joe.id, members=[jill.id], text="1", title="First")
    second = Chat.create(jill.id, members=[joe.id], text="2")

    told = sync(joe)
    assert {chat["id"]: chat["last_message"]["text"] for chat in told["chats"]} == {
        first.id: "1",
        second.id: "2",
    }
    assert [chat["messages"] for chat in told["chats"]] == [[], []]
    assert told["user"] == joe.id
    assert told["people"] == {joe.id: "joe", jill.id: "jill"}
    assert sync(joe, told["cursor"])["chats"] == []


def test_only_new_messages_come_in_their_order(joe: Asker, jill: Asker) -> None:
    chat, other = (Chat.create(joe.id, members=[jill.id]) for _ in range(2))
    cursor = sync(joe)["cursor"]
    for text in "abc":
        chat.send(jill.id, text)

    told = sync(joe, cursor)
    assert [found["id"] for found in told["chats"]] == [chat.id]
    assert texts(told) == ["a", "b", "c"]
    assert (told["chats"][0]["unread"], told["gone"]) == (3, [])
    other.send(jill.id, "d")
    assert texts(sync(joe, told["cursor"])) == ["d"]
    # A lost answer can be had again.
    assert texts(sync(joe, cursor)) == ["d", "a", "b", "c"]


def test_new_chats_come_and_former_chats_are_gone(joe: Asker, jill: Asker) -> None:
    old = Chat.create(joe.id, members=[jill.id])
    cursor = sync(jill)["cursor"]
    new = Chat.create(joe.id, members=[jill.id], text="new")
    old.kick(jill.id)

    told = sync(jill, cursor)
    assert ([chat["id"] for chat in told["chats"]], texts(told), told["gone"]) == (
        [new.id],
        ["new"],
        [old.id],
    )
    again = sync(jill, told["cursor"])
    assert (again["chats"], again["gone"]) == ([], [])


def test_many_chats_come_in_parts_and_no_message_in_between_is_missed(
    joe: Asker, jill: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("components.services.chat.api.sync._MOST_CHATS", 10)
    made = [
        Chat.create(joe.id, members=[jill.id], text="x" * 4_000, title=str(number)) for number in range(25)
    ]
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
    assert texts(told)[-1] == "said meanwhile"
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


# Cursors


@pytest.mark.parametrize(
    "forge",
    [
        lambda cursor: "x",
        lambda cursor: cursor[:-1],
        lambda cursor: "a" + cursor,
        lambda cursor: cursor.partition(":")[0],
        lambda cursor: "\0",
        lambda cursor: "ä",
        lambda cursor: "a" * 5_000,
        lambda cursor: signing.dumps({"a": [1, 0]}, key="guessed", salt="components.api.cursor.1:1"),
        lambda cursor: make_cursor("somebody else", {"a": Position(1)}),
    ],
)
def test_a_forged_cursor_is_refused(joe: Asker, redis: Redis, forge: Any) -> None:
    cursor = forge(sync(joe)["cursor"])

    problem(joe("GET", f"sync?timeout=0&cursor={quote(cursor)}"), 400, "invalid-cursor")
    problem(joe("POST", "sync", {"cursor": cursor, "timeout": 0}), 400, "invalid-cursor")
    assert redis.dbsize() == 0


# Waiting


def test_a_message_wakes_a_waiting_request(site: Site) -> None:
    chat = Chat.create("joe", members=["jill"])
    cursor = site.ask("GET", "sync", by="jill")[1]["cursor"]
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(site.ask, "GET", f"sync?cursor={cursor}&timeout=50", by="jill")
        assert eventually(lambda: waiting.waiters() == 1)
        chat.send("joe", "hello")

        status, told, headers = answer.result(20)
    assert (status, texts(told)) == (200, ["hello"])
    assert "Retry-After" not in headers


def test_requests_above_the_limit_are_answered_at_once_with_the_same_cursor(redis: Redis) -> None:
    Chat.create("joe", members=["jill"])
    with serve(MAX_WAITERS=0) as site:
        cursor = site.ask("GET", "sync")[1]["cursor"]
        status, told, headers = site.ask("GET", f"sync?cursor={cursor}&timeout=50")

    assert (status, told["cursor"], told["chats"]) == (200, cursor, [])
    assert 3 <= int(headers["Retry-After"]) <= 8


def test_the_cursor_stays_the_same_if_nothing_comes_in_time(joe: Asker) -> None:
    Chat.create(joe.id)
    cursor = sync(joe)["cursor"]

    told = sync(joe, cursor, 0.05)
    assert (told["cursor"], told["chats"], told["gone"]) == (cursor, [], [])
