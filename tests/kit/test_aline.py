"""The connection that all coroutines of an event loop share for scripts."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis import Redis
from redis.asyncio.connection import Connection
from redis.exceptions import InvalidResponse, ResponseError

from components.embedded import EmbeddedServer
from components.exceptions import RedisUnavailable
from components.kit import resp
from components.kit.client import get_async_client
from components.kit.scripts import Script
from components.services.chat.keys import index
from components.services.locks import alock
from components.services.queues import TaskQueue
from components.services.semaphores import Semaphore
from components.testing import redis_at, run_tasks
from tests import tasks
from tests.kit.test_scripts import Source
from tests.support.proxy import LossyProxy

ECHO = Source("return ARGV[1]")
SLOW = Source("for _ = 1, 3e7 do end return ARGV[1]")


async def call(script: Script, text: object) -> Any:
    return await script.acall(get_async_client(), keys=[index("00")], args=[text])


@pytest.mark.parametrize(
    ("reader", "count"),
    [("hiredis", 2_000), ("plain", 2_000), pytest.param("hiredis", 100_000, marks=pytest.mark.slow)],
)
def test_whoever_is_cancelled_nobody_gets_the_answer_of_another(
    redis: Redis, monkeypatch: pytest.MonkeyPatch, reader: str, count: int
) -> None:
    if reader == "plain":
        monkeypatch.setattr(resp, "Reader", None)
    chance = random.Random(count)

    async def ask(number: int) -> bool | None:
        """Whether the answer was its own; None for none."""
        await asyncio.sleep(chance.random() * count / 20_000)
        try:
            async with asyncio.timeout(chance.choice([0, 0.001, 0.01, None])):
                if number % 5:
                    return await call(ECHO, number) == b"%d" % number
                calls = [([index("00")], [number + at]) for at in range(4)]
                answers = await ECHO.amany(get_async_client(), calls)
                return answers == [b"%d" % (number + at) for at in range(4)]
        except TimeoutError:
            return None

    async def main() -> list[Any]:
        asked = [asyncio.ensure_future(ask(number)) for number in range(1, count)]
        for each in chance.sample(asked, count // 10):
            asyncio.get_running_loop().call_later(chance.random() * count / 20_000, each.cancel)
        return await asyncio.gather(*asked, return_exceptions=True)

    found = asyncio.run(main())

    others = [each for each in found if each not in (True, None)]
    assert {type(each) for each in others} == {asyncio.CancelledError}
    assert found.count(True) > count / 5  # of a quarter, which wait as long as it takes, a tenth is cancelled


def test_a_thousand_coroutines_use_one_connection_and_each_has_its_own_answer_or_error(redis: Redis) -> None:
    odd = Source('if ARGV[1] == "3" then return redis.error_reply("ODD no") end return ARGV[1]')
    before = redis.info("stats")["total_connections_received"]

    async def main() -> list[Any]:
        return await asyncio.gather(*(call(odd, number) for number in range(1_000)), return_exceptions=True)

    found = asyncio.run(main())

    assert isinstance(found[3], ResponseError)
    assert [*found[:3], *found[4:]] == [b"%d" % number for number in range(1_000) if number != 3]
    assert redis.info("stats")["total_connections_received"] == before + 1


async def _first_cancelled() -> Any:
    first, second = (asyncio.ensure_future(call(ECHO, number)) for number in range(2))
    await asyncio.sleep(0)
    first.cancel()
    return await second


async def _called_on_a_demoted_master() -> Any:
    demoted = Source(
        'if redis.call("INCR", KEYS[1]) == 1 then return redis.error_reply("READONLY it is") end return "1"'
    )
    return await call(demoted, "")


async def _many_to_a_slow_server() -> Any:
    client, text = get_async_client(), "x" * 1_000_000
    await call(ECHO, "")
    slow = asyncio.ensure_future(call(SLOW, ""))
    await asyncio.sleep(0)
    some = [asyncio.ensure_future(call(ECHO, text)) for _ in range(20)]
    wire: Any = client.connection_pool.line._wire
    async with asyncio.timeout(20):
        while not wire.is_full:
            await asyncio.sleep(0)
    assert not slow.done()
    more = [asyncio.ensure_future(call(ECHO, number)) for number in range(100)]
    await asyncio.sleep(0)
    assert len(wire._waiting) <= 21
    found = await asyncio.gather(*some, *more)
    assert {len(each) for each in found[:20]} == {1_000_000}
    return found[21]


@pytest.mark.parametrize("act", [_first_cancelled, _called_on_a_demoted_master, _many_to_a_slow_server])
def test_others_are_answered(redis: Redis, act: Callable[[], Awaitable[Any]]) -> None:
    async def main() -> Any:
        return await act()

    assert asyncio.run(main()) == b"1"


def test_all_who_wait_for_a_silent_server_learn_it_at_once(
    redis_server: EmbeddedServer, redis: Redis
) -> None:
    async def main() -> list[Any]:
        await call(ECHO, 0)
        proxy.lose_replies(to="EVALSHA", times=100, silently=True)
        return await asyncio.gather(*(call(ECHO, number) for number in range(50)), return_exceptions=True)

    with LossyProxy(redis_server) as proxy, redis_at(proxy.url, SOCKET_TIMEOUT=0.2):
        found = asyncio.run(main())
        assert {type(each) for each in found} == {RedisUnavailable}
        assert proxy.lost <= 4


def test_more_coroutines_can_wait_than_there_are_connections(redis: Redis) -> None:
    held, limited, result = [], Semaphore("s", limit=1), tasks.echo.enqueue("x")

    async def hold(number: int) -> None:
        async with alock("a", timeout=60) if number % 2 else limited.aacquire(wait=60):
            held.append(number)

    async def main() -> list[Any]:
        waiting = [asyncio.ensure_future(TaskQueue().await_for(result.id, wait=60)) for _ in range(150)]
        await asyncio.gather(*map(hold, range(300)))
        await asyncio.to_thread(run_tasks)
        return await asyncio.gather(*waiting)

    assert {info.state for info in asyncio.run(main())} == {"successful"}
    assert sorted(held) == list(range(300))


VALUES = st.recursive(
    st.none()
    | st.integers(-(2**63), 2**63 - 1)
    | st.binary(max_size=20)
    | st.booleans()
    | st.floats(allow_nan=False),
    lambda some: st.lists(some, max_size=5),
)


def packed(value: Any) -> bytes:
    match value:
        case None:
            return random.choice([b"$-1\r\n", b"*-1\r\n", b"_\r\n"])
        case bool():
            return b"#%s\r\n" % (b"t" if value else b"f")
        case int():
            return b":%d\r\n" % value
        case float():
            return b",%s\r\n" % repr(value).encode()
        case bytes():
            return b"$%d\r\n%s\r\n" % (len(value), value)
    return b"*%d\r\n%s" % (len(value), b"".join(map(packed, value)))


@given(st.lists(VALUES, max_size=6), st.integers(1, 40))
def test_without_hiredis_answers_are_read_alike_however_they_arrive(values: list[Any], size: int) -> None:
    data = b"".join(map(packed, values)) + b"-ERR no\r\n+OK\r\n"
    plain = resp.PlainReader(Connection()._parser.parse_error)
    found = []
    for at in range(0, len(data), size):
        plain.feed(data[at : at + size])
        while (each := plain.gets()) is not resp.MORE:
            found.append(each)

    *same, error, said = found
    assert (same, str(error), said) == (values, "no", b"OK")
    plain.feed(b"HTTP/1.1 400 Bad Request\r\n")
    with pytest.raises(InvalidResponse):
        plain.gets()
