"""Calls that come while others are under way travel together, and each has its own end."""

import asyncio
from typing import Any

from redis import Redis
from redis.exceptions import ResponseError

from components.exceptions import ChatNotFound
from components.kit.batching import together
from components.kit.client import get_client
from components.kit.scripts import Call, Script
from components.services.chat import Chat, ChatSettings
from components.services.chat.keys import index

KEY = index("00")


class Source(Script):
    """A script that is not a file; it counts how often it was sent for."""

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self.source = source
        self.trips: list[int] = []

    async def outcome(self, client: Any, call: Any, until: Any = None) -> Any:
        self.trips.append(1)
        return await super().outcome(client, call, until)

    async def aoutcomes_now(self, client: Any, calls: Any) -> list[Any]:
        self.trips.append(len(calls))
        return await super().aoutcomes_now(client, calls)


def append() -> Source:
    return Source('return redis.call("RPUSH", KEYS[1], ARGV[1])')


def call(number: object) -> Call:
    return [KEY], [number]


def kept() -> list[int]:
    return [int(each) for each in get_client().lrange(KEY, 0, -1)]


def test_the_first_goes_at_once_and_those_that_come_meanwhile_in_one_round_trip(redis: Redis) -> None:
    script = append()

    async def main() -> list[list[int]]:
        await together(script, [])  # the client of a cluster finds its nodes now
        return await asyncio.gather(*(together(script, [call(number)]) for number in range(10)))

    assert asyncio.run(main()) == [[number + 1] for number in range(10)]
    assert kept() == list(range(10))
    assert script.trips == [1, 9]


def test_a_cancelled_call_keeps_no_other_from_an_answer(redis: Redis) -> None:
    script = append()

    async def main() -> list[Any]:
        tasks = [asyncio.ensure_future(together(script, [call(number)])) for number in range(5)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        tasks[2].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    first, second, third, *others = asyncio.run(main())

    assert isinstance(first, asyncio.CancelledError)
    assert isinstance(third, asyncio.CancelledError)
    assert [type(each) for each in (second, *others)] == [list] * 3
    assert {1, 3, 4} <= set(kept())
    assert 2 not in kept()


def test_an_error_is_raised_only_where_it_belongs(redis: Redis) -> None:
    script = Source('if ARGV[1] == "3" then return redis.error_reply("ODD no") end return ARGV[1]')

    async def main() -> list[Any]:
        calls = (together(script, [call(number)]) for number in range(6))
        return await asyncio.gather(*calls, return_exceptions=True)

    answers = asyncio.run(main())

    assert isinstance(answers.pop(3), ResponseError)
    assert answers == [[str(number).encode()] for number in (0, 1, 2, 4, 5)]


def test_more_can_send_at_once_than_there_are_connections(redis: Redis) -> None:
    chat = Chat.create("owner", members=["jill"], settings=ChatSettings(rate_limit=0))

    async def main() -> list[Any]:
        senders = ["jill", "owner", "stranger"] * 100
        sends = (chat.asend(sender, f"{number}") for number, sender in enumerate(senders))
        return await asyncio.gather(*sends, return_exceptions=True)

    sent = asyncio.run(main())

    assert [type(each) for each in sent[2::3]] == [ChatNotFound] * 100
    seqs = [each.seq for each in (*sent[0::3], *sent[1::3])]
    assert sorted(seqs) == list(range(2, 202))
    page = chat.history("jill", limit=200, after=1)
    assert [message.text for message in page.messages] == [
        f"{number}" for number in range(300) if number % 3 < 2
    ]
