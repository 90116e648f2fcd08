"""A lock that must have reached replicas, on servers that have some or none."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex

import pytest
from redis import Redis
from redis.asyncio import RedisCluster as AsyncRedisCluster
from redis.exceptions import ResponseError

from components.embedded import EmbeddedServer
from components.exceptions import NotReplicated
from components.kit.client import get_client
from components.services.locks import AsyncLock, alock, lock, replicas
from components.services.locks.named import key_of
from components.testing import _free_port, redis_at
from tests.support.waiting import eventually


class Followed(EmbeddedServer):
    """A server that others can follow: on loopback, with a password of its own."""

    def __init__(self, folder: Path, server: Path | None) -> None:
        self.port, self.password = str(_free_port()), token_hex()
        options = {"port": self.port, "bind": "127.0.0.1", "requirepass": self.password}
        super().__init__(
            folder, server=server, appendonly=False, options={**options, "repl-diskless-sync-delay": "0"}
        )

    @property
    def url(self) -> str:
        return f"redis://:{self.password}@127.0.0.1:{self.port}"


@pytest.fixture
def replica(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Redis]:
    """The replica of the project's server."""
    program = request.config.getoption("--redis-server")
    with (
        Followed(tmp_path / "followed", program) as followed,
        EmbeddedServer(tmp_path / "follower", server=program, appendonly=False) as follower,
        redis_at(followed.url),
        Redis.from_url(follower.url) as replica,
    ):
        replica.config_set("masterauth", followed.password)
        replica.replicaof("127.0.0.1", int(followed.port))
        assert eventually(lambda: replica.info("replication")["master_link_status"] == "up")
        yield replica


def test_it_is_held_if_enough_replicas_have_it(replica: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    with lock("a", min_replicas=1) as held:  # the server does not know the script yet
        assert replica.get(held.name) == held.local.token
        assert held.fence
        assert not lock("a", min_replicas=1).acquire(blocking=False)

    async def main() -> None:
        async with alock("a", min_replicas=1) as held:
            assert replica.get(held.name) == held.local.token
        with pytest.raises(NotReplicated):
            await alock("a", min_replicas=2).acquire()

    monkeypatch.setattr(replicas, "_PATIENCE", 1)
    asyncio.run(main())
    with pytest.raises(NotReplicated):
        lock("a", min_replicas=2).acquire()
    assert not lock("a").locked()
    get_client().rpush(key_of("list"), 1)
    with pytest.raises(ResponseError):
        lock("list", min_replicas=1).acquire()


def test_an_asynchronous_cluster_cannot_do_it() -> None:
    with pytest.raises(ValueError, match="min_replicas"):
        AsyncLock(AsyncRedisCluster("localhost"), "a", min_replicas=1)
