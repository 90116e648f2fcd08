"""A lock that must have reached replicas, on servers that have some or none."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex

import pytest
from redis import Redis
from redis.asyncio import Redis as AsyncRedis

from components.embedded import EmbeddedServer
from components.exceptions import NotReplicated
from components.services.locks import AsyncLock, Lock, alock, lock
from components.services.locks import replicas as module
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
def servers(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Redis, Redis]]:
    """A server and its replica."""
    program = request.config.getoption("--redis-server")
    with (
        Followed(tmp_path / "followed", program) as followed,
        EmbeddedServer(tmp_path / "follower", server=program, appendonly=False) as follower,
    ):
        yield from _clients(followed, follower)


def _clients(followed: Followed, follower: EmbeddedServer) -> Iterator[tuple[Redis, Redis]]:
    with redis_at(followed.url) as client, Redis.from_url(follower.url) as replica:
        replica.config_set("masterauth", followed.password)
        replica.replicaof("127.0.0.1", int(followed.port))
        assert eventually(lambda: replica.info("replication")["master_link_status"] == "up")
        yield client, replica


def test_it_is_held_if_enough_replicas_have_it(servers: tuple[Redis, Redis]) -> None:
    _client, replica = servers

    with lock("a", min_replicas=1) as held:
        assert replica.get(held.name) == held.local.token
        assert held.fence


@pytest.mark.slow
def test_it_is_given_back_if_too_few_have_it(servers: tuple[Redis, Redis]) -> None:
    with pytest.raises(NotReplicated, match="reached 1 of 2 replicas"):
        lock("a", min_replicas=2).acquire()

    assert not lock("a").locked()
    assert lock("a", min_replicas=1).acquire(blocking=False)
    assert not lock("a", min_replicas=1).acquire(blocking=False)


def test_coroutines_have_the_same(servers: tuple[Redis, Redis]) -> None:
    _client, replica = servers

    async def main() -> None:
        async with alock("a", min_replicas=1) as held:
            assert replica.get(held.name) == held.local.token
        with pytest.raises(NotReplicated):
            await alock("a", min_replicas=2).acquire()

    asyncio.run(main())
    assert not lock("a").locked()


def test_a_server_that_forgot_the_script_is_told_it_anew(servers: tuple[Redis, Redis]) -> None:
    client, _replica = servers
    client.script_flush()

    assert lock("a", min_replicas=1).acquire()


def test_on_a_cluster_the_node_of_the_key_is_asked(
    redis_cluster: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PATIENCE", 1)

    with pytest.raises(NotReplicated, match="reached 0 of 1"):
        Lock(redis_cluster, "a", min_replicas=1).acquire()

    assert not redis_cluster.exists("a")


def test_an_asynchronous_cluster_cannot_do_it(redis_cluster: Redis) -> None:
    async def main() -> None:
        with pytest.raises(ValueError, match="not for this one"):
            alock("a", min_replicas=1)
        client = AsyncRedis()
        assert AsyncLock(client, "a", min_replicas=1).min_replicas == 1
        await client.aclose()

    asyncio.run(main())
