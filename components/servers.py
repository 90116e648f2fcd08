"""
Facts about a server, and which of its settings endanger the data: for the banners of the admin.

A server may forbid INFO; then nothing is known, which is not an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from redis.exceptions import ResponseError

from components.conf import conf
from components.exceptions import RedisUnsuitable
from components.kit.client import get_client
from components.kit.errors import redis_errors

OLDEST = (6, 2)


@dataclass(frozen=True)
class ServerInfo:
    """The server as it describes itself; each part empty where it does not."""

    version: str
    mode: str
    warnings: tuple[str, ...]


def inspect_server() -> ServerInfo:
    """Ask the server. Raises RedisUnavailable, and RedisUnsuitable if it is too old."""
    client = get_client()
    with redis_errors():
        client.ping()
        try:
            info: Mapping[str, Any] = client.info()
        except ResponseError:
            return ServerInfo(
                "", "", ("The server does not permit INFO: its version and persistence are unknown.",)
            )
    _require(str(info.get("redis_version", "")))
    return ServerInfo(
        str(info.get("redis_version", "")), str(info.get("redis_mode", "")), tuple(_warnings(info))
    )


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
            "appendonly is off: a crash of Redis loses what came after the last snapshot.",
            "Set appendonly yes.",
        )
