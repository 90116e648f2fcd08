"""
Sentinels that hang: real ones on loopback, with a master and a replica, of which some are stopped with SIGSTOP.

The master's own timeout is short here. What is measured is what comes on top of it: redis-py's retries of Sentinels.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import RedisError

from components.embedded import EmbeddedServer, find_server
from components.exceptions import RedisUnavailable
from components.kit.client import get_async_client, get_client
from components.kit.errors import redis_errors
from components.testing import _free_port, redis_at
from tests.support.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.long]

ROOT = Path(__file__).resolve().parents[2]
SHOP = "redis://shop/0"
OURS = {
    "CLIENT_CLASS": "components.cache.SentinelClient",
    "CONNECTION_FACTORY": "components.cache.SentinelConnectionFactory",
}
#: As a project wrote them that knows only django-redis.
THEIRS = {
    "CLIENT_CLASS": "django_redis.client.SentinelClient",
    "CONNECTION_FACTORY": "django_redis.pool.SentinelConnectionFactory",
}
DOWN_AFTER = 1_000  # milliseconds until Sentinels take a master for dead
SOON = 20  # seconds: ten times a timeout of a Sentinel and one of the master; with retries it is a minute


@dataclass
class Site:
    """A master, a replica and three Sentinels."""

    servers: list[EmbeddedServer]
    sentinels: list[subprocess.Popen[bytes]]
    ports: list[int]

    def addresses(self) -> list[tuple[str, int]]:
        return [("127.0.0.1", port) for port in self.ports]

    def master(self) -> EmbeddedServer:
        """The server that the last Sentinel takes for the master."""
        with Redis(port=self.ports[-1]) as client:
            _host, port = client.sentinel_get_master_addr_by_name("shop")
        [found] = [each for each in self.servers if each._options["port"] == str(port)]
        return found


def stop(pid: int | None) -> None:
    assert pid
    os.kill(pid, signal.SIGSTOP)


@pytest.fixture
def site(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Site]:
    program = request.config.getoption("--redis-server") or find_server()
    with ExitStack() as stack:
        servers = []
        for number in range(2):
            options = {"port": str(_free_port()), "bind": "127.0.0.1", "protected-mode": "no"}
            folder = tmp_path / f"redis-{number}"
            servers.append(EmbeddedServer(folder, server=program, appendonly=False, options=options))
        for each in servers:
            each.start()
            stack.callback(each.kill)
        with Redis(port=int(servers[1]._options["port"])) as replica:
            replica.replicaof("127.0.0.1", servers[0]._options["port"])
        ports = [_free_port() for _ in range(3)]
        sentinels = [stack.enter_context(_sentinel(program, tmp_path, port, servers[0])) for port in ports]
        for each in sentinels:
            stack.callback(each.kill)
        assert eventually(lambda: all(map(_is_ready, ports)))
        yield Site(servers, sentinels, ports)


def _sentinel(program: Path, folder: Path, port: int, master: EmbeddedServer) -> subprocess.Popen[bytes]:
    own = folder / f"sentinel-{port}"
    own.mkdir()
    config = own / "sentinel.conf"
    config.write_text(
        f"port {port}\nbind 127.0.0.1\nprotected-mode no\ndir {own}\n"
        f"sentinel monitor shop 127.0.0.1 {master._options['port']} 2\n"
        f"sentinel down-after-milliseconds shop {DOWN_AFTER}\nsentinel failover-timeout shop 3000\n"
    )
    return subprocess.Popen(
        [program, config, "--sentinel"], stdout=subprocess.DEVNULL, start_new_session=True
    )


def _is_ready(port: int) -> bool:
    """Whether a Sentinel knows the others, and the replica."""
    with suppress(RedisError), Redis(port=port) as client:
        found = client.sentinel_master("shop")
        return found["num-other-sentinels"] == 2 and found["num-slaves"] == 1
    return False


def increase() -> int:
    with redis_errors():
        return int(get_client().incr("hits"))


def aincrease() -> int:
    async def main() -> int:
        with redis_errors():
            return int(await get_async_client().incr("hits"))

    return asyncio.run(main())


ACTS = pytest.mark.parametrize("act", [increase, aincrease])
KINDS = pytest.mark.parametrize("kind", [OURS, THEIRS], ids=["ours", "theirs"])


def seconds(act: Callable[[], object]) -> float:
    began = time.monotonic()
    act()
    return time.monotonic() - began


@KINDS
@ACTS
def test_a_sentinel_that_hangs_costs_a_second_once(
    site: Site, act: Callable[[], int], kind: dict[str, str]
) -> None:
    stop(site.sentinels[0].pid)
    url = f"{SHOP}?client_name={site.ports[0]}"  # pools are kept by their URL
    with redis_at(url, SENTINELS=site.addresses(), SOCKET_TIMEOUT=1, **kind):
        assert seconds(act) < SOON
        assert min(seconds(act) for _ in range(5)) < 1  # it is not asked again, nor does a new loop ask it


@KINDS
@ACTS
def test_the_host_of_the_master_and_of_the_first_sentinel_hang_together(
    site: Site, act: Callable[[], int], kind: dict[str, str]
) -> None:
    url = f"{SHOP}?client_name={site.ports[0]}"
    with redis_at(url, SENTINELS=site.addresses(), SOCKET_TIMEOUT=1, **kind):
        act()
        old = site.master()
        stop(old.pid)
        stop(site.sentinels[0].pid)

        took = []
        assert eventually(lambda: _succeeds(act, took), within=60, pause=0.1)

        assert site.master() is not old
        assert max(took) < SOON  # no call waits for retries, before, during and after the failover
        assert min(seconds(act) for _ in range(5)) < 1


def _succeeds(act: Callable[[], object], took: list[float]) -> bool:
    began = time.monotonic()
    try:
        act()
    except RedisUnavailable:
        return False
    finally:
        took.append(time.monotonic() - began)
    return True


def test_settings_of_the_project_for_sentinels_hold(site: Site) -> None:
    given: dict[str, Any] = {"SENTINEL_KWARGS": {"socket_timeout": 0.2, "client_name": "ours"}}
    stop(site.sentinels[0].pid)
    url = f"{SHOP}?client_name={site.ports[0]}"
    with redis_at(url, SENTINELS=site.addresses(), **given, **THEIRS) as client:
        assert client.incr("hits") == 1
        manager = client.connection_pool.sentinel_manager

        for each in manager.sentinels:
            options = each.get_connection_kwargs()
            assert (options["socket_timeout"], options["client_name"]) == (0.2, "ours")
