"""Script: a Lua file, callable and awaitable; sent by its digest, once more after a lost reply, and no more."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from hashlib import sha1
from typing import Any, Protocol

import pytest
from redis import Redis
from redis.exceptions import ResponseError

from components.embedded import EmbeddedServer
from components.exceptions import RedisUnavailable
from components.kit.client import get_async_client, get_client
from components.kit.scripts import Script
from components.testing import empty, redis_at
from tests.support.monitoring import sent_to
from tests.support.proxy import LossyProxy


class Source(Script):
    """A script that is not a file."""

    def __init__(self, source: str) -> None:
        super().__init__("none")
        self.source = source


COUNT = 'return redis.call("INCR", KEYS[1])'


class Call(Protocol):
    """Run a script with the project's client of one kind."""

    def __call__(self, script: Script, *, keys: list[str], args: Sequence[Any] = ()) -> Any: ...


def called(script: Script, *, keys: list[str], args: Sequence[Any] = ()) -> Any:
    return script(get_client(), keys=keys, args=args)


def awaited(script: Script, *, keys: list[str], args: Sequence[Any] = ()) -> Any:
    async def main() -> Any:
        return await script.acall(get_async_client(), keys=keys, args=args)

    return asyncio.run(main())


@pytest.fixture(params=[called, awaited])
def call(request: pytest.FixtureRequest) -> Call:
    found: Call = request.param
    return found


@pytest.fixture
def server(redis_mode: str, request: pytest.FixtureRequest) -> EmbeddedServer:
    fixture = "redis_server" if redis_mode == "plain" else "redis_cluster_server"
    server: EmbeddedServer = request.getfixturevalue(fixture)
    return server


@pytest.fixture
def any_redis(server: EmbeddedServer) -> Iterator[Redis]:
    """The project's Redis, empty: a plain server and one in cluster mode, in turn."""
    with empty(server) as client:
        yield client


@pytest.fixture
def proxy(redis_server: EmbeddedServer, redis: Redis) -> Iterator[LossyProxy]:
    with LossyProxy(redis_server) as proxy:
        yield proxy


def test_a_script_is_its_file() -> None:
    script = Script("queues/stats")

    assert "-- Count the tasks of queues." in script.source
    assert script.sha == sha1(script.source.encode()).hexdigest()


def test_a_name_without_a_file_is_an_error() -> None:
    with pytest.raises(FileNotFoundError, match=r"queues/lua/nothing\.lua"):
        Script("queues/nothing").source  # noqa: B018


def test_the_source_is_sent_once_then_the_digest(
    any_redis: Redis, server: EmbeddedServer, call: Call
) -> None:
    any_redis.script_flush()
    script = Source(COUNT)

    with sent_to(server) as commands:
        answers = [call(script, keys=["a"]) for _ in range(3)]

    assert answers == [1, 2, 3]
    sent = [command for command in commands if command.startswith("EVAL")]  # a new loop says hello as well
    assert sent == ["EVALSHA", "EVAL", "EVALSHA", "EVALSHA"]


@pytest.mark.parametrize("silently", [False, True], ids=["connection lost", "no answer"])
def test_a_lost_reply_is_asked_for_once_more(
    proxy: LossyProxy, redis: Redis, silently: bool, call: Call
) -> None:
    script = Source(COUNT)
    script(redis, keys=["a"])
    with redis_at(proxy.url, SOCKET_TIMEOUT=0.3):
        proxy.lose_replies(to="EVALSHA", silently=silently)
        answer = call(script, keys=["a"])

    assert answer == 3
    assert proxy.lost == 1


def test_two_lost_replies_are_an_outage(proxy: LossyProxy, redis: Redis, call: Call) -> None:
    script = Source(COUNT)
    script(redis, keys=["a"])
    with redis_at(proxy.url):
        proxy.lose_replies(to="EVALSHA", times=5)
        with pytest.raises(RedisUnavailable, match=r"^Redis does not answer: "):
            call(script, keys=["a"])

    assert proxy.lost == 2
    assert redis.get("a") == b"3"


def test_an_error_of_the_script_is_not_repeated_and_not_an_outage(any_redis: Redis, call: Call) -> None:
    script = Source('redis.call("INCR", KEYS[1]) return redis.call("LPUSH", KEYS[1], "x")')

    with pytest.raises(ResponseError, match="WRONGTYPE"):
        call(script, keys=["a"])

    assert any_redis.get("a") == b"1"


def test_an_asynchronous_client_must_be_awaited(any_redis: Redis) -> None:
    async def main() -> None:
        client: Any = get_async_client()
        await client.ping()
        with pytest.raises(TypeError, match="is asynchronous: await acall"):
            Source(COUNT)(client, keys=["a"])
        assert await client.get("b") is None

    asyncio.run(main())
