"""A semaphore in plain Python, as it should behave: what test_semaphores_model.py holds the real one against."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Held:
    weight: int
    ends_at: float


@dataclass
class Model:
    """Time is what passes by pass_time(), and nothing else."""

    lease: float
    life: float
    now: float = 0.0
    override: int | None = None
    holders: dict[str, Held] = field(default_factory=dict)
    #: Waiter -> until when it counts as alive; in the order of arrival.
    queue: dict[str, float] = field(default_factory=dict)
    #: What is remembered of permits: "released", "evicted" or "left".
    ended: dict[str, str] = field(default_factory=dict)
    granted: int = 0
    waits: int = 0

    @property
    def used(self) -> int:
        return sum(held.weight for held in self.holders.values())

    @property
    def head(self) -> str | None:
        return next(iter(self.queue), None)

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.ended.clear()  # half a minute, of which there are more in any step
        self.holders = {each: held for each, held in self.holders.items() if held.ends_at > self.now}
        self.queue = {each: alive for each, alive in self.queue.items() if alive > self.now}

    def fits(self, weight: int, declared: int) -> bool:
        return weight <= (self.override or declared) - self.used

    def ask(self, permit: str, weight: int, declared: int, *, waits: bool) -> str:
        if permit in self.holders:
            return "granted"
        if permit in self.ended:
            return "ended"
        if weight > (self.override or declared):
            return "heavy"
        if self.head not in (None, permit) or not self.fits(weight, declared):
            if waits:
                self.queue[permit] = self.now + self.life
            return "wait" if waits else "full"
        self.waits += self.queue.pop(permit, None) is not None
        self.granted += 1
        self.holders[permit] = Held(weight, self.now + self.lease)
        return "granted"

    def end(self, permit: str, how: str) -> str:
        """How the permit has ended: as it is said here, or before, or by time."""
        if self.holders.pop(permit, None) or how == "left":
            self.queue.pop(permit, None)
            self.ended.setdefault(permit, how)
            return how
        return self.ended.get(permit, "expired")

    def refresh(self, permit: str) -> str:
        if held := self.holders.get(permit):
            held.ends_at = self.now + self.lease
            return "refreshed"
        return self.ended.get(permit, "expired")
