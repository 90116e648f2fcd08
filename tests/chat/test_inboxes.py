"""Inboxes: lists of chats in pages, waiting for what is new, and what they answer while a cluster node is dead."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from redis.connection import AbstractConnection

from components.embedded import EmbeddedServer
from components.exceptions import InvalidValue, RedisUnavailable
from components.kit.pubsub import Interest
from components.services.chat import Chat, ChatReader, Inbox, Position
from components.services.chat.keys import ChatKeys, InboxKeys
from components.services.mailboxes import Mailbox, MailboxReader
from components.testing import empty, redis_at
from tests.support.chats import FREE, texts
from tests.support.masters import Master, three_masters
from tests.support.proxy import LossyProxy


def spam(redis: Redis, count: int) -> list[str]:
    """Chats that joe is put into; the ids, that which spoke last first."""
    made = [Chat.create("spammer", members=["joe"], text="hello", settings=FREE) for _ in range(count)]
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
def test_pages_hold_every_chat_once_the_latest_first(redis: Redis, count: int, limit: int) -> None:
    ids = spam(redis, count)

    found = pages(Inbox("joe"), limit)

    expected = [sorted(ids[at : at + limit]) for at in range(0, count, limit)]
    assert [sorted(page) for page in found] == expected or [[]]


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


LONG = 20.0  # seconds, which no test waits


async def while_waiting(
    monkeypatch: pytest.MonkeyPatch, waiting: Awaitable[Any], act: Callable[[], Awaitable[Any]]
) -> Any:
    """The answer to *waiting*; *act* is done when it has come to wait."""
    waits, wait = asyncio.Event(), Interest.wait

    async def told(self: Interest, timeout: float) -> set[str]:
        waits.set()
        return await wait(self, timeout)

    monkeypatch.setattr(Interest, "wait", told)
    task = asyncio.ensure_future(waiting)
    await asyncio.wait([asyncio.ensure_future(waits.wait()), task], return_when=asyncio.FIRST_COMPLETED)
    assert not task.done()
    await act()
    return await asyncio.wait_for(task, LONG)


@pytest.mark.parametrize("what", ["sent", "created", "added", "kicked", "read", "deleted"])
def test_a_waiting_reader_is_told_events(redis: Redis, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    async def main() -> None:
        chat = await Chat.acreate("joe", members=["jack"], settings=FREE)
        other = await Chat.acreate("joe", settings=FREE)
        inbox = Inbox("jack")
        positions = (await inbox.achanges({})).positions
        acts: dict[str, Callable[[], Awaitable[Any]]] = {
            "sent": lambda: chat.asend("joe", "news"),
            "created": lambda: Chat.acreate("jill", members=["jack"], id="new"),
            "added": lambda: other.aadd(["jack"]),
            "kicked": lambda: chat.akick("jack"),
            "read": lambda: chat.aacknowledge("jack", 1),
            "deleted": chat.adelete,
        }

        changes = await while_waiting(monkeypatch, inbox.achanges(positions, wait=LONG), acts[what])

        expected = {"sent": chat.id, "created": "new", "added": other.id, "read": chat.id}
        told = ([news.chat_id for news in changes.chats], list(changes.gone))
        assert told == (([expected[what]], []) if what in expected else ([], [chat.id]))
        if what == "sent":
            assert [texts(news.messages) for news in changes.chats] == [["news"]]
        if what == "read":
            assert changes.chats[0].reads == {"joe": 1, "jack": 1}

    asyncio.run(main())


def test_a_cancelled_read_stops_waiting(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.11 loses some cancellations while a command is sent: here, this one."""

    async def main() -> None:
        await Chat.acreate("joe")
        inbox, reads = Inbox("joe"), asyncio.Event()
        positions, hints = (await inbox.achanges({})).positions, Inbox._hints

        async def deaf(self: Inbox, client: Any) -> Any:
            reads.set()
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(LONG)
            return await hints(self, client)

        monkeypatch.setattr(Inbox, "_hints", deaf)
        waiting = asyncio.ensure_future(inbox.achanges(positions, wait=LONG))
        await reads.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(asyncio.shield(waiting), LONG / 2)

    asyncio.run(main())


def test_waiting_ends_with_nothing_new(redis: Redis) -> None:
    async def main() -> None:
        chat = await Chat.acreate("joe")
        positions = (await Inbox("joe").achanges({})).positions

        changes = await Inbox("joe").achanges(positions, wait=0.01)

        assert (changes.chats, changes.gone) == ([], [])
        assert changes.positions == positions == {chat.id: positions[chat.id]}
        assert (await Inbox("joe").achanges({}, wait=LONG)).chats  # what is there is not waited for
        with pytest.raises(InvalidValue):
            await Inbox("joe").achanges({}, wait=-1)

    asyncio.run(main())


def test_all_chats_of_a_person_take_two_round_trips(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(100):
        Chat.create("joe", members=["jack"], text="hello")
    inbox = Inbox("jack")
    inbox.fetch()  # the server knows the script now
    sent: list[object] = []
    send = AbstractConnection.send_packed_command

    def counted(self: Any, command: Any, check_health: bool = True) -> None:
        sent.append(command)
        send(self, command, check_health)

    monkeypatch.setattr(AbstractConnection, "send_packed_command", counted)

    assert len(inbox.fetch()) == len(inbox.chats()) == 100
    assert len(sent) == 4


CHATS = [f"chat:{number}" for number in range(12)]


@pytest.fixture
def nodes(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[list[Master]]:
    with three_masters(tmp_path, request.config.getoption("--redis-server")) as nodes:
        yield nodes


@pytest.mark.slow
def test_available_results_are_returned_and_the_rest_is_marked(nodes: list[Master]) -> None:
    inbox = Inbox("joe")
    for chat_id in CHATS:
        Chat.create("jill", members=["joe"], text=f"in {chat_id}", id=chat_id)
    since = {each.chat_id: each.position for each in inbox.chats()}
    assert since.keys() == set(CHATS)
    home = next(node for node in nodes if node.has(InboxKeys("joe").hints))
    homes = {each: next(node for node in nodes if node.has(ChatKeys(each).chat)) for each in CHATS}
    dead = next(node for node in homes.values() if node is not home)
    lost = {chat_id for chat_id, node in homes.items() if node is dead}
    there = set(CHATS) - lost
    assert there

    dead.kill()

    for found in (inbox.chats(), inbox.fetch()):
        assert {each.chat_id for each in found} == there
        assert set(found.unavailable) == lost
    changes = inbox.changes(since)
    assert (changes.chats, list(changes.gone), set(changes.unavailable)) == ([], [], lost)
    assert dict(changes.positions) == since
    new = inbox.changes({})
    assert {each.chat_id for each in new.chats} == there
    assert set(new.unavailable) == lost

    with pytest.raises(RedisUnavailable):
        inbox.acknowledge(dict.fromkeys(CHATS, 2))
    assert {each.chat_id: each.unread for each in inbox.chats()} == dict.fromkeys(there, 0)

    # A person is erased as far as that can be, and it is said that it could not be all.
    with pytest.raises(RedisUnavailable):
        inbox.erase()
    [one, *_] = there
    assert [member.user for member in Chat(one).members()] == ["jill"]
    assert set(inbox.chats().unavailable) == lost


def test_a_list_is_asked_for_again_if_its_reply_was_lost(redis_server: EmbeddedServer) -> None:
    with LossyProxy(redis_server) as proxy, empty(redis_server), redis_at(proxy.url):
        Chat.create("jill", members=["joe"], text="hello", id="chat")
        mailbox = Mailbox("joe")
        mailbox.push("jill", "hello")
        asked = [
            ("RANGE", lambda: len(Inbox("joe").chats())),
            ("RANGE", lambda: len(ChatReader().page())),
            ("XLEN", mailbox.depth),
            ("HMGET", lambda: mailbox.missed() + 1),
            ("HMGET", lambda: len(MailboxReader().page())),
            ("ZCOUNT", ChatReader().count),
            ("ZCOUNT", MailboxReader().count),
            ("HGETALL", lambda: len(mailbox.blocked()) + 1),
            ("HGETALL", lambda: len(Chat("chat").blocked()) + 1),
        ]
        for lost, (command, call) in enumerate(asked, start=1):
            proxy.lose_replies(to=command)
            assert (call(), proxy.lost) == (1, lost), command
