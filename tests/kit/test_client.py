"""
The one door to Redis: which client it gives, and that it repeats no write. The asynchronous client is one for each
event loop, closed with its loop; a command that is cancelled leaves no reply behind for the next.
"""

import asyncio
import gc
import sys
import warnings
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from signal import SIGALRM, raise_signal
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core.exceptions import ImproperlyConfigured
from django.test.utils import override_settings
from redis import Redis
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio.connection import BlockingConnectionPool
from redis.connection import AbstractConnection

from components.embedded import EmbeddedServer
from components.exceptions import RedisUnavailable
from components.kit import aclient
from components.kit.client import get_async_client, get_client, longest_block
from components.kit.errors import redis_errors
from components.servers import inspect_server
from components.services.queues import TaskQueue
from components.testing import ClusterServer, redis_at
from tests.support.full import configured
from tests.support.proxy import LossyProxy
from tests.support.queues import push_many
from tests.support.waiting import eventually

CLUSTER = {"CLIENT_CLASS": "components.cache.ClusterClient"}
LIST, OTHER = "{a}list", "{a}other"


class AnnouncedServer(ClusterServer):
    """A cluster node that says it is to be reached elsewhere."""

    def announce(self, port: int) -> None:
        self._options["cluster-announce-port"] = str(port)


@pytest.fixture(params=["plain", "cluster"])
def redis_mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def proxied(
    redis_mode: str, own_server: EmbeddedServer, tmp_path: Path, program: Path | None
) -> Iterator[LossyProxy]:
    """The project's Redis, behind a proxy that loses replies."""
    if redis_mode == "plain":
        with LossyProxy(own_server) as proxy, redis_at(proxy.url, SOCKET_TIMEOUT=0.5):
            yield proxy
        return
    node = AnnouncedServer(tmp_path, server=program)
    with LossyProxy(node) as proxy:
        node.announce(int(proxy.url.rpartition(":")[2]))
        url = f"redis://:{node._password}@{proxy.url.removeprefix('redis://')}"
        with node, redis_at(url, SOCKET_TIMEOUT=0.5, **CLUSTER):
            yield proxy


def collect_garbage_of_others() -> None:
    """Collect what other tests have left behind, whatever it complains of."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setattr(sys, "unraisablehook", lambda _unraisable: None)
        warnings.simplefilter("ignore")
        gc.collect()


@contextmanager
def no_warnings() -> Iterator[None]:
    """Nothing that the block leaves behind complains when it is collected."""
    collect_garbage_of_others()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        yield
        gc.collect()
    assert [str(warning.message) for warning in seen] == []


def connections(server: EmbeddedServer) -> set[int]:
    """Who is connected to the server, apart from the one that asks."""
    with Redis.from_url(server.url) as client:
        return {int(each["id"]) for each in client.client_list()} - {client.client_id()}


async def echo(text: str) -> Any:
    """ECHO, which a client of a cluster would not know where to send."""
    return await get_async_client().eval("return ARGV[1]", 1, LIST, text)


async def increase() -> int:
    count: int = await get_async_client().incr("hits")
    return count


@pytest.mark.slow
def test_it_follows_the_settings_within_a_loop(redis: Redis, tmp_path: Path) -> None:
    async def main() -> None:
        first = get_async_client()
        await first.set("a", "1")
        with EmbeddedServer(tmp_path, appendonly=False) as other, redis_at(other.url):
            assert await get_async_client().get("a") is None
            assert get_async_client() is not first
        assert get_async_client() is first

    with no_warnings():
        asyncio.run(main())


def test_options_of_the_alias_hold_for_it_too(redis_cluster_server: ClusterServer) -> None:
    password, address = redis_cluster_server._password, redis_cluster_server.url.rpartition("@")[2]
    options: dict[str, Any] = {
        "PASSWORD": password,
        "PARSER_CLASS": "redis._parsers.resp2._RESP2Parser",
        "CONNECTION_POOL_CLASS": "redis.connection.BlockingConnectionPool",
        "CONNECTION_POOL_KWARGS": {"max_connections": 7, "timeout": 2, "client_name": "ours", "protocol": 2},
    }

    async def main() -> None:
        client = get_async_client()
        pool = client.connection_pool
        assert await client.client_getname() == "ours"
        assert isinstance(pool, BlockingConnectionPool)
        assert (pool.max_connections, pool.timeout) == (7, 2)
        assert pool.connection_kwargs["parser_class"].__name__ == "_AsyncRESP2Parser"

    with redis_at(f"redis://{address}", **options):
        asyncio.run(main())


def test_options_hold_for_both_clients_of_a_cluster(redis_cluster_server: ClusterServer) -> None:
    async def main() -> None:
        assert await get_async_client().client_getname() == "ours"
        assert longest_block(get_async_client()) == 2

    # Found under another address, since the synchronous client is kept by its address.
    url = redis_cluster_server.url.replace("127.0.0.1", "localhost")
    given = {"client_name": "ours", "max_connections": 7, "retry_on_timeout": True}
    with redis_at(url, SOCKET_TIMEOUT=3, CONNECTION_POOL_KWARGS=given, **CLUSTER) as client:
        assert client.client_getname() == "ours"
        assert longest_block(client) == 2
        asyncio.run(main())


@pytest.mark.slow
@pytest.mark.parametrize("run", [lambda: asyncio.run(increase()), lambda: async_to_sync(increase)()])
def test_many_short_loops_leave_nothing_behind(
    redis: Redis, server: EmbeddedServer, run: Callable[[], int]
) -> None:
    redis.ping()
    before, loops = connections(server), len(aclient._loops)

    with no_warnings():
        assert [run() for _ in range(20)] == list(range(1, 21))

    assert len(aclient._loops) == loops
    assert eventually(lambda: connections(server) <= before)


@pytest.mark.slow
def test_connections_that_are_in_use_when_the_loop_ends_are_closed_too(
    redis: Redis, server: EmbeddedServer
) -> None:
    async def main() -> None:
        waiting = [asyncio.create_task(get_async_client().blpop(LIST, 0)) for _ in range(3)]
        await increase()
        assert not any(task.done() for task in waiting)

    redis.ping()
    before = connections(server)
    with no_warnings():
        asyncio.run(main())

    assert eventually(lambda: connections(server) <= before)


def test_a_loop_that_was_closed_carelessly_is_let_go_when_the_next_begins(redis: Redis) -> None:
    async def ask() -> None:
        get_async_client()  # and opens no connection, of which Python itself would warn

    careless = asyncio.new_event_loop()
    careless.run_until_complete(ask())
    careless.close()
    assert careless in aclient._loops

    asyncio.run(increase())

    assert careless not in aclient._loops


# Blocking, cancelling, losing


async def _block(client: AsyncRedis) -> object:
    return await client.blpop(LIST, 0.1)  # Python 3.11 loses some cancellations while a command is sent


async def _read(client: AsyncRedis) -> object:
    return await client.get("somebody else's")


async def _transact(client: AsyncRedis) -> object:
    async with client.pipeline(transaction=True) as pipe:
        return await pipe.get(LIST).get(OTHER).lrange(LIST, 0, -1).execute()


async def _run_script(client: AsyncRedis) -> object:
    return await client.eval("return 'somebody else'", 1, LIST)


@pytest.mark.slow
@pytest.mark.parametrize("act", [_block, _read, _transact, _run_script])
def test_a_cancelled_command_leaves_no_reply_for_the_next(
    redis: Redis, server: EmbeddedServer, act: Callable[[AsyncRedis], Awaitable[object]]
) -> None:
    """Wherever it was: connecting, sending, waiting. With one connection there is no other to hide behind."""

    async def main() -> int:
        client, cancelled = get_async_client(), 0
        for steps in range(40):
            task = asyncio.ensure_future(act(client))
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            cancelled += task.cancelled()
            if steps % 4 == 0:
                await client.rpush(LIST, "x")  # what a BLPOP that is still there would take
                assert await client.lpop(LIST) == b"x"
            assert await echo(f"mine {steps}") == f"mine {steps}".encode()
        return cancelled

    kind = CLUSTER if isinstance(server, ClusterServer) else {}
    # A cluster asks its nodes about themselves on connections of the same pool.
    with redis_at(server.url, CONNECTION_POOL_KWARGS={"max_connections": 1}, **kind), no_warnings():
        assert asyncio.run(main()) >= 1


@pytest.mark.slow
@pytest.mark.parametrize("silently", [False, True], ids=["connection lost", "no answer"])
def test_a_write_whose_reply_was_lost_is_not_sent_again(proxied: LossyProxy, silently: bool) -> None:
    async def main() -> None:
        await get_async_client().ping()
        proxied.lose_replies(to="INCR", silently=silently)
        with pytest.raises(RedisUnavailable), redis_errors():
            await increase()

        assert proxied.lost == 1
        assert await get_async_client().get("hits") == b"1"

    with no_warnings():
        asyncio.run(main())
    get_client().ping()
    proxied.lose_replies(to="INCR", silently=silently)
    with pytest.raises(RedisUnavailable), redis_errors():
        get_client().incr("hits")
    assert proxied.lost == 2
    assert get_client().get("hits") == b"2"
    # A script is sent once more.
    push_many(1)
    proxied.lose_replies(to="EVALSHA", silently=silently)
    push_many(1)
    assert proxied.lost == 3
    assert TaskQueue().stats("default").ready == 2


def test_more_commands_at_once_than_connections_are_told_what_to_do(
    redis: Redis, server: EmbeddedServer
) -> None:
    async def main() -> None:
        waiting = asyncio.create_task(get_async_client().blpop(LIST, 1))
        while not any("b" in each["flags"] for each in get_client().client_list(_type="normal")):
            await asyncio.sleep(0.01)
        with pytest.raises(RedisUnavailable, match="fewer threads or coroutines"), redis_errors():
            await increase()
        waiting.cancel()

    kind = CLUSTER if isinstance(server, ClusterServer) else {}
    with redis_at(server.url, CONNECTION_POOL_KWARGS={"max_connections": 1}, **kind):
        asyncio.run(main())


@pytest.mark.parametrize("moment", ["before it reads", "while it reads"])
def test_a_call_that_a_signal_handler_ends_leaves_no_reply_to_the_next(
    redis: Redis, alarm: Callable[[float], Any], monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    redis.set("a", "1")
    with monkeypatch.context() as patch:
        if moment == "before it reads":
            patch.setattr(AbstractConnection, "read_response", lambda *_, **__: raise_signal(SIGALRM))
        else:
            alarm(0.1)
        with pytest.raises(KeyboardInterrupt):
            get_client().blpop([LIST], 2)

    assert get_client().get("a") == b"1"


def test_a_cache_of_another_kind_is_an_error_that_says_what_to_write() -> None:
    locmem = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
    with (
        override_settings(CACHES={"default": locmem}),
        pytest.raises(ImproperlyConfigured, match=r"BACKEND must be \"django_redis\.cache\.RedisCache\""),
    ):
        get_client()


@pytest.mark.parametrize(("timeout", "block"), [(None, 4), (20, 4), (5, 4), (4, 3), (1.05, 0.1), (0.5, 0.1)])
def test_a_blocking_command_returns_before_the_socket_gives_up(
    tmp_path: Path, timeout: float | None, block: float
) -> None:
    given = {"CONNECTION_POOL_KWARGS": {"socket_timeout": timeout}}
    with redis_at(f"unix://{tmp_path}/{timeout}.sock", **given) as client:
        assert longest_block(client) == pytest.approx(block)


def test_it_tells_name_version_and_mode(redis: Redis, redis_mode: str) -> None:
    server, mode = inspect_server(), {"plain": "standalone", "cluster": "cluster"}[redis_mode]

    info = redis.info("server")
    is_valkey = info.get("server_name") == "valkey"
    assert server.name == ("Valkey" if is_valkey else "Redis")
    assert server.version == info["valkey_version" if is_valkey else "redis_version"]
    assert server.mode == mode
    assert str(server) == f"{server.name} {server.version} ({mode})"


def test_a_server_that_keeps_nothing_on_disk_or_may_evict_tasks_is_warned_of(redis: Redis) -> None:
    [warning] = inspect_server().warnings
    assert "appendonly is off" in warning
    with configured(redis, **{"maxmemory": "100mb", "maxmemory-policy": "allkeys-lru"}):
        warnings = inspect_server().warnings

    assert any("allkeys-lru" in warning and "noeviction" in warning for warning in warnings)


def test_a_server_that_does_not_permit_info_is_no_error(redis_server: EmbeddedServer) -> None:
    with redis_at(redis_server.url) as redis:
        redis.execute_command("ACL SETUSER", "shop", "on", ">secret", "~*", "+@all", "-info")
    with redis_at(f"{redis_server.url}?username=shop&password=secret"):
        server = inspect_server()

    assert (server.name, server.version) == ("", "")
    assert str(server) == "Redis"
    assert "does not permit INFO" in server.warnings[0]
