"""
A private Redis server for the tests of any project that uses this app.

    pytest_plugins = ["components.testing"]  # with pytest, in the topmost conftest.py
    TEST_RUNNER = "components.testing.runner.RedisRunner"  # with manage.py test, in the settings

In a test with pytest's fixture `redis`, and in each test of that runner, the project's CACHES alias points to an
empty server of this test process alone. No other server is touched, and no database is needed. `redis_at` does the
same in a with block, for a server that the test starts and kills itself.
"""

from __future__ import annotations

import re
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast
from warnings import warn

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.cache import caches
from django.test.signals import setting_changed
from django.utils.asyncio import async_unsafe
from redis import Redis

from components.conf import conf
from components.embedded import EmbeddedServer
from components.locations import Place, is_redis, places, servers, with_database

if TYPE_CHECKING:
    from components.services.queues import TaskInfo
    from components.services.queues.backend import RedisBackend

#: What pytest finds here: the fixtures. Nothing else of this package needs pytest.
pytest_plugins = ["components.testing.fixtures"]

#: Options that tell how to reach the alias' own server; the test server gets all others.
_ITS_OWN = {
    "CLIENT_CLASS",
    "CONNECTION_FACTORY",
    "CONNECTION_POOL_CLASS",
    "CONNECTION_POOL_KWARGS",
    "PASSWORD",
    "SENTINELS",
    "SENTINEL_KWARGS",
    "USERNAME",
}
_SLOTS = 16_384
_POLL = 0.01  # seconds; a new cluster node needs two seconds before it serves


class ClusterServer(EmbeddedServer):
    """
    A server in cluster mode that owns all slots: a command with keys of different slots is an error.

    Cluster mode needs TCP, so it listens on loopback, with its own password.
    """

    def __init__(self, folder: Path, *, server: Path | None = None) -> None:
        self._port = _free_port()
        self._password = secrets.token_hex()
        options = {
            "port": str(self._port),
            "bind": "127.0.0.1",
            "requirepass": self._password,
            "cluster-enabled": "yes",
            "cluster-announce-ip": "127.0.0.1",
        }
        super().__init__(folder, server=server, appendonly=False, options=options)

    @property
    def url(self) -> str:
        return f"redis://:{self._password}@127.0.0.1:{self._port}"

    def start(self) -> Self:
        super().start()
        with Redis.from_url(self.url) as node:
            if node.cluster("INFO")["cluster_slots_assigned"] == "0":
                node.execute_command("CLUSTER ADDSLOTS", *range(_SLOTS))
            while node.cluster("INFO")["cluster_state"] != "ok":
                time.sleep(_POLL)
        return self


@contextmanager
def redis_at(url: str, **options: Any) -> Iterator[Redis]:
    """
    Point the project's CACHES alias to *url*, with *options* among its OPTIONS, and yield the client.

    Other aliases of the same server point there too, each to its own database, so that no test touches the server
    that the settings name.
    """
    from components.kit.client import get_client  # needs settings, which pytest-django configures later
    from components.kit.test_guard import private

    # Change the dict itself: override_settings would be undone in the wrong order if a test changes other settings
    # inside this block.
    named, alias = settings.CACHES, conf().cache
    before = dict(named)
    named.update(_moved(named, alias, url, options))
    named[alias] = _at(before[alias], url, options)
    _tell_django(enter=True)
    try:
        with private(url), _own_pool(alias, url) if options else nullcontext():
            try:
                yield get_client()
            finally:
                forget()
    finally:
        named.update(before)
        _tell_django(enter=False)


def forget() -> None:
    """Drop the counts and tables of this process: those of one server must not reach the next."""
    from components.services import counters, geo

    counters.forget()
    geo.forget()


def _at(cache: dict[str, Any], url: str, options: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in cache.get("OPTIONS", {}).items() if name not in _ITS_OWN}
    there = {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": url, "OPTIONS": {**kept, **options}}
    return {**cache, **there}


def _moved(caches: dict[str, Any], alias: str, url: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return the other caches of that server, moved to *url*; caches that shared a database still do."""
    here, moved = places(caches[alias]), dict[str, Any]()
    numbers: dict[Place, int] = dict.fromkeys(here, 0)
    is_cluster = "cluster" in str(options.get("CLIENT_CLASS", "")).lower()
    for name, cache in caches.items():
        if name == alias or not is_redis(cache) or not servers(cache) & servers(caches[alias]):
            continue
        number = numbers.setdefault(min(places(cache)), max(numbers.values()) + 1)
        there = url if is_cluster or number == 0 else with_database(url, number)
        kind = {"CLIENT_CLASS": options["CLIENT_CLASS"]} if is_cluster else {}
        moved[name] = {**_at(cache, there, kind), "BACKEND": cache["BACKEND"]}
    return moved


@contextmanager
def _own_pool(alias: str, url: str) -> Iterator[None]:
    """
    Let clients of *url* have their own options in this block: django-redis keeps one pool for each URL, with the
    options of the first client, and a port of an earlier server may be given to another.
    """
    pools = cast(Any, caches[alias]).client.connection_factory._pools
    pools.pop(url, None)
    try:
        yield
    finally:
        if pool := pools.pop(url, None):
            pool.disconnect(inuse_connections=False)  # else they would stay open until they are collected


def _tell_django(*, enter: bool) -> None:
    """Let django.core.cache.caches forget its connections, as after override_settings."""
    setting_changed.send(sender=None, setting="CACHES", value=settings.CACHES, enter=enter)


@contextmanager
def empty(server: EmbeddedServer) -> Iterator[Redis]:
    """Empty *server*, end the waits of earlier clients, and do what redis_at does."""
    flush(server)
    options = {"CLIENT_CLASS": "components.cache.ClusterClient"} if isinstance(server, ClusterServer) else {}
    with redis_at(server.url, **options) as client:
        yield client


def flush(server: EmbeddedServer) -> None:
    """Empty *server*, and end the waits of earlier clients."""
    # Without a driver name: redis-py would look up its own version in a file each time.
    with Redis.from_url(server.url, driver_info=None) as client:
        for other in client.client_list():
            if "b" in other["flags"]:  # such as a worker of an earlier test, in its last blocking command
                client.client_unblock(int(other["id"]))
        client.flushall()


@async_unsafe("Tasks cannot be run in an event loop: write `await arun_tasks()`.")
def run_tasks(alias: str = "default", *, limit: int | None = None) -> list[TaskInfo]:
    """
    Run the ready tasks of TASKS[*alias*] in this thread, including those that they enqueue, until none is ready or
    *limit* have run. Return how each of them ended, in order.

    All queues are served, in the order of their names, within the test's own transaction. A task that fails raises
    nothing here: its TaskInfo has the errors, and the state "dead" unless it will be retried. KeyboardInterrupt is
    raised. Calls that wait for the commit of a nested transaction, which a TestCase never does, are warned of.
    """
    from components.kit.compat import task_backends
    from components.services.queues.commits import waiting_calls
    from components.services.queues.worker.inline import run_ready

    ended = run_ready(cast("RedisBackend", task_backends[alias]), limit)
    if waiting := [f"{calls.path} ({database})" for database, calls in waiting_calls()]:
        warn(
            f"These calls wait for a commit and were not run: {', '.join(waiting)}. Wrap the code that makes them in "
            "captureOnCommitCallbacks(execute=True).",
            stacklevel=2,
        )
    return ended


async def arun_tasks(alias: str = "default", *, limit: int | None = None) -> list[TaskInfo]:
    """Do what run_tasks() does, from an asynchronous test."""
    return await sync_to_async(run_tasks)(alias, limit=limit)


def let_pass(seconds: float, alias: str = "default") -> None:
    """
    Let delayed tasks of TASKS[*alias*], such as retries, be due as if *seconds* had passed, tasks expire, leases end,
    and rate limits have room.
    """
    from components.kit.client import get_client
    from components.services.queues.keys import BackendKeys, QueueKeys
    from components.services.queues.queue import TaskQueue
    from components.services.rates.keys import RateKeys

    client = get_client()
    queues = [QueueKeys(alias, name) for name in TaskQueue(alias).all_names()]
    units = {keys.delayed: 1e6 for keys in queues} | {keys.running: 1e3 for keys in queues}
    units |= dict.fromkeys(client.scan_iter(RateKeys.instants()), 1e6)
    for key, unit in units.items():
        for member in cast("list[bytes]", client.zrange(key, 0, -1)):
            client.zincrby(key, -seconds * unit, member)

    def earlier(found: re.Match[bytes]) -> bytes:
        return found[1] + b"%d" % max(0, int(found[2]) - round(seconds * 1e6))

    tasks = BackendKeys(alias).tasks
    for task_id, record in cast(
        "dict[bytes, bytes]", client.hgetall(tasks)
    ).items():  # when it was enqueued and is due, and an instant at which it expires
        for instant in (
            rb"^(\d+ )(\d+)",
            rb"^(\d+ \d+ )(\d+)",
            rb'^([^\n]*\n{"task":"[^"]*","expires":")(\d+)',
        ):
            record = re.sub(instant, earlier, record)
        client.hset(tasks, task_id, record)


def _free_port() -> int:
    """Return a free port of loopback, below the ephemeral ones, whose cluster bus, 10000 above, is free as well."""
    while True:
        port = 10_000 + secrets.randbelow(12_000)
        with suppress(OSError):
            for each in (port, port + 10_000):
                socket.create_server(("127.0.0.1", each)).close()
            return port
