"""
A cluster of several nodes: the first use by many coroutines at once, and a node that dies or hangs while the
others go on.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from components.exceptions import RedisUnavailable
from components.kit.client import get_async_client, get_client
from components.kit.errors import redis_errors
from components.kit.scripts import Script
from components.kit.sync_async import at_once
from components.services.chat import Chat, Inbox
from components.services.counters import Counter
from components.testing import redis_at
from tests.support.masters import NUMBER, Master, Masters, forget_clients, masters

pytestmark = pytest.mark.slow

CLUSTER = {"CLIENT_CLASS": "components.cache.ClusterClient"}
TIMEOUT = 1.0


class Increase(Script):
    """Count at a key, and give the key back."""

    source = "redis.call('INCR', KEYS[1]); return KEYS[1]"


increase = Increase("increase")


@pytest.fixture
def site(tmp_path: Path, program: Path | None) -> Iterator[Masters]:
    """The project's Redis, of which a test may lose nodes."""
    with masters(tmp_path, program) as nodes:
        yield from used(nodes)


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Masters]:
    """Nodes that no test loses: a cluster needs two seconds to begin."""
    with masters(tmp_path_factory.mktemp("lasting"), request.config.getoption("--redis-server")) as nodes:
        yield nodes


@pytest.fixture
def whole_site(lasting: Masters) -> Iterator[Masters]:
    """The project's Redis, all of which stays."""
    for node in lasting:
        with Redis(port=node.port) as client:
            client.flushall()
            client.script_flush()
    yield from used(lasting)


def used(nodes: Masters) -> Iterator[Masters]:
    with redis_at(nodes.urls, SOCKET_TIMEOUT=TIMEOUT, **CLUSTER):
        yield nodes
    forget_clients()


KEYS = [f"key:{number}" for number in range(50)]


def test_the_first_scripts_transactions_and_fetches_of_many_coroutines_all_succeed(
    whole_site: Masters,
) -> None:
    chats = [Chat.create("joe", members=["jeff"], text="hello") for _ in range(10)]

    async def main() -> list[Any]:
        acts: list[Any] = [Inbox("jeff").afetch() for _ in range(10)]
        acts += [Counter(f"sales:{number}").aupdate() for number in range(10)]
        acts += [increase.amany(get_async_client(), [([key], []) for key in KEYS])]
        acts += [increase.acall(get_async_client(), keys=[key]) for key in KEYS]
        return await asyncio.gather(*acts, return_exceptions=True)

    for _ in range(3):
        found = asyncio.run(main())

        assert [each for each in found if isinstance(each, BaseException)] == []
        assert {news.chat_id for news in found[0]} == {chat.id for chat in chats}


def test_a_cluster_that_moves_its_slots_disturbs_nobody(whole_site: Masters) -> None:
    """redis-py closes all connections, also those in use, at each fifth answer that a slot was moved."""

    async def main() -> list[Any]:
        client: Any = get_async_client()
        await client.set("key:0", 0)
        # As after a failover: what the client knows is wrong for all.
        manager = client.nodes_manager
        names = list(manager.nodes_cache)
        turned = dict(zip(names, [*names[1:], names[0]], strict=True))
        manager.slots_cache = {
            slot: [manager.nodes_cache[turned[found[0].name]]] for slot, found in manager.slots_cache.items()
        }
        with redis_errors():
            return await asyncio.gather(*(client.incr(key) for key in KEYS), return_exceptions=True)

    assert [each for each in asyncio.run(main()) if isinstance(each, BaseException)] == []


def test_a_connection_that_is_closed_at_any_moment_of_a_command_is_an_outage_or_nothing(
    whole_site: Masters,
) -> None:
    """redis-py closes connections in use after errors of others; it then calls, or reads from, None."""

    async def one(client: Any, node: Any, moment: int) -> bool:
        await client.get(KEYS[0])  # there is a connection
        asked = asyncio.create_task(client.incr(KEYS[0]))
        for _ in range(moment):
            await asyncio.sleep(0)
        for connection in node._connections:
            await connection.disconnect(nowait=True)
        try:
            with redis_errors():
                return bool(await asked)
        except RedisUnavailable:
            return False

    async def main() -> list[bool]:
        client: Any = get_async_client()
        await client.set(KEYS[0], 0)
        return [await one(client, client.get_node_from_key(KEYS[0]), moment) for moment in range(60)]

    assert set(asyncio.run(main())) == {True, False}


def assert_only_the_lost_fail(nodes: Masters, gone: str, outcomes: list[Any]) -> None:
    lost = nodes.of(gone)
    for key, found in zip(KEYS, outcomes, strict=True):
        if nodes.of(key) is lost:
            assert isinstance(found, RedisUnavailable), key
        else:
            assert found == key.encode(), key
    assert 0 < sum(isinstance(each, RedisUnavailable) for each in outcomes) < len(KEYS)


@pytest.mark.parametrize("number", range(NUMBER))
def test_a_node_that_hangs_does_not_hold_up_the_start(site: Masters, number: int) -> None:
    """Whichever it is: the first of the settings, or the first that is asked for the commands that servers know."""
    site[number].hang()
    key = next(key for key in KEYS if not site[number].has(key))
    began = time.monotonic()
    with redis_at(site.urls, SOCKET_TIMEOUT=120, **CLUSTER):
        assert at_once(increase.acall(get_client(), keys=[key])) == key.encode()
        assert asyncio.run(awaited(key)) == key.encode()
    assert time.monotonic() - began < 60  # it takes one second, and 120 if it waits for that node


async def awaited(key: str) -> Any:
    return await increase.acall(get_async_client(), keys=[key])


@pytest.mark.parametrize("lose", [Master.kill, Master.hang])
def test_only_calls_to_the_node_that_is_gone_fail(site: Masters, lose: Callable[[Master], None]) -> None:
    """Whoever sends them: many coroutines together, both clients, and those of a process that has just started."""
    calls, gone = [([key], []) for key in KEYS], KEYS[0]

    async def one(key: str) -> Any:
        try:
            return await awaited(key)
        except RedisUnavailable as error:
            return error

    async def by_many() -> None:
        assert await asyncio.gather(*map(one, KEYS)) == [key.encode() for key in KEYS]
        lose(site.of(gone))
        for _ in range(3):
            assert_only_the_lost_fail(site, gone, await asyncio.gather(*map(one, KEYS)))

    async def by_one() -> list[Any]:
        return await increase.aoutcomes(get_async_client(), calls)

    assert at_once(increase.aoutcomes(get_client(), calls)) == [key.encode() for key in KEYS]
    asyncio.run(by_many())
    for _ in range(2):  # known, and found anew
        for _ in range(2):
            assert_only_the_lost_fail(site, gone, at_once(increase.aoutcomes(get_client(), calls)))
            assert_only_the_lost_fail(site, gone, asyncio.run(by_one()))
        with pytest.raises(RedisUnavailable):
            at_once(increase.amany(get_client(), calls))
        forget_clients()
