"""
Semaphores (chapter 6.3 of the book): a limited number of holders at a time.

Semaphore takes permits and gives them back, and limit_concurrency does so around a call. SemaphoreControls and
SemaphoreReader show semaphores and change them by name. See docs/semaphores.md.
"""

# Read semaphore.py and lua/acquire.lua, then permit.py.

from components.services.semaphores.limiter import limit_concurrency
from components.services.semaphores.permit import Acquisition, Permit
from components.services.semaphores.reader import (
    HolderInfo,
    MinuteOfUse,
    SemaphoreInfo,
    SemaphoreReader,
    WaiterInfo,
)
from components.services.semaphores.semaphore import Semaphore, SemaphoreControls

__all__ = [
    "Acquisition",
    "HolderInfo",
    "MinuteOfUse",
    "Permit",
    "Semaphore",
    "SemaphoreControls",
    "SemaphoreInfo",
    "SemaphoreReader",
    "WaiterInfo",
    "limit_concurrency",
]
