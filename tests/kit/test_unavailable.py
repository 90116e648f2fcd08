"""What counts as Redis being unavailable: each trouble is made on a real server, and is over afterwards."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.test.utils import override_settings
from redis import Redis
from redis.exceptions import (
    BusyLoadingError,
    ClusterCrossSlotError,
    RedisClusterException,
    ResponseError,
)

from components.embedded import EmbeddedServer
from components.exceptions import RedisRefused, RedisUnavailable
from components.kit.client import get_async_client
from components.kit.errors import redis_errors
from components.services.queues import Consumer, TaskQueue
from components.testing import ClusterServer, redis_at
from tests.support.proxy import LossyProxy
from tests.support.queues import ECHO
from tests.support.waiting import eventually

CLUSTER = {"CLIENT_CLASS": "components.cache.ClusterClient"}


@pytest.fixture
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[EmbeddedServer]:
    """A server to make trouble with."""
    program = request.config.getoption("--redis-server")
    with EmbeddedServer(tmp_path / "redis", server=program, appendonly=False) as server:
        yield server


@contextmanager
def configured(client: Redis, **options: Any) -> Iterator[None]:
    before = {name: client.config_get(name)[name] for name in options}
    for name, value in options.items():
        client.config_set(name, value)
    yield
    for name, value in before.items():
        client.config_set(name, value)


@contextmanager
def replica(client: Redis, **options: Any) -> Iterator[None]:
    with configured(client, **options):
        client.replicaof("127.0.0.1", 1)  # a name would have to be looked up, and all would wait for that
        yield
        client.connection_pool.disconnect()  # the server closes connections whose blocking command it has ended
        client.replicaof("no", "one")


@contextmanager
def disk_full(client: Redis) -> Iterator[None]:
    in_its_way = Path(client.config_get("dir")["dir"], client.config_get("dbfilename")["dbfilename"])
    in_its_way.mkdir()
    with configured(client, save="3600 1"):
        client.bgsave()
        assert eventually(lambda: client.info("persistence")["rdb_last_bgsave_status"] == "err")
        yield
        in_its_way.rmdir()


@contextmanager
def busy(client: Redis) -> Iterator[None]:
    with configured(client, **{"lua-time-limit": 1}), Redis.from_url(_url_of(client)) as other:
        loop = threading.Thread(target=_run_for_ever, args=[other])
        loop.start()
        try:
            assert eventually(lambda: _is_busy(client))
            yield
        finally:
            client.script_kill()
            loop.join()


def _url_of(client: Redis) -> str:
    at = client.connection_pool.connection_kwargs
    return f"unix://{at['path']}" if "path" in at else f"redis://:{at['password']}@{at['host']}:{at['port']}"


def _run_for_ever(client: Redis) -> None:
    with pytest.raises(ResponseError, match="Script killed"):
        client.eval("while true do end", 0)


def _is_busy(client: Redis) -> bool:
    try:
        return not client.ping()
    except ResponseError as error:
        return "BUSY" in str(error)


#: What makes the trouble, with which options of the server, and a word of what is said about it.
TROUBLES: dict[str, tuple[Callable[..., AbstractContextManager[None]], dict[str, Any], str]] = {
    "OOM": (configured, {"maxmemory": "1"}, "memory is full"),
    "READONLY": (replica, {}, "read-only replica"),
    "MASTERDOWN": (replica, {"replica-serve-stale-data": "no"}, "replica"),
    "NOREPLICAS": (configured, {"min-replicas-to-write": 1}, "too few of its replicas"),
    "MISCONF": (disk_full, {}, "could not save its data"),
    "BUSY": (busy, {}, "busy running a script"),
}


def write(client: Redis) -> None:
    with redis_errors():
        client.get("a")
        client.set("a", "b")


def awrite(client: Redis) -> None:
    async def main() -> None:
        with redis_errors():
            await get_async_client().get("a")
            await get_async_client().set("a", "b")

    asyncio.run(main())


def run_script(client: Redis) -> None:
    TaskQueue().push(ECHO)


def run_transaction(client: Redis) -> None:
    with redis_errors(), client.pipeline(transaction=True) as pipe:
        pipe.srem("{a}b", "c")
        pipe.rpush("{a}d", "1")
        pipe.execute()


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_server_that_cannot_write_now_is_unavailable(server: EmbeddedServer, trouble: str) -> None:
    make, options, said = TROUBLES[trouble]
    acts = (write, awrite, run_script, run_transaction)
    with redis_at(server.url) as client:
        for act in acts:
            act(client)
        with make(client, **options):
            for act in acts:
                with pytest.raises(RedisRefused, match=said):
                    act(client)

        for act in acts:
            act(client)


def test_a_wait_at_a_server_that_becomes_a_replica_raises_unavailable(
    server: EmbeddedServer,
) -> None:
    with redis_at(server.url) as client, ThreadPoolExecutor() as pool:
        wait = pool.submit(lambda: Consumer().wait(["default"], 60))
        assert eventually(lambda: client.info("clients")["blocked_clients"] == 1)

        with replica(client), pytest.raises(RedisUnavailable, match="UNBLOCKED"):
            wait.result()


def test_a_server_that_loads_its_data_is_unavailable(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    program = request.config.getoption("--redis-server")
    entry = b"*3\r\n$5\r\nRPUSH\r\n$4\r\nlist\r\n$1\r\n1\r\n"
    (tmp_path / "appendonly.aof").write_bytes(entry * 1_000_000)
    server = EmbeddedServer(tmp_path, server=program)
    starting = threading.Thread(target=server.start)
    starting.start()
    try:
        with redis_at(server.url) as client:
            causes = dict(_causes(client, while_alive=starting))

            assert "now: it was started a moment ago and is loading its data" in causes[BusyLoadingError]
            assert client.llen("list") == 1_000_000
    finally:
        starting.join()
        server.stop()


def _causes(client: Redis, *, while_alive: threading.Thread) -> Iterator[tuple[type[BaseException], str]]:
    """Why writing was impossible, and in which words."""
    while while_alive.is_alive():
        try:
            write(client)
        except RedisUnavailable as error:
            yield type(error.__cause__), str(error)


def test_a_process_that_uses_all_its_connections_is_told_so(server: EmbeddedServer) -> None:
    with redis_at(server.url, CONNECTION_POOL_KWARGS={"max_connections": 1}) as client:
        in_use = client.connection_pool.get_connection()
        with pytest.raises(RedisRefused, match="max_connections"):
            TaskQueue().push(ECHO)
        client.connection_pool.release(in_use)

        assert TaskQueue().push(ECHO)


def test_a_missing_node_raises_unavailable(tmp_path: Path) -> None:
    with redis_at(f"unix://{tmp_path}/redis.sock"), pytest.raises(RedisUnavailable, match="does not answer"):
        TaskQueue().push(ECHO)
    with redis_at("redis://127.0.0.1:1"), pytest.raises(RedisUnavailable, match="does not answer"):
        TaskQueue().stats("default")


def test_a_server_that_does_not_answer_in_time_is_unavailable(server: EmbeddedServer) -> None:
    with LossyProxy(server) as proxy, redis_at(proxy.url, SOCKET_TIMEOUT=0.2):
        proxy.lose_replies(to="SMEMBERS", silently=True)
        with pytest.raises(RedisUnavailable, match=r"does not answer: .*[Tt]imeout"):
            TaskQueue().names()


def test_a_wrong_password_is_unavailable(redis_cluster_server: ClusterServer) -> None:
    url = redis_cluster_server.url.replace("redis://:", "redis://:x")
    said = "does not accept the user name or password .*: .*(WRONGPASS|invalid username-password)"
    for options in ({}, CLUSTER):
        with pytest.raises(RedisRefused, match=said), redis_at(url, **options):
            TaskQueue().names()


@pytest.fixture
def cluster(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[ClusterServer]:
    """A cluster to make trouble with."""
    with ClusterServer(tmp_path, server=request.config.getoption("--redis-server")) as server:
        yield server


@pytest.mark.slow
@pytest.mark.parametrize("act", [awrite, run_script])
@pytest.mark.parametrize("knows_it", [False, True], ids=["found without", "lost since"])
def test_a_cluster_without_its_slots_is_unavailable(
    cluster: ClusterServer, act: Callable[[Redis], None], knows_it: bool
) -> None:
    with redis_at("redis://127.0.0.1:1"), Redis.from_url(cluster.url) as node:
        if knows_it:
            with redis_at(cluster.url, **CLUSTER) as client:
                act(client)
        for slots in (range(8_000, 9_000), {*range(16_384)} - {*range(8_000, 9_000)}):
            node.execute_command("CLUSTER DELSLOTS", *slots)
            with pytest.raises(RedisUnavailable), redis_at(cluster.url, **CLUSTER) as client:
                act(client)


async def ask() -> None:
    with redis_errors():
        await get_async_client().get("a")


def test_a_server_that_is_no_cluster_is_a_mistake_and_not_an_outage(server: EmbeddedServer) -> None:
    with (
        LossyProxy(server) as proxy,
        override_settings(CACHES=_cluster_at(proxy.url)),
        pytest.raises(RedisClusterException, match="Cluster mode is not enabled"),
    ):
        asyncio.run(ask())


def _cluster_at(url: str) -> dict[str, Any]:
    return {"default": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": url, "OPTIONS": CLUSTER}}


async def _arun(act: Callable[[Any], Any]) -> None:
    await get_async_client().initialize()  # redis-py's transaction would do that in a thread's own loop
    await act(get_async_client())


SEVERAL_SLOTS: dict[str, Callable[[Any], Any]] = {
    "command": lambda client: client.mset({"a": 1, "b": 2}),
    "script": lambda client: client.eval("return 1", 2, "a", "b"),
    "transaction": lambda client: client.pipeline(transaction=True).set("a", 1).set("b", 1).execute(),
}


@pytest.mark.parametrize("act", SEVERAL_SLOTS.values(), ids=SEVERAL_SLOTS)
def test_keys_of_several_slots_are_a_mistake_and_not_an_outage(
    redis_cluster: Redis, act: Callable[[Any], Any]
) -> None:
    with pytest.raises(RedisClusterException, match="slot"), redis_errors():
        act(redis_cluster)
    with pytest.raises((RedisClusterException, ClusterCrossSlotError), match="slot"), redis_errors():
        asyncio.run(_arun(act))


def test_other_errors_are_not_an_outage(server: EmbeddedServer) -> None:
    with redis_at(server.url) as client:
        client.set("a", "b")
        with pytest.raises(ResponseError, match="WRONGTYPE"), redis_errors():
            client.lpush("a", "b")
        with pytest.raises(ZeroDivisionError), redis_errors():
            1 / 0  # noqa: B018
