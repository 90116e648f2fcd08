"""Lists of chats come in pages, and an answer does not grow with the number of chats that somebody is in."""

from __future__ import annotations

import pytest
from redis import Redis

from components.services.chat import Chat, ChatSettings, Inbox, Position
from components.services.chat.keys import ChatKeys
from tests.support.chats import FREE, texts


def spam(redis: Redis, count: int, text: str = "hello", settings: ChatSettings = FREE) -> list[str]:
    """Chats that joe is put into; the ids, that which spoke last first."""
    made = [Chat.create("spammer", members=["joe"], text=text, settings=settings) for _ in range(count)]
    for number, chat in enumerate(made):  # they would all be of one second
        redis.zadd(ChatKeys(chat.id).names, {chat.id: 10**12 + number * 1000})
    return [chat.id for chat in made][::-1]


def pages(inbox: Inbox, limit: int) -> list[list[str]]:
    found, after = [], ""
    while True:
        page = inbox.page(limit=limit, after=after)
        found.append([chat.chat_id for chat in page.chats])
        if not (after := page.next):
            return found


@pytest.mark.parametrize(("count", "limit"), [(0, 5), (5, 5), (23, 5), (23, 7), (23, 100)])
def test_pages_hold_every_chat_once_the_one_that_spoke_last_first(
    redis: Redis, count: int, limit: int
) -> None:
    ids = spam(redis, count)

    found = pages(Inbox("joe"), limit)

    assert [sorted(page) for page in found] == [
        sorted(ids[at : at + limit]) for at in range(0, count, limit)
    ] or (count == 0 and found == [[]])


def test_a_page_is_full_whatever_the_hints_say(redis: Redis) -> None:
    ids = spam(redis, 20)
    for chat_id in ids[:6]:
        Chat(chat_id).kick("joe")
    for chat_id in ids[6:9]:
        Chat(chat_id).delete()

    assert [len(page) for page in pages(Inbox("joe"), 5)] == [5, 5, 1]


def test_a_writer_after_an_event_of_the_same_second_is_first(redis: Redis) -> None:
    ids = spam(redis, 5)
    chat = Chat(ids[-1])
    chat.rename("Party")
    chat.send("spammer", "now")

    assert [each.chat_id for each in Inbox("joe").page(limit=1).chats] == [chat.id]


def test_many_new_chats_are_told_in_parts(redis: Redis) -> None:
    ids = spam(redis, 230)
    inbox = Inbox("joe")
    positions: dict[str, Position] = {}
    sizes, seen = [], []
    while True:
        changes = inbox.changes(positions)
        positions = dict(changes.positions)
        sizes.append((len(changes.chats), changes.has_more))
        seen += [chat.chat_id for chat in changes.chats]
        assert all(texts(chat.messages) == ["created", "hello"] for chat in changes.chats)
        if not changes.has_more:
            break

    assert sizes == [(100, True), (100, True), (30, False)]
    assert sorted(seen[:100]) == sorted(ids[:100])
    assert sorted(seen) == sorted(ids)
    assert inbox.changes(positions).chats == []


def test_news_of_many_chats_are_told_in_parts_and_nothing_is_lost(redis: Redis) -> None:
    inbox = Inbox("joe")
    ids = spam(redis, 130)
    positions = dict(inbox.changes(inbox.changes({}).positions).positions)
    for chat_id in ids[:120]:
        Chat(chat_id).send("spammer", "one")
        Chat(chat_id).send("spammer", "two")
    Chat(ids[-1]).kick("joe")

    first = inbox.changes(positions, limit=1)
    assert (len(first.chats), first.has_more, list(first.gone)) == (100, True, [ids[-1]])
    got: dict[str, list[str]] = {}
    changes = first
    while changes.chats:
        for chat in changes.chats:
            got.setdefault(chat.chat_id, []).extend(texts(chat.messages))
        changes = inbox.changes(changes.positions, limit=1)

    assert got == {chat_id: ["one", "two"] for chat_id in ids[:120]}


def test_an_answer_has_a_megabyte_at_most_however_many_chats_speak(redis: Redis) -> None:
    inbox = Inbox("joe")
    ids = spam(redis, 40)
    positions = inbox.changes({}).positions
    for chat_id in ids:
        for _ in range(12):
            Chat(chat_id).send("spammer", "x" * 4_000)

    changes = inbox.changes(positions)

    told = sum(len(message.text) for chat in changes.chats for message in chat.messages)
    assert 0.8 * 2**20 < told <= 2**20
    assert all(chat.has_more for chat in changes.chats)
    assert len(changes.chats) == 40
