"""Many wait in one process for the same chat."""

from __future__ import annotations

import asyncio

from redis import Redis

from components.kit.news import Listener
from components.services.chat import Changes, Chat, Inbox


def test_more_can_be_woken_by_a_message_than_there_are_connections(redis: Redis) -> None:
    people = [f"person:{number}" for number in range(200)]
    chat = Chat.create("owner", members=people)

    async def scene() -> list[Changes]:
        async with asyncio.timeout(60):
            known = [(await Inbox(person).achanges({})).positions for person in people]
            waiting = [
                asyncio.ensure_future(Inbox(person).achanges(positions, wait=60))
                for person, positions in zip(people, known, strict=True)
            ]
            listener = Listener.of_the_loop()
            while len([each for each in listener._channels.values() if each.is_confirmed]) <= len(people):
                await asyncio.sleep(0.01)
            await chat.asend("owner", "hello")
            return await asyncio.gather(*waiting)

    assert {changes.chats[0].messages[-1].text for changes in asyncio.run(scene())} == {"hello"}
