"""Facts about semaphores: frozen dataclasses, of one moment by the server's clock. Durations are in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from components.kit.leases import Holder


@dataclass(frozen=True)
class MinuteOfUse:
    """How full a semaphore was in a minute."""

    #: When the minute began.
    at: datetime
    #: The highest total weight of the permits that were held at the same time.
    most: int


@dataclass(frozen=True)
class SemaphoreInfo:
    """The state of a semaphore. Figures count from its first use, or from its first use after a month without any."""

    name: str
    #: The limit that the code declared when it last asked for a permit; None if it never did.
    declared: int | None
    #: The limit that was set by hand, which overrides the declared one; None if there is none.
    override: int | None
    #: The total weight of the permits that are held now.
    used: int
    #: The number of holders, and of waiters.
    holders: int
    waiting: int
    #: The number of permits granted, and how many of these were granted after a wait.
    granted: int
    waits: int
    #: The total time of these waits, and the longest wait.
    total_waited: float
    longest_wait: float
    #: The number of waits that timed out, and of permits that were not given back in time.
    given_up: int
    expired: int
    #: The permits in use in each minute of the last two hours, the current minute last; empty unless asked for.
    use: Sequence[MinuteOfUse] = ()

    @property
    def limit(self) -> int | None:
        """Return the limit in force."""
        return self.declared if self.override is None else self.override


@dataclass(frozen=True)
class HolderInfo:
    """A permit that is held."""

    id: str
    weight: int
    holder: Holder
    since: datetime
    #: Seconds until its lease ends.
    remaining: float


@dataclass(frozen=True)
class WaiterInfo:
    """A waiter for a permit."""

    weight: int
    holder: Holder
    #: Seconds waited so far.
    waited: float
