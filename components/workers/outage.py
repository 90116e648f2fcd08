"""
Outage: the time in which Redis does not answer a worker.

An outage is logged once when it begins and once when it ends. The first attempts come soon, the later ones every
second or two, or every third of a short lease. They come at random instants, so that the workers of a large site do
not all connect at the same time. A lease that ran out during the outage does not mean that its holder is dead, so for
a moment after a long outage nobody takes over anything.
"""

import logging
import random
import time

from components.exceptions import RedisUnavailable

logger = logging.getLogger(__name__)

_SHORTEST_RETRY, _LONGEST_RETRY = 0.1, 2.0  # seconds between two attempts
# The most seconds that a worker takes to renew its leases after a successful attempt.
_RENEWAL = 0.5


class Outage:
    """The current outage, or none. After *harmless* seconds leases may run out because nobody renews them."""

    def __init__(self, harmless: float) -> None:
        self._harmless = harmless
        self._longest_retry = max(_SHORTEST_RETRY, min(_LONGEST_RETRY, harmless))
        # Every live worker renews its leases within this time.
        self._grace = self._longest_retry + _RENEWAL
        self._since: float | None = None
        self._over_at: float | None = None
        self._longest = _SHORTEST_RETRY  # seconds to the next attempt, at most

    @property
    def grace(self) -> float:
        """How many seconds others still have to renew their leases; 0 if no lease ran out in a recent outage."""
        return max(0.0, self._over_at + self._grace - time.monotonic()) if self._over_at is not None else 0.0

    @property
    def is_recent(self) -> bool:
        """Whether leases may have run out because of an outage, and are not renewed yet."""
        return self._has_cost_leases() or self.grace > 0

    def _has_cost_leases(self) -> bool:
        return self._since is not None and time.monotonic() - self._since > self._harmless

    def __bool__(self) -> bool:
        return self._since is not None

    def goes_on(self, error: RedisUnavailable) -> float:
        """Note that Redis did not answer, and return the seconds until the next attempt."""
        if self._since is None:
            self._since = time.monotonic()
            logger.warning("%s Waiting for Redis.", sentence(error))
        self._longest = min(self._longest_retry, 2 * self._longest)
        return random.uniform(_SHORTEST_RETRY, self._longest)

    def is_over(self) -> None:
        """Note that Redis has answered."""
        if self._since is not None:
            logger.warning("Redis answers again after %.1f s.", time.monotonic() - self._since)
            self._over_at = time.monotonic() if self._has_cost_leases() else self._over_at
            self._since, self._longest = None, _SHORTEST_RETRY


def sentence(error: Exception) -> str:
    return f"{str(error).rstrip('.')}."
