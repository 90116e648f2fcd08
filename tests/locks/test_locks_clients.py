"""Clients and names of all kinds, on a plain server and a cluster: protocol, decoded replies, bytes, braces."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest.mock import Mock

import pytest
from redis import Redis, RedisCluster
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio import RedisCluster as AsyncRedisCluster
from redis.exceptions import RedisClusterException
from redis.maint_notifications import MaintNotificationsConfig

from components.embedded import EmbeddedServer
from components.exceptions import InvalidName
from components.services.locks import AsyncLock, Lock, LockReader, lock
from components.services.locks.keys import LockKeys
from components.testing import ClusterServer
from tests.support.waiting import eventually

NAMES = ["a", "item:42", "a b\nc", "naïve ☂", "a/b%2F", "%7Ba%7D", "x" * 500]
NAMES += ["{tag}", "{tag}:rest", "item:{tag}", "{a}{b}", "{a%2F}", "{", "a{b", "{{a}}"]
#: Keys that cannot be locked on a cluster: their braces keep the lock's other keys out of their slot.
ODD = ["}", "{}", "a{}b", "{}{a}", "}{"]


@pytest.fixture(params=[2, 3], ids=["RESP2", "RESP3"])
def protocol(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(params=[False, True], ids=["bytes", "decoded"])
def decodes(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def client(redis: Redis, server: EmbeddedServer, protocol: int, decodes: bool) -> Any:
    kind = RedisCluster if isinstance(server, ClusterServer) else Redis
    # With these notifications (RESP3) redis-py leaves the socket that found the nodes to the garbage collector.
    options = {"maint_notifications_config": MaintNotificationsConfig(enabled=False)}
    with kind.from_url(server.url, protocol=protocol, decode_responses=decodes, **options) as client:
        yield client


@pytest.mark.parametrize("name", ["a", b"a"], ids=["str", "bytes"])
def test_all_that_a_lock_does_it_does_with_any_client_and_any_type_of_name(
    redis: Redis, client: Any, name: Any
) -> None:
    held = Lock(client, name, timeout=100, owner="jill")

    with held:
        assert redis.get("a") == held.local.token
        assert held.owned()
        held.ensure_held()
        assert held.extend(100)
        assert held.remaining > 150
        assert held.reacquire()
        assert not Lock(client, "a").acquire(blocking=False)
        assert not Lock(client, name, fair=True).acquire(blocking_timeout=0.01)

    assert not held.locked()
    assert held.acquire(token="a token of one's own")
    assert held.owned()
    held.release()


def test_a_waiter_is_woken_with_any_client(redis: Redis, client: Any) -> None:
    holder, waiter = Lock(client, "a", timeout=100), Lock(client, "a", fair=True)
    holder.acquire()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(waiter.acquire)
        assert eventually(lambda: redis.zcard(LockKeys.of("a", client).queue))
        holder.release()
        assert waiting.result(20)


@pytest.mark.parametrize("name", ["a", b"a"], ids=["str", "bytes"])
def test_coroutines_do_it_with_any_client(
    redis: Redis, server: EmbeddedServer, protocol: int, decodes: bool, name: Any
) -> None:
    kind = AsyncRedisCluster if isinstance(server, ClusterServer) else AsyncRedis

    async def main() -> None:
        async with kind.from_url(server.url, protocol=protocol, decode_responses=decodes) as client:
            holder, waiter = AsyncLock(client, name, timeout=100), AsyncLock(client, "a", fair=True)
            async with holder:
                assert await holder.owned()
                assert await holder.extend(100)
                await holder.ensure_held()
                waiting = asyncio.create_task(waiter.acquire())
                while not await client.zcard(LockKeys.of("a", client).queue):
                    await asyncio.sleep(0.005)
            assert await asyncio.wait_for(waiting, 20)
            assert await waiter.owned()
            await waiter.release()

    asyncio.run(main())


@pytest.mark.parametrize("name", [*NAMES, *ODD], ids=ascii)
def test_a_key_of_ones_own_may_be_called_anything_that_has_a_slot(
    redis: Redis, server: EmbeddedServer, name: str
) -> None:
    if name in ODD and isinstance(server, ClusterServer):
        with pytest.raises(InvalidName, match="On a cluster"):
            Lock(redis, name)
        return
    with Lock(redis, name, timeout=100) as held:
        assert redis.get(name) == held.local.token
        assert not Lock(redis, name.encode()).acquire(blocking_timeout=0.005)

    assert not redis.exists(name)


@pytest.mark.parametrize("name", [*NAMES, *ODD], ids=ascii)
def test_a_lock_of_the_app_may_be_called_anything(redis: Redis, name: str) -> None:
    with lock(name, timeout=100) as held:
        assert not lock(name).acquire(blocking_timeout=0.005)
        [info] = LockReader().held()
        assert info.name == name
        assert info.token.encode() == held.local.token

    assert LockReader().count() == 0


def test_names_that_look_alike_are_different_locks(redis: Redis) -> None:
    names = ["a", "a ", "A", "{a}", "a}", "%7Ba%7D", "a:a", "lock:a"]
    held = [lock(name) for name in names]

    assert all(each.acquire(blocking=False) for each in held)
    assert LockReader().count() == len(names)
    assert len({info.name for info in LockReader().held()}) == len(names)
    for each in held:
        each.release()


def test_a_cluster_that_is_gone_does_not_hide_what_went_wrong_in_the_block(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, redis: Redis
) -> None:
    held = Lock(redis, "a", timeout=10)
    error = RedisClusterException("Redis Cluster cannot be connected.")
    monkeypatch.setattr(held, "do_release", Mock(side_effect=error))

    with pytest.raises(ZeroDivisionError), held:
        raise ZeroDivisionError

    assert "cannot be connected" in caplog.text
