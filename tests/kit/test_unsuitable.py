"""
What cannot work is said in a sentence, and not in a traceback: a URL of something else, a database that is not there,
decoded responses, a server that is too old. Commands, workers, pages and both clients say it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
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

#: What is wrong, and what is said about it.
WRONG = {
    "scheme": r"LOCATION is not the URL of a Redis server: it begins with http://, and must begin with redis://",
    "no scheme": r"LOCATION is not the URL of a Redis server: it has no scheme, and must begin with redis://",
    "host": r"LOCATION is not the URL of a Redis server: its host cannot be read",
    "port": r"LOCATION is not the URL of a Redis server: Port could not be cast",
    "large number": r"names a database that the server does not have: DB index is out of range",
    "negative number": r"names the database '-1'; it must be a number",
    "word": r"names the database 'queues'; it must be a number, such as 0",
    "decoded": r"decode_responses is set, and this app reads bytes",
    "Redis 5": r"does not know or does not allow a command that this app needs: .* Install Redis 6\.2 or newer",
    "Redis 5 with a password": r"does not know or does not allow a command that this app needs: .*Redis 6\.2",
    "Redis 6.0": r"(is 6\.0\.16, and this app needs 6\.2 or newer|does not know or does not allow .*Redis 6\.2)",
}


@pytest.fixture(params=WRONG)
def wrong(request: pytest.FixtureRequest, redis_server: EmbeddedServer) -> Iterator[tuple[str, str]]:
    """A URL with which nothing can work, and what is said about it."""
    with ExitStack() as stack:
        urls: dict[str, Callable[[], str]] = {
            "scheme": lambda: "http://joe:secret@localhost:6379/0",
            "no scheme": lambda: "localhost:6379",
            "host": lambda: "redis://joe:secret@[::1:6379/0",
            "port": lambda: "redis://localhost:redis",
            "large number": lambda: f"{redis_server.url}?db=99",
            "negative number": lambda: f"{redis_server.url}?db=-1",
            "word": lambda: f"{redis_server.url}?db=queues",
            "decoded": lambda: f"{redis_server.url}?decode_responses=true",
            "Redis 5": lambda: stack.enter_context(OldRedis("5.0.14")).url,
            "Redis 5 with a password": lambda: stack.enter_context(OldRedis("5.0.14")).url.replace(
                "//", "//:secret@"
            ),
            "Redis 6.0": lambda: stack.enter_context(OldRedis("6.0.16")).url,
        }
        yield urls[request.param](), WRONG[request.param]


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


@pytest.mark.slow
@pytest.mark.parametrize(
    "act",
    [
        use,
        ause,
        inspect_server,
        lambda: TaskQueue().push(ECHO),
        lambda: asyncio.run(Counter("sales").aupdate()),
    ],
    ids=["command", "awaited", "start", "script", "together"],
)
def test_both_clients_say_what_is_wrong(wrong: tuple[str, str], act: Callable[[], object]) -> None:
    url, said = wrong
    for _ in range(2):  # not only the first time
        with at(url), pytest.raises(RedisUnsuitable, match=said) as told:
            act()
        assert "secret" not in str(told.value)
        assert isinstance(told.value, ImproperlyConfigured)


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


def test_pages_say_that_redis_cannot_be_used(wrong: tuple[str, str], admin_client: Browser) -> None:
    url, _said = wrong
    with at(url):
        assert admin_client.get("/admin/components/queue/").status_code == 503


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


_FORBIDDEN = (
    r"The user that CACHES\['default'\] names may not use a command, key or channel that this app needs: "
)


@pytest.mark.parametrize(
    "act",
    [use, ause, lambda: TaskQueue().push(ECHO), lambda: asyncio.run(Counter("sales").aupdate())],
    ids=["command", "awaited", "script", "together"],
)
def test_both_clients_say_that_a_user_has_not_the_permissions(guest: str, act: Callable[[], object]) -> None:
    with at(guest), pytest.raises(RedisUnsuitable, match=_FORBIDDEN):
        act()


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


@pytest.mark.parametrize("act", [use, ause, inspect_server], ids=["command", "awaited", "start"])
def test_both_clients_say_that_a_server_is_no_redis(foreign: str, act: Callable[[], object]) -> None:
    with at(foreign), pytest.raises(RedisUnsuitable, match="does not speak the Redis protocol"):
        act()


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
