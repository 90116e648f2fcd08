"""
The locks and semaphores to measure. Each module is imported only when its turn may come: its library may not be
there.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import cast

from benchmarks.locking.base import System

OURS, OURS_FAIR, OUR_SEMAPHORE = "components", "components, fair", "components, semaphore"

#: name in the report -> distribution, class
OURS_LOCKS = {
    OURS: ("components", "ours.Ours"),
    OURS_FAIR: ("components", "ours.OursFair"),
}
LOCKS = {
    "redis-py": ("redis", "redis_py.RedisPy"),
    "redis-py-10ms": ("redis", "redis_py.QuickRedisPy"),
    "python-redis-lock": ("python-redis-lock", "python_redis_lock.PythonRedisLock"),
    "pottery": ("pottery", "pottery.Pottery"),
    "book": ("", "book.Book"),
    "book-lease": ("", "book.BookWithLease"),
}
OUR_SEMAPHORES = {OUR_SEMAPHORE: ("components", "ours.OurSemaphore")}
SEMAPHORES = {
    "book-basic": ("", "book_semaphores.BasicSemaphore"),
    "book-fair": ("", "book_semaphores.FairSemaphore"),
    "book-locked": ("", "book_semaphores.LockedSemaphore"),
}
PEERS = {**LOCKS, **SEMAPHORES}
_ALL = {**OURS_LOCKS, **OUR_SEMAPHORES, **PEERS}


@cache
def find(name: str) -> System | None:
    """The system of that name; None if its library is not installed. One for each process."""
    distribution, path = _ALL[name]
    module, _, kind = path.rpartition(".")
    try:
        installed = version(distribution) if distribution else ""
    except PackageNotFoundError:
        if distribution != "components":
            return None
        installed = "(this checkout)"
    return cast(System, getattr(import_module(f"benchmarks.locking.{module}"), kind)(name, installed))
