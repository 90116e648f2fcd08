"""
Semaphores: no more than so many at a time. `Semaphore` takes permits and gives them back, `limit_concurrency` does so
around a call, `SemaphoreControls` and `SemaphoreReader` are for whoever looks after them.
"""

from components.services.semaphores.acquisitions import Acquisition
from components.services.semaphores.controls import SemaphoreControls
from components.services.semaphores.limiters import limit_concurrency
from components.services.semaphores.permits import Permit
from components.services.semaphores.readers import SemaphoreReader
from components.services.semaphores.records import HolderInfo, SemaphoreInfo, WaiterInfo
from components.services.semaphores.semaphores import Semaphore

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
