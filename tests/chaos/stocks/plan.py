"""
What the chaos test of cached rows does: how long, how many processes of each role, which rows.

CHAOS_ROWS_SECONDS (6) is how long things go wrong, CHAOS_ROWS_SEED a number of an earlier run, to have its plan
again.
"""

from __future__ import annotations

import os
import secrets
from random import Random

SECONDS = float(os.environ.get("CHAOS_ROWS_SECONDS", "6"))
SEED = int(os.environ.get("CHAOS_ROWS_SEED") or secrets.randbelow(1_000_000))

ROLES = {"writer": 4, "reader": 8, "daemon": 3}
#: By row: seconds between two loads. The others are never put on the schedule.
DELAYS = {row: (0.1, 0.3, 0.6)[row % 3] for row in range(1, 41)}
ROWS = range(1, 61)
LEASE = 1  # second, of the daemons; that of readers is the library's own
MAX_AGE = 0.2  # seconds, where a reader asks for that
NAP = 0.006  # seconds, at most, between two acts of a writer or a reader
SLOW = 0.1  # of the queries
SLOWEST = 0.3  # seconds, of these; now and then longer than the lease of a daemon


def pick(random: Random, number: int = 1) -> list[int]:
    """So many rows, the first ones far more often than the last."""
    return list(dict.fromkeys(ROWS[int(len(ROWS) * random.random() ** 3)] for _ in range(number)))
