"""How many of the cached rows that were read were there, as counted in the last hour."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from components.services.counters import beside
from components.services.counters.charts import Span

_HOUR = 3_600  # seconds


@dataclass(frozen=True)
class HitRate:
    hits: int
    misses: int

    @property
    def reads(self) -> int:
        return self.hits + self.misses

    @property
    def percent(self) -> float | None:
        """None if nothing was read."""
        return 100 * self.hits / self.reads if self.reads else None


def hit_rates(names: Iterable[str]) -> dict[str, HitRate]:
    """Of the rows of each name, and of all as "". One round trip or two, to each node."""
    pairs = {"": ("rows:hit", "rows:missed")}
    pairs |= {name: (beside(f"rows:{name}", "hit"), beside(f"rows:{name}", "missed")) for name in names}
    found = Span(_HOUR).read([counter for pair in pairs.values() for counter in pair])
    return {name: HitRate(found[hit].total, found[missed].total) for name, (hit, missed) in pairs.items()}
