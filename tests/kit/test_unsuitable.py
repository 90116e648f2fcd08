"""
What cannot work is said in a sentence, and not in a traceback: a URL of something else, a database that is not there,
decoded responses, a server that is too old. Commands, workers, pages and both clients say it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Thread
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import Client as Browser
from django.test.utils import override_settings
from redis import Redis

from components.embedded import EmbeddedServer
from components.exceptions import RedisUnsuitable
from components.kit.client import get_async_client, get_client
from components.kit.errors import redis_errors
from components.locations import mistakes
from components.servers import inspect_server
from components.services.counters import Counter
from components.services.queues import TaskQueue
from components.testing import ClusterServer
from tests.commands.processes import Command
from tests.support.old_redis import OldRedis
from tests.support.queues import ECHO

#: What is wrong with a URL with which nothing can work, the URL, and some words of what is said about it.
WRONG = {
    "scheme": ("http://joe:secret@localhost:6379/0", r"begins with http://, and must begin with redis://"),
    "no scheme": ("localhost:6379", r"it has no scheme, and must begin with redis://"),
    "host": ("redis://joe:secret@[::1:6379/0", r"its host cannot be read"),
    "port": ("redis://localhost:redis", r"LOCATION is not the URL of a Redis server"),
    "large number": ("{redis}?db=99", r"names a database that the server does not have"),
    "negative number": ("{redis}?db=-1", r"names the database '-1'; it must be a number"),
    "word": ("{redis}?db=queues", r"names the database 'queues'; it must be a number"),
    "decoded": ("{redis}?decode_responses=true", r"decode_responses is set"),
    "Redis 5": ("{old}5.0.14", r"Install Redis 6\.2 or newer"),
    "Redis 5 with a password": ("{old}5.0.14:secret@", r"Install Redis 6\.2 or newer"),
    "Redis 6.0": ("{old}6.0.16", r"Redis 6\.2|needs 6\.2 or newer"),
}


@pytest.fixture(params=WRONG)
def wrong(request: pytest.FixtureRequest, redis_server: EmbeddedServer) -> Iterator[tuple[str, str]]:
    """A URL with which nothing can work, and what is said about it."""
    url, said = WRONG[request.param]
    if not url.startswith("{old}"):
        yield url.replace("{redis}", redis_server.url), said
        return
    version, _, password = url.removeprefix("{old}").partition(":")
    with OldRedis(version) as server:
        yield server.url.replace("//", f"//:{password}") if password else server.url, said


def at(url: str, **options: Any) -> Any:
    cache = {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": url, "OPTIONS": options}
    return override_settings(CACHES={"default": cache}, COMPONENTS={})


def use() -> None:
    with redis_errors():
        get_client().hset("a", "b", "c")


def ause() -> None:
    async def main() -> None:
        with redis_errors():
            await get_async_client().hset("a", "b", "c")

    asyncio.run(main())


ACTS: dict[str, Callable[[], object]] = {
    "command": use,
    "awaited": ause,
    "start": inspect_server,
    "script": lambda: TaskQueue().push(ECHO),
    "together": lambda: asyncio.run(Counter("sales").aupdate()),
}


def test_both_clients_and_pages_say_what_is_wrong(wrong: tuple[str, str], admin_client: Browser) -> None:
    url, said = wrong
    for act in [*ACTS.values()] * 2:  # not only the first time
        with at(url), pytest.raises(RedisUnsuitable, match=said) as told:
            act()
        assert "secret" not in str(told.value)
        assert isinstance(told.value, ImproperlyConfigured)
    with at(url):
        assert admin_client.get("/admin/components/queue/").status_code == 503


#: Runs each of its arguments as manage.py would, in a process of its own, and says how that has ended. Django starts
#: once for all of them, since that takes a second.
SEVERAL = """
import os, sys
import django
from django.core.management import execute_from_command_line
django.setup()
for command in sys.argv[1:]:
    if not os.fork():
        execute_from_command_line(["manage.py", *command.split()])
        sys.exit(0)
    _pid, status = os.wait()
    print("exit", os.waitstatus_to_exitcode(status), flush=True)
"""


@pytest.mark.slow
def test_commands_end_with_one_clear_sentence(wrong: tuple[str, str]) -> None:
    url, said = wrong
    commands = [
        f"{command} --skip-checks" for command in ("runworker --no-reload", "queues", "counters", "logreport")
    ]
    with Command(url, *commands, program=("-c", SEVERAL)) as command:
        assert command.exit_code() == 0

    lines = command.output.splitlines()
    assert len(lines) == 2 * len(commands)
    assert lines[1::2] == ["exit 2"] * len(commands)
    for line in lines[::2]:
        assert re.search(said, line)
        assert "secret" not in line
        assert "Traceback" not in line


# Users who may not do all that this app does


@pytest.fixture
def guest(redis_server: EmbeddedServer) -> Iterator[str]:
    """The URL with a user who may use all commands, and none of the keys of this app."""
    with Redis.from_url(redis_server.url) as client:
        client.acl_setuser("guest", enabled=True, nopass=True, commands=["+@all"], keys=["others:*"])
        try:
            yield f"{redis_server.url}?username=guest&password=secret"
        finally:
            client.acl_deluser("guest")


def test_both_clients_say_that_a_user_has_not_the_permissions(guest: str) -> None:
    for name in ("command", "awaited", "script", "together"):
        with at(guest), pytest.raises(RedisUnsuitable, match="may not use a command, key or channel"):
            ACTS[name]()


# What is no Redis


@pytest.fixture
def foreign() -> Iterator[str]:
    """The URL of a web server."""

    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(4_096)
            self.request.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever).start()
        yield f"redis://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_both_clients_say_that_a_server_is_no_redis(foreign: str) -> None:
    for name in ("command", "awaited", "start"):
        with at(foreign), pytest.raises(RedisUnsuitable, match="does not speak the Redis protocol"):
            ACTS[name]()


# Clusters


def test_a_cluster_has_no_second_database(redis_cluster_server: ClusterServer) -> None:
    cluster = {"CLIENT_CLASS": "components.cache.ClusterClient"}
    with (
        at(f"{redis_cluster_server.url}/2", **cluster),
        pytest.raises(RedisUnsuitable, match="names the database 2; a cluster has only 0"),
    ):
        use()
    with at(f"{redis_cluster_server.url}/2"), pytest.raises(RedisUnsuitable, match="a cluster has 0 only"):
        use()


# Settings


@pytest.mark.parametrize(
    "given",
    [
        {"LOCATION": "redis://localhost"},
        {"LOCATION": "rediss://joe:secret@shop.example:6380/3?protocol=2"},
        {"LOCATION": "unix:///run/redis.sock?db=1"},
        {
            "LOCATION": "redis://a,redis://b/0",
            "OPTIONS": {"CLIENT_CLASS": "components.cache.ClusterClient"},
        },
        {"LOCATION": "shop://anywhere", "OPTIONS": {"CONNECTION_FACTORY": "shop.redis.Factory"}},
        {"LOCATION": "redis://shop/0", "OPTIONS": {"CONNECTION_POOL_KWARGS": {"decode_responses": False}}},
    ],
)
def test_settings_that_can_work_are_left_alone(given: dict[str, Any]) -> None:
    assert list(mistakes(given)) == []


def test_settings_that_decode_are_refused_wherever_they_say_so(
    redis: Redis, redis_server: EmbeddedServer
) -> None:
    with (
        at(redis_server.url, CONNECTION_POOL_KWARGS={"decode_responses": True}),
        pytest.raises(RedisUnsuitable, match="decode_responses"),
    ):
        use()
