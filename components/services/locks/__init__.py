"""
Distributed locks (chapter 6.2 of the book): one holder at a time, for a time.

A project uses lock() and alock(), and locks() and alocks() for several at once. Lock and AsyncLock stand in for
redis-py's classes. FencedValue is a value that only the newest holder can write; models.py has rows of that kind. See
docs/locks.md and docs/fencing.md.
"""

# Read named.py, holding.py and lua/acquire.lua first, then fences.py and models.py, then drop_ins.py.

from components.kit.leases import Holder, new_token
from components.services.locks.drop_ins import AsyncLock, Lock
from components.services.locks.fences import FencedValue
from components.services.locks.named import AsyncLocks, LockOptions, Locks, alock, alocks, lock, locks
from components.services.locks.reader import LockInfo, LockReader, WaiterInfo

__all__ = [
    "AsyncLock",
    "AsyncLocks",
    "FencedValue",
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
