"""
Facts about a server, and warnings about settings that endanger the data, for the logs of workers and the Queues page.

A server may forbid INFO; then nothing is known, which is not an error.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from redis import Redis
from redis.exceptions import ResponseError

from components.conf import conf
from components.exceptions import RedisUnsuitable
from components.kit.client import get_client
from components.kit.errors import redis_errors

OLDEST = (6, 2)
_REMEMBERED = 60.0  # seconds: a server is seldom exchanged for another


@dataclass(frozen=True)
class ServerInfo:
    """
    Facts that the server reports; each attribute is empty if the server does not report it.

    str() is "Valkey 9.1.2 (standalone)".
    """

    name: str
    version: str
    mode: str
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        mode = f" ({self.mode})" if self.mode else ""
        return f"{self.name} {self.version}{mode}" if self.version else "Redis"


def inspect_server() -> ServerInfo:
    """Ask the server. Raises RedisUnavailable, and RedisUnsuitable if it is too old."""
    client = get_client()
    with redis_errors():
        client.ping()
        try:
            info: Mapping[str, Any] = client.info()
        except ResponseError:
            return ServerInfo(
                "", "", "", ("The server does not permit INFO: its version and persistence are unknown.",)
            )
    _require(str(info.get("redis_version", "")))
    return described(info)


_seen: WeakKeyDictionary[Redis, tuple[float, str]] = WeakKeyDictionary()


def server_name() -> str:
    """
    Return the name, version and mode of the server, as read within the last minute. Raises what inspect_server does.
    """
    client, now = get_client(), time.monotonic()
    read_at, name = _seen.get(client, (-_REMEMBERED, ""))
    if now - read_at >= _REMEMBERED:
        name = str(inspect_server())
        _seen[client] = now, name
    return name


def described(info: Mapping[str, Any]) -> ServerInfo:
    """Read INFO. Valkey gives the release of Redis that it is compatible with as redis_version."""
    is_valkey = "valkey_version" in info
    version = info["valkey_version"] if is_valkey else info.get("redis_version", "")
    mode = info.get("redis_mode") or info.get("server_mode", "")  # Valkey 9.1 and newer have the second alone
    return ServerInfo("Valkey" if is_valkey else "Redis", str(version), str(mode), tuple(_warnings(info)))


def _require(version: str) -> None:
    parts = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if parts and parts < OLDEST:
        raise RedisUnsuitable(
            f"The Redis of CACHES[{conf().cache!r}] is {version}, and this app needs 6.2 or newer, or Valkey."
        )


def _warnings(info: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"{risk} {remedy}" for risk, remedy in risks(info))


def risks(info: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what in the answer to INFO endangers the data, each with its remedy."""
    policy = info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction" and info.get("maxmemory"):
        yield (
            f"maxmemory-policy is {policy}: under memory pressure Redis will delete tasks.",
            "Set it to noeviction.",
        )
    if not info.get("aof_enabled", 1):
        yield (
            "appendonly is off: a crash of Redis loses all changes since the last snapshot.",
            "Set appendonly yes.",
        )
