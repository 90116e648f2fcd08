"""Script: a Lua file, callable; sent by its digest, once more after a lost reply, and no more."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha1

import pytest
from redis import Redis
from redis.exceptions import ResponseError

from components import keys
from components.embedded import EmbeddedServer
from components.exceptions import RedisUnavailable
from components.scripts import Script
from components.testing import redis_at
from tests.support.monitoring import sent_to
from tests.support.proxy import LossyProxy

PAUSED = keys.queue_paused("default")


class Source(Script):
    """A script that is not a file."""

    def __init__(self, source: str) -> None:
        super().__init__("none")
        self.source = source


COUNT = 'return redis.call("INCR", KEYS[1])'


@pytest.fixture
def proxy(redis_server: EmbeddedServer, redis: Redis) -> Iterator[LossyProxy]:
    with LossyProxy(redis_server) as proxy:
        yield proxy


def test_a_script_is_its_file() -> None:
    script = Script("queues/stats")

    assert script.source.startswith("-- Count the tasks of queues.")
    assert script.sha == sha1(script.source.encode()).hexdigest()


def test_a_name_without_a_file_is_an_error() -> None:
    with pytest.raises(FileNotFoundError, match=r"queues/nothing\.lua"):
        Script("queues/nothing").source  # noqa: B018


def test_keys_and_arguments_arrive(redis: Redis) -> None:
    script = Source("return {KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3]}")

    assert script(redis, keys=["a", "b"], args=[1, "ü", b"\xff"]) == [b"a", b"b", b"1", "ü".encode(), b"\xff"]
    assert script(redis, keys=["a"]) == [b"a"]


def test_the_source_is_sent_once_then_the_digest(redis: Redis, redis_server: EmbeddedServer) -> None:
    redis.script_flush()
    script = Source(COUNT)

    with sent_to(redis_server) as commands:
        answers = [script(redis, keys=["a"]) for _ in range(3)]

    assert answers == [1, 2, 3]
    assert commands == ["EVALSHA", "EVAL", "EVALSHA", "EVALSHA"]


def test_a_server_that_forgot_the_script_gets_it_again(redis: Redis) -> None:
    script = Source(COUNT)
    script(redis, keys=["a"])
    redis.script_flush()

    assert script(redis, keys=["a"]) == 2


@pytest.mark.parametrize("silently", [False, True], ids=["connection lost", "no answer"])
def test_a_lost_reply_is_asked_for_once_more(proxy: LossyProxy, redis: Redis, silently: bool) -> None:
    script = Source(COUNT)
    script(redis, keys=["a"])
    with redis_at(proxy.url, SOCKET_TIMEOUT=0.3) as client:
        proxy.lose_replies(to="EVALSHA", silently=silently)
        answer = script(client, keys=["a"])

    assert answer == 3
    assert proxy.lost == 1


def test_two_lost_replies_are_an_outage(proxy: LossyProxy, redis: Redis) -> None:
    script = Source(COUNT)
    script(redis, keys=["a"])
    with redis_at(proxy.url) as client:
        proxy.lose_replies(to="EVALSHA", times=5)
        with pytest.raises(RedisUnavailable, match=r"^Redis does not answer: "):
            script(client, keys=["a"])

    assert proxy.lost == 2
    assert redis.get("a") == b"3"


def test_an_error_of_the_script_is_not_repeated_and_not_an_outage(redis: Redis) -> None:
    script = Source('redis.call("INCR", KEYS[1]) return redis.call("LPUSH", KEYS[1], "x")')

    with pytest.raises(ResponseError, match="WRONGTYPE"):
        script(redis, keys=["a"])

    assert redis.get("a") == b"1"
