"""What is told about semaphores and who holds their permits: facts of one moment, by the server's clock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from components.kit.holders import Holder
from components.kit.stored import instant_of, number_of, text_of
from components.services.semaphores.ids import holder_of, weight_of

#: The figures that Redis keeps, in the order of the fields below.
FIGURES = ("declared", "granted", "waits", "waited", "longest", "given_up", "expired")


@dataclass(frozen=True)
class SemaphoreInfo:
    """How a semaphore stands. The figures count from its first use, or from its first after a month of none."""

    name: str
    #: What the code declared when it last asked for a permit; None if it never did.
    declared: int | None
    #: What was set by hand, and wins; None if nothing was.
    override: int | None
    #: The weight of all permits that are held now.
    used: int
    #: How many hold a permit, and how many wait for one.
    holders: int
    waiting: int
    #: How many permits were granted, and how many of these had to be waited for.
    granted: int
    waits: int
    #: Seconds that these waited together, and that one of them waited at most.
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
    #: Seconds until its lease ends.
    remaining: float


@dataclass(frozen=True)
class WaiterInfo:
    """Somebody who waits for a permit."""

    weight: int
    holder: Holder
    #: Seconds so far.
    waited: float


def read_info(
    name: str,
    holders: int,
    over: list[bytes],
    weights: list[tuple[bytes, float]],
    waiting: int,
    override: bytes | None,
    figures: list[bytes | None],
) -> SemaphoreInfo:
    """From what readers.look() asks for: *over* are leases that have ended, *weights* of heavy permits."""
    of = {name: number_of(value) for name, value in zip(FIGURES, figures, strict=True)}
    heavier = sum(number_of(weight, 1) - 1 for permit, weight in weights if permit not in over)
    return SemaphoreInfo(
        name=name,
        declared=of["declared"] or None,
        override=number_of(override) or None if override else None,
        used=holders + heavier,
        holders=holders,
        waiting=waiting,
        granted=of["granted"],
        waits=of["waits"],
        total_waited=of["waited"] / 1e6,
        longest_wait=of["longest"] / 1e6,
        given_up=of["given_up"],
        expired=of["expired"],
    )


def read_holder(permit: bytes, since: bytes, left: int) -> HolderInfo:
    """From what holders.lua returns."""
    permit_id = text_of(permit)
    return HolderInfo(
        id=permit_id,
        weight=weight_of(permit_id),
        holder=holder_of(permit_id),
        since=instant_of(float(since) / 1000),
        remaining=left / 1e6,
    )


def read_waiter(waiter: bytes, arrived_at: float, now: int) -> WaiterInfo:
    permit_id = text_of(waiter)
    return WaiterInfo(weight_of(permit_id), holder_of(permit_id), max(0.0, (now - arrived_at) / 1e6))
