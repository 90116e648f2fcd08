"""
What the chaos test of logs does: how many lines, in chunks of what size, who copies and counts them.

CHAOS_LOG_LINES (500,000; the whole test is ten times that) is how many there are, CHAOS_SEED a number of an earlier
run, to have its lines and troubles again, CHAOS_LOG_KERNEL what counts them.
"""

from __future__ import annotations

import os
import secrets

LINES = int(os.environ.get("CHAOS_LOG_LINES", "500000"))
SEED = int(os.environ.get("CHAOS_SEED") or secrets.randbelow(1_000_000))
#: The one that is quickly there: each process that is killed has a successor.
KERNEL = os.environ.get("CHAOS_LOG_KERNEL", "naive")

JOB = "chaos"
#: The aggregation of a callback of one's own; the other one is that of places.
EVENTS = "events"
ROLES = {"producer": 2, "worker": 8, "counter": 4}
FILES = 12
CHUNK = 65_536  # bytes of lines: some 1,400
LIMIT = 1_000_000  # bytes in flight, compressed: some 60 chunks
LEASE = 1  # second
LATE = 0.1  # of all flushes come when the lease is over
SOCKET_TIMEOUT = 1.0  # seconds: how long a reply that was lost silently is waited for

#: Each round of troubles is done once for so many lines.
ROUNDS = max(1, LINES // 1_000_000)
_SECONDS = 2 + LINES / 250_000  # for all, so that there is time for trouble
_CHUNKS = 1 + LINES * 53 // CHUNK
#: Seconds for which a process reads a chunk, at most: so that whoever is killed or stopped was just counting.
SLOWEST = {role: min(LEASE / 2, 2 * _SECONDS * number / _CHUNKS) for role, number in ROLES.items()}
