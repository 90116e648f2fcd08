"""
Script: a Lua file, callable and awaitable; sent by its digest, once more after a lost reply. Several calls travel in
one round trip, whatever of them is refused or lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import pytest
from redis import Redis
from redis.exceptions import ResponseError

from components.embedded import EmbeddedServer
from components.exceptions import RedisUnavailable
from components.kit import scripts
from components.kit.client import get_async_client, get_client
from components.kit.scripts import Call, Script
from components.testing import redis_at
from tests.support.monitoring import sent_to
from tests.support.proxy import LossyProxy


class Source(Script):
    """A script that is not a file."""

    def __init__(self, source: str) -> None:
        super().__init__("none")
        self.source = source


COUNT = 'return redis.call("INCR", KEYS[1])'
KEYS = [f"{{{number}}}" for number in range(5)]

Run: TypeAlias = Callable[[Script, Sequence[Call]], list[Any]]


def called(script: Script, calls: Sequence[Call]) -> list[Any]:
    return [script(get_client(), keys=keys, args=args) for keys, args in calls]


def awaited(script: Script, calls: Sequence[Call]) -> list[Any]:
    async def main() -> list[Any]:
        return [await script.acall(get_async_client(), keys=keys, args=args) for keys, args in calls]

    return asyncio.run(main())


def together(script: Script, calls: Sequence[Call]) -> list[Any]:
    return script.many(get_client(), calls)


def awaited_together(script: Script, calls: Sequence[Call]) -> list[Any]:
    async def main() -> list[Any]:
        return await script.amany(get_async_client(), calls)

    return asyncio.run(main())


@pytest.fixture(params=[called, awaited, together, awaited_together])
def run(request: pytest.FixtureRequest) -> Run:
    """Run calls with the project's client of one kind, one by one or together."""
    found: Run = request.param
    return found


@pytest.fixture
def proxy(redis_server: EmbeddedServer, redis: Redis) -> Iterator[LossyProxy]:
    with LossyProxy(redis_server) as proxy:
        yield proxy


@pytest.mark.parametrize("run", [called, awaited])
def test_the_source_is_sent_once_then_the_digest(
    redis: Redis, redis_server: EmbeddedServer, run: Run
) -> None:
    redis.script_flush()

    with sent_to(redis_server) as commands:
        answers = run(Source(COUNT), [(["a"], [])] * 3)

    assert answers == [1, 2, 3]
    sent = [command for command in commands if command.startswith("EVAL")]  # a new loop says hello as well
    assert sent == ["EVALSHA", "EVAL", "EVALSHA", "EVALSHA"]


@pytest.mark.parametrize("silently", [False, True], ids=["connection lost", "no answer"])
def test_a_lost_reply_is_asked_for_once_more(
    proxy: LossyProxy, redis: Redis, silently: bool, run: Run
) -> None:
    script = Source(COUNT)
    script(redis, keys=["a"])
    with redis_at(proxy.url, SOCKET_TIMEOUT=0.3):
        proxy.lose_replies(to="EVALSHA", silently=silently)
        assert run(script, [(["a"], [])]) == [3]

    assert proxy.lost == 1


@pytest.mark.parametrize("run", [called, awaited])
def test_two_lost_replies_are_an_outage(proxy: LossyProxy, redis: Redis, run: Run) -> None:
    script = Source(COUNT)
    script(redis, keys=["a"])
    with redis_at(proxy.url):
        proxy.lose_replies(to="EVALSHA", times=5)
        with pytest.raises(RedisUnavailable):
            run(script, [(["a"], [])])

    assert proxy.lost == 2
    assert redis.get("a") == b"3"


def test_an_error_of_the_script_is_not_repeated_and_not_an_outage(redis: Redis, run: Run) -> None:
    script = Source('redis.call("INCR", KEYS[1]) return redis.call("LPUSH", KEYS[1], "x")')
    calls = [(["a"], [])]

    with pytest.raises(ResponseError, match="WRONGTYPE"):
        run(script, calls)

    # Calls that travel together are asked again one by one, and say what is the matter.
    assert redis.get("a") == (b"1" if run in (called, awaited) else b"2")


@pytest.mark.parametrize("run", [together, awaited_together])
def test_answered_calls_are_not_repeated_when_a_script_is_unknown_to_others(
    redis: Redis, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another client may load the script while the server works through a pipeline."""
    count = Source(COUNT)
    redis.script_flush()
    send = scripts._send_together

    async def interrupted(node: Any, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        monkeypatch.undo()
        before = await send(node, commands[:3])
        redis.script_load(count.source)
        return before + await send(node, commands[3:])

    monkeypatch.setattr(scripts, "_send_together", interrupted)

    assert run(count, [([key], []) for key in KEYS]) == [1] * len(KEYS)


@pytest.mark.parametrize("run", [together, awaited_together])
def test_a_mistake_in_one_call_is_told_and_the_others_are_made(redis: Redis, run: Run) -> None:
    redis.rpush(KEYS[1], "a list")

    with pytest.raises(ResponseError, match="WRONGTYPE"):
        run(Source(COUNT), [([KEYS[0]], []), ([KEYS[1]], []), ([KEYS[2]], [])])

    assert redis.mget(KEYS[0], KEYS[2]) == [b"1", b"1"]


def test_an_asynchronous_client_must_be_awaited(redis: Redis) -> None:
    async def main() -> None:
        client: Any = get_async_client()
        await client.ping()
        for ask in (
            lambda: Source(COUNT)(client, keys=["a"]),
            lambda: Source(COUNT).many(client, [(["a"], [])]),
        ):
            with pytest.raises(TypeError, match="is asynchronous"):
                ask()
        assert await client.get("a") is None

    asyncio.run(main())
