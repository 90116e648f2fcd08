"""
Semaphores: no more than so many at a time. `Semaphore` takes permits and gives them back, `limit_concurrency` does so
around a call, `SemaphoreControls` and `SemaphoreReader` are for whoever looks after them.
"""

from components.services.semaphores.controls import SemaphoreControls
from components.services.semaphores.facts import HolderInfo, SemaphoreInfo, WaiterInfo
from components.services.semaphores.limiter import limit_concurrency
from components.services.semaphores.permit import Acquisition, Permit
from components.services.semaphores.reader import SemaphoreReader
from components.services.semaphores.semaphore import Semaphore

__all__ = [
    "Acquisition",
    "HolderInfo",
    "Permit",
    "Semaphore",
    "SemaphoreControls",
    "SemaphoreInfo",
    "SemaphoreReader",
    "WaiterInfo",
    "limit_concurrency",
]
