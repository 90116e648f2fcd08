"""
The chats and channel layers to measure. Each module is imported only when its turn may come: its library may not be
there.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.chatting.base import Channel, Store

OURS, BOOK, CORE, PUBSUB = "components", "book", "channels_redis core", "channels_redis pub/sub"

#: name in the report -> distribution, class. What keeps messages until they are read:
STORES = {OURS: ("components", "ours.OurStore"), BOOK: ("", "book.Book")}
#: What hands them to those who wait:
CHANNELS = {
    OURS: ("components", "ours.OurChannel"),
    CORE: ("channels_redis", "layers.Core"),
    PUBSUB: ("channels_redis", "layers.PubSub"),
}
#: Those of them that are asked to let a thousand wait: core cannot, its waiters take turns at one connection.
WAKERS = (OURS, PUBSUB)


def store(name: str) -> Store:
    return _make(name, *STORES[name])


def channel(name: str) -> Channel:
    return _make(name, *CHANNELS[name])


def is_installed(name: str) -> bool:
    distribution, _ = CHANNELS[name]
    return distribution == "components" or bool(_version(distribution))


@cache
def _make(name: str, distribution: str, path: str) -> Any:
    """One for each process."""
    module, _, kind = path.rpartition(".")
    return getattr(import_module(f"benchmarks.chatting.{module}"), kind)(name, _version(distribution))


def _version(distribution: str) -> str:
    try:
        return version(distribution) if distribution else ""
    except PackageNotFoundError:
        return "(this checkout)" if distribution == "components" else ""
