from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import ConnectionError, TimeoutError

from components.embedded import EmbeddedServer
from components.testing import redis_at
from tests.support.proxy import LossyProxy


@pytest.fixture
def proxy(redis_server: EmbeddedServer, redis: Redis) -> Iterator[LossyProxy]:
    with LossyProxy(redis_server) as proxy:
        yield proxy


def test_passes_on_what_it_is_not_told_to_lose(proxy: LossyProxy, redis: Redis) -> None:
    with redis_at(proxy.url) as client:
        client.set("big", b"x" * 1_000_000)

        assert client.strlen("big") == 1_000_000
        assert redis.strlen("big") == 1_000_000
        assert proxy.lost == 0


def test_a_lost_reply_is_a_lost_connection_after_the_fact(proxy: LossyProxy, redis: Redis) -> None:
    proxy.lose_replies(to="INCR")
    with redis_at(proxy.url) as client, pytest.raises(ConnectionError):
        client.incr("hits")

    assert redis.get("hits") == b"1"
    assert proxy.lost == 1


def test_a_reply_lost_silently_is_a_timeout_after_the_fact(proxy: LossyProxy, redis: Redis) -> None:
    proxy.lose_replies(to="INCR", silently=True)
    with redis_at(proxy.url, SOCKET_TIMEOUT=0.2) as client, pytest.raises(TimeoutError):
        client.incr("hits")

    assert redis.get("hits") == b"1"
    assert proxy.lost == 1


def test_as_many_replies_are_lost_as_was_said(proxy: LossyProxy, redis: Redis) -> None:
    proxy.lose_replies(to="INCR", times=2)
    with redis_at(proxy.url) as client:
        for _ in range(2):
            with pytest.raises(ConnectionError):
                client.incr("hits")

        assert client.incr("hits") == 3
    assert proxy.lost == 2


def test_a_server_that_dies_closes_the_connection(tmp_path: Path) -> None:
    with EmbeddedServer(tmp_path) as server, LossyProxy(server) as proxy, redis_at(proxy.url) as client:
        client.set("a", 1)
        server.kill()
        with pytest.raises(ConnectionError):
            client.get("a")
        server.start()

        assert client.get("a") == b"1"
