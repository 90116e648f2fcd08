"""
Distributed locks (chapter 6.2 of the book): one holder at a time, for a time.

lock() and alock() are what a project uses; Lock and AsyncLock stand in for redis-py's classes. docs/locks.md.
"""

from components.kit.holders import Holder, new_token
from components.services.locks.asynchronous import AsyncLock
from components.services.locks.multiple import AsyncLocks, Locks, alocks, locks
from components.services.locks.named import LockOptions, alock, lock
from components.services.locks.readers import LockInfo, LockReader, WaiterInfo
from components.services.locks.threaded import Lock

__all__ = [
    "AsyncLock",
    "AsyncLocks",
    "Holder",
    "Lock",
    "LockInfo",
    "LockOptions",
    "LockReader",
    "Locks",
    "WaiterInfo",
    "alock",
    "alocks",
    "lock",
    "locks",
    "new_token",
]
