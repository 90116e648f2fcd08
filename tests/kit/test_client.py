"""The one door to Redis: which client it gives, that it repeats nothing, and what counts as unavailable."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.cache import caches
from django.core.exceptions import ImproperlyConfigured
from django.test.utils import override_settings
from redis import Redis, RedisCluster

from components.embedded import EmbeddedServer
from components.exceptions import RedisUnavailable
from components.kit.client import get_client, longest_block
from components.kit.errors import redis_errors
from components.services.queues import TaskQueue
from components.testing import ClusterServer, redis_at
from tests.support.proxy import LossyProxy
from tests.support.queues import push_many

CLUSTER = {"CLIENT_CLASS": "components.cache.ClusterClient"}


@pytest.fixture
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[EmbeddedServer]:
    """A server to make trouble with."""
    program = request.config.getoption("--redis-server")
    with EmbeddedServer(tmp_path / "redis", server=program, appendonly=False) as server:
        yield server


class AnnouncedServer(ClusterServer):
    """A cluster node that says it is to be reached elsewhere."""

    def announce(self, port: int) -> None:
        self._options["cluster-announce-port"] = str(port)


# Which client


def test_the_client_is_that_of_the_alias_that_is_named(redis: Redis) -> None:
    assert get_client().get("a") is None
    caches["default"].client.get_client().set("a", "b")

    assert get_client().get("a") == b"b"
    assert isinstance(get_client(), Redis)


def test_another_alias_can_be_named(redis_server: EmbeddedServer, server: EmbeddedServer) -> None:
    backend = "django_redis.cache.RedisCache"
    both = {
        "default": {"BACKEND": backend, "LOCATION": redis_server.url},
        "tasks": {"BACKEND": backend, "LOCATION": server.url},
    }
    with override_settings(CACHES=both, COMPONENTS={"CACHE": "tasks"}):
        get_client().set("a", "b")

    with Redis.from_url(server.url) as client:
        assert client.get("a") == b"b"


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


def test_without_a_timeout_the_one_of_redis_py_counts(redis: Redis, redis_cluster: Redis) -> None:
    assert longest_block(redis) == longest_block(redis_cluster) == 4


# Nothing is repeated


@pytest.fixture
def proxy(server: EmbeddedServer) -> Iterator[LossyProxy]:
    with LossyProxy(server) as proxy:
        yield proxy


@pytest.mark.parametrize("silently", [False, True], ids=["connection lost", "no answer"])
def test_a_write_whose_reply_was_lost_is_not_sent_again(
    server: EmbeddedServer, proxy: LossyProxy, silently: bool
) -> None:
    with redis_at(proxy.url, SOCKET_TIMEOUT=0.3):
        get_client().ping()
        proxy.lose_replies(to="INCR", silently=silently)
        with pytest.raises(RedisUnavailable), redis_errors():
            get_client().incr("hits")

    assert proxy.lost == 1
    with Redis.from_url(server.url) as client:
        assert client.get("hits") == b"1"


def test_a_pipeline_whose_reply_was_lost_is_not_sent_again(server: EmbeddedServer, proxy: LossyProxy) -> None:
    with redis_at(proxy.url):
        proxy.lose_replies(to="INCR")
        pipe = get_client().pipeline().incr("hits")
        with pytest.raises(RedisUnavailable), redis_errors():
            pipe.execute()

    with Redis.from_url(server.url) as client:
        assert client.get("hits") == b"1"


def test_a_client_goes_on_when_the_server_is_back(server: EmbeddedServer) -> None:
    with redis_at(server.url) as client:
        client.set("a", "b")
        server.kill()
        with pytest.raises(RedisUnavailable), redis_errors():
            client.get("a")
        server.start()

        assert client.get("a") is None


# A cluster


def test_a_cluster_client_is_one_for_the_whole_process(redis_cluster: Redis) -> None:
    found = []
    thread = threading.Thread(target=lambda: found.append(get_client()))
    thread.start()
    thread.join()

    assert isinstance(redis_cluster, RedisCluster)
    assert found == [redis_cluster]


@pytest.mark.slow
def test_a_cluster_client_repeats_no_write_either(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    server = AnnouncedServer(tmp_path, server=request.config.getoption("--redis-server"))
    with LossyProxy(server) as proxy:
        server.announce(int(proxy.url.rpartition(":")[2]))
        url = f"redis://:{server._password}@{proxy.url.removeprefix('redis://')}"
        with server, redis_at(url, **CLUSTER) as client:
            proxy.lose_replies(to="INCR")
            with pytest.raises(RedisUnavailable), redis_errors():
                client.incr("hits")

            assert proxy.lost == 1
            assert client.get("hits") == b"1"
            push_many(1)
            proxy.lose_replies(to="EVALSHA")
            push_many(1)
            assert proxy.lost == 2
            assert TaskQueue().stats("default").ready == 2
