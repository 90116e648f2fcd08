"""Waiting for what is new, and what is awaited: each method that has a twin does the same in a coroutine."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
from redis import Redis
from redis.connection import AbstractConnection

from components.exceptions import ChatNotFound, InvalidValue
from components.kit.news import Interest
from components.services.chat import Chat, Inbox, Role
from tests.support.chats import FREE, texts

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


def test_a_waiting_reader_is_woken_by_a_message(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        chat = await Chat.acreate("joe", members=["jack"], settings=FREE)
        inbox = Inbox("jack")
        positions = (await inbox.achanges({})).positions

        changes = await while_waiting(
            monkeypatch, inbox.achanges(positions, wait=LONG), lambda: chat.asend("joe", "news")
        )

        assert [texts(news.messages) for news in changes.chats] == [["news"]]
        assert changes.positions[chat.id].seq == 2

    asyncio.run(main())


@pytest.mark.parametrize("what", ["created", "added", "kicked", "read", "deleted"])
def test_a_waiting_reader_is_woken_by_events_of_their_chats(
    redis: Redis, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    async def main() -> None:
        chat = await Chat.acreate("joe", members=["jack"], settings=FREE)
        other = await Chat.acreate("joe", settings=FREE)
        inbox = Inbox("jack")
        positions = (await inbox.achanges({})).positions
        acts: dict[str, Callable[[], Awaitable[Any]]] = {
            "created": lambda: Chat.acreate("jill", members=["jack"], id="new"),
            "added": lambda: other.aadd(["jack"]),
            "kicked": lambda: chat.akick("jack"),
            "read": lambda: chat.aacknowledge("jack", 1),
            "deleted": chat.adelete,
        }

        changes = await while_waiting(monkeypatch, inbox.achanges(positions, wait=LONG), acts[what])

        expected = {"created": "new", "added": other.id, "read": chat.id}
        assert [news.chat_id for news in changes.chats] == [
            expected[each] for each in expected if each == what
        ]
        assert list(changes.gone) == [chat.id] * (what in ("kicked", "deleted"))
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
        with pytest.raises(InvalidValue):
            await Inbox("joe").achanges({}, wait=-1)

    asyncio.run(main())


def test_existing_results_are_not_waited_for(redis: Redis) -> None:
    async def main() -> None:
        chat = await Chat.acreate("joe", text="hello")
        changes = await Inbox("joe").achanges({}, wait=LONG)
        assert [news.chat_id for news in changes.chats] == [chat.id]

    asyncio.run(main())


def test_all_that_can_be_awaited_does_the_same(redis: Redis) -> None:
    async def main() -> None:
        chat = await Chat.acreate("joe", members=["jack", "jill"], title="A", settings=FREE)
        inbox = Inbox("jack")
        sent = await chat.asend("joe", "hello", client_id="a")
        assert (await chat.amessage("jack", sent.seq)).text == "hello"
        assert texts((await chat.ahistory("jack")).messages) == ["created", "hello"]
        assert len(await inbox.afetch()) == len(await inbox.achats()) == 1
        assert await chat.aacknowledge("jack", 1) == 1
        assert await inbox.aacknowledge({chat.id: 2}) == {chat.id: 2}
        assert (await chat.anews("jack")).unread == 0
        assert await chat.aedit("joe", sent.seq, "hello!", data=1) >= sent.sent_at
        await chat.areact("jack", sent.seq, "👍")
        [found] = (await chat.asearch("jack", "HELLO")).messages
        assert (found.text, found.data, found.reactions) == ("hello!", 1, {"👍": ["jack"]})
        await chat.aset_role("jack", Role.MODERATOR, by="joe")
        await chat.amute("jill", seconds=60, by="jack")
        await chat.aunmute("jill", by="jack")
        await chat.ablock("jill", by="jack")
        assert (await chat.ablocked()).keys() == {"jill"}
        await chat.aunblock("jill", by="jack")
        await chat.arename("B", by="jack")
        await chat.aconfigure(is_open=True, by="joe")
        await chat.ajoin("jill")
        await chat.akick("jill", by="jack")
        await chat.aclose(by="joe")
        await chat.areopen(by="joe")
        await chat.adelete_message(sent.seq, by="joe")
        info = await chat.ainfo()
        assert (info.title, info.members, info.is_closed) == ("B", 2, False)
        assert [member.user for member in await chat.amembers()] == ["joe", "jack"]
        assert await chat.atrim(before=3) == 1
        await chat.aleave("jack")
        assert (await inbox.aerase()).messages == 0
        await chat.adelete()
        with pytest.raises(ChatNotFound):
            await chat.ainfo()

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
