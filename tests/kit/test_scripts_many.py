"""Script.many: several calls in one round trip to each node, whatever of them is refused, lost or moved."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol

import pytest
from redis import Redis
from redis.exceptions import ResponseError

from components.embedded import EmbeddedServer
from components.exceptions import RedisUnavailable
from components.kit import scripts
from components.kit.client import get_async_client, get_client
from components.kit.keyspace import BUCKETS
from components.kit.scripts import Script
from components.services.chat.keys import index
from components.testing import redis_at
from tests.support.proxy import LossyProxy

#: In the slots of all buckets.
KEYS = [index(tag) for tag in BUCKETS]


@pytest.fixture(params=["plain", "cluster"])
def redis_mode(request: pytest.FixtureRequest) -> str:
    """The kit itself runs on both kinds of servers in each run."""
    return str(request.param)


class Source(Script):
    """A script that is not a file."""

    def __init__(self, source: str) -> None:
        super().__init__("none")
        self.source = source


SET = Source('redis.call("SET", KEYS[1], ARGV[1]) return ARGV[1]')


class Many(Protocol):
    def __call__(self, script: Script, calls: Sequence[tuple[list[str], list[Any]]]) -> list[Any]: ...


def called(script: Script, calls: Sequence[tuple[list[str], list[Any]]]) -> list[Any]:
    return script.many(get_client(), calls)


def awaited(script: Script, calls: Sequence[tuple[list[str], list[Any]]]) -> list[Any]:
    async def main() -> list[Any]:
        return await script.amany(get_async_client(), calls)

    return asyncio.run(main())


@pytest.fixture(params=[called, awaited])
def many(request: pytest.FixtureRequest) -> Many:
    found: Many = request.param
    return found


@pytest.fixture
def server(redis_mode: str, request: pytest.FixtureRequest) -> EmbeddedServer:
    fixture = "redis_server" if redis_mode == "plain" else "redis_cluster_server"
    server: EmbeddedServer = request.getfixturevalue(fixture)
    return server


def test_answered_calls_are_not_repeated_when_a_script_is_unknown_to_other_nodes(
    redis: Redis, many: Many, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another client may load the script while the server works through a pipeline."""
    count = Source('return redis.call("INCR", KEYS[1])')
    redis.script_flush()
    send = scripts._send_together

    async def interrupted(node: Any, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        monkeypatch.undo()
        before = await send(node, commands[:3])
        redis.script_load(count.source)
        return before + await send(node, commands[3:])

    monkeypatch.setattr(scripts, "_send_together", interrupted)

    assert many(count, [([key], []) for key in KEYS[:5]]) == [1] * 5


def test_a_server_that_does_not_answer_is_unavailable(
    redis_server: EmbeddedServer, redis: Redis, many: Many
) -> None:
    with LossyProxy(redis_server) as proxy, redis_at(proxy.url):
        proxy.lose_replies(to="EVAL", times=9)

        with pytest.raises(RedisUnavailable):
            many(SET, [([KEYS[0]], [1])])


def test_a_mistake_in_one_call_is_told(redis: Redis, many: Many) -> None:
    redis.rpush(KEYS[1], "a list")
    count = Source('return redis.call("INCR", KEYS[1])')

    with pytest.raises(ResponseError, match="WRONGTYPE"):
        many(count, [([KEYS[0]], []), ([KEYS[1]], [])])

    assert redis.get(KEYS[0]) == b"1"
