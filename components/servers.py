"""
Facts about a server, and warnings about settings that endanger the data, for the logs of workers and the Queues page.

A server may forbid INFO; then nothing is known, which is not an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.utils.translation import gettext_noop
from redis.exceptions import ResponseError

from components.conf import conf
from components.exceptions import RedisUnsuitable
from components.kit.client import get_client
from components.kit.errors import redis_errors

OLDEST = (6, 2)
_NEARLY_FULL = 0.9  # of the memory that it may use


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
    version = str(info.get("redis_version", ""))
    parts = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if parts and parts < OLDEST:
        raise RedisUnsuitable(
            f"The Redis of CACHES[{conf().cache!r}] is {version}, and this app needs 6.2 or newer, or Valkey."
        )
    return described(info)


def described(info: Mapping[str, Any]) -> ServerInfo:
    """Read INFO. Valkey gives the release of Redis that it is compatible with as redis_version."""
    is_valkey = "valkey_version" in info
    version = info["valkey_version"] if is_valkey else info.get("redis_version", "")
    mode = info.get("redis_mode") or info.get("server_mode", "")  # Valkey 9.1 and newer have the second alone
    warnings = tuple(f"{risk.text % risk.values} {risk.remedy}" for risk in risks(info))
    return ServerInfo("Valkey" if is_valkey else "Redis", str(version), str(mode), warnings)


class Risk(NamedTuple):
    """A setting that endangers the data. Pages translate *text*, and then fill in *values*."""

    text: str
    values: Mapping[str, str]
    remedy: str


def risks(info: Mapping[str, Any]) -> Iterator[Risk]:
    """Yield what in the answer to INFO endangers the data."""
    policy = info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction" and info.get("maxmemory"):
        yield Risk(
            gettext_noop("maxmemory-policy is %(policy)s: under memory pressure Redis will delete tasks."),
            {"policy": str(policy)},
            gettext_noop("Set it to noeviction."),
        )
    if not info.get("aof_enabled", 1):
        yield Risk(
            gettext_noop("appendonly is off: a crash of Redis loses all changes since the last snapshot."),
            {},
            gettext_noop("Set appendonly yes."),
        )


def failed_saves(info: Mapping[str, Any]) -> list[str]:
    """Return what in the answer to INFO says that the server could not save its data."""
    return [
        name for name in ("aof_last_write_status", "rdb_last_bgsave_status") if info.get(name, "ok") != "ok"
    ]


@dataclass(frozen=True)
class Memory:
    """The memory that a server uses, and how much it may use, in bytes."""

    used: int
    #: maxmemory, or what the machine has; 0 if neither is known.
    limit: int
    is_of_machine: bool

    @classmethod
    def of(cls, info: Mapping[str, Any]) -> Memory:
        """Return what the answer to INFO says."""
        limit, machine = int(info.get("maxmemory", 0)), int(info.get("total_system_memory", 0))
        return cls(int(info.get("used_memory", 0)), limit or machine, not limit)

    @property
    def is_full(self) -> bool:
        """Return whether the server refuses writes or evicts data."""
        return bool(self.limit) and not self.is_of_machine and self.used >= self.limit

    @property
    def is_nearly_full(self) -> bool:
        """Return whether little is left."""
        return bool(self.limit) and self.used > _NEARLY_FULL * self.limit
