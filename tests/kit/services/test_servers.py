"""What the server says of itself, and what is said about it."""

from __future__ import annotations

import pytest
from redis import Redis

from components.embedded import EmbeddedServer
from components.servers import inspect_server
from components.testing import redis_at
from tests.support.full import configured


@pytest.fixture(params=["plain", "cluster"])
def redis_mode(request: pytest.FixtureRequest) -> str:
    """The kit itself runs on both kinds of servers in each run."""
    return str(request.param)


def test_it_tells_name_version_and_mode(redis: Redis, redis_mode: str) -> None:
    server, mode = inspect_server(), {"plain": "standalone", "cluster": "cluster"}[redis_mode]

    info = redis.info("server")
    is_valkey = info.get("server_name") == "valkey"
    assert server.name == ("Valkey" if is_valkey else "Redis")
    assert server.version == info["valkey_version" if is_valkey else "redis_version"]
    assert server.mode == mode
    assert str(server) == f"{server.name} {server.version} ({mode})"


def test_a_server_that_keeps_nothing_on_disk_or_may_evict_tasks_is_warned_of(redis: Redis) -> None:
    [warning] = inspect_server().warnings
    assert "appendonly is off" in warning
    with configured(redis, **{"maxmemory": "100mb", "maxmemory-policy": "allkeys-lru"}):
        warnings = inspect_server().warnings

    assert any("allkeys-lru" in warning and "noeviction" in warning for warning in warnings)


def test_a_server_that_does_not_permit_info_is_no_error(redis_server: EmbeddedServer) -> None:
    with redis_at(redis_server.url) as redis:
        redis.execute_command("ACL SETUSER", "shop", "on", ">secret", "~*", "+@all", "-info")
    with redis_at(f"{redis_server.url}?username=shop&password=secret"):
        server = inspect_server()

    assert (server.name, server.version) == ("", "")
    assert str(server) == "Redis"
    assert "does not permit INFO" in server.warnings[0]
