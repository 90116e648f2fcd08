"""Ours: an update that is sent at once, and one that is added in memory."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.counting.base import Guarantees, System
from components.services.counters import Counter, flush


class AtOnce(System):
    guarantees = Guarantees("7 precisions", "nothing", "counts once", "by expiry")

    def counting(self, name: str) -> Callable[[], object]:
        return Counter(name).update

    def total(self, name: str) -> int:
        return Counter(name).get(86_400).total


class InMemory(AtOnce):
    guarantees = Guarantees("7 precisions", "a second, of who is killed", "counts once", "by expiry")
    share = 200

    def counting(self, name: str) -> Callable[[], object]:
        return Counter(name).count

    def finish(self) -> None:
        flush()
