"""What is told of semaphores: frozen dataclasses, of one moment by the server's clock. Durations are in seconds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from components.kit.leases import Holder


@dataclass(frozen=True)
class SemaphoreInfo:
    """How a semaphore stands. Figures count from its first use, or from its first after a month without any."""

    name: str
    #: The limit that the code declared when it last asked for a permit; None if it never did.
    declared: int | None
    #: The limit that was set by hand, and wins; None if none was.
    override: int | None
    #: The weight of all permits that are held now.
    used: int
    #: How many hold a permit, and how many wait for one.
    holders: int
    waiting: int
    #: How many permits were granted, and how many of these had to be waited for.
    granted: int
    waits: int
    #: How long these waited together, and how long one of them waited at most.
    total_waited: float
    longest_wait: float
    #: How many waited in vain, and how many permits were not given back in time.
    given_up: int
    expired: int

    @property
    def limit(self) -> int | None:
        """The limit in force."""
        return self.declared if self.override is None else self.override


@dataclass(frozen=True)
class HolderInfo:
    """A permit that is held."""

    id: str
    weight: int
    holder: Holder
    since: datetime
    #: Until its lease ends.
    remaining: float


@dataclass(frozen=True)
class WaiterInfo:
    """Somebody who waits for a permit."""

    weight: int
    holder: Holder
    #: So far.
    waited: float
