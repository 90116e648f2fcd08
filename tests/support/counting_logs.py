"""Helpers for tests of the workers of logs: a table of addresses, lines, and workers that count them."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from components.services.logs import PLACES, Aggregation, Block, LogStream
from components.services.logs.lines import Book, Callback, LineReader
from components.services.logs.traffic.place_counter import PlaceCounter
from components.services.logs.worker.log_worker import LogWorker
from tests.support.geo import city, import_networks
from tests.support.logs import FILE, stream

NETWORKS = {
    "1.0.0.0/8": city("US", "CA", "Palo Alto"),
    "2.0.0.0/8": city("US", "NY", "Albany"),
    "3.0.0.0/8": city("DE", "BE", "Berlin"),
    "2001:db8::/32": city("DE", "BE", "Berlin"),
}
DAY = "2011-10-10"
#: Of each level what LINES count for.
TABLES = {
    f"daily:country:{DAY}": {"US": 3, "DE": 2, "unknown": 1},
    f"daily:region:{DAY}": {"US/CA": 2, "US/NY": 1, "DE/BE": 2, "unknown": 1},
    f"daily:city:{DAY}": {"US/CA/Palo Alto": 2, "US/NY/Albany": 1, "DE/BE/Berlin": 2, "unknown": 1},
}
ADDRESSES = ("1.0.0.1", "1.2.3.4", "2.0.0.0", "3.255.255.255", "2001:db8::7", "9.9.9.9")


def lines(*addresses: str, day: str = DAY) -> bytes:
    return b"".join(f"{address} {day} 13:55:36 achievement-762\n".encode() for address in addresses)


LINES = lines(*ADDRESSES)


def hand_out(*blocks: bytes, to: LogStream | None = None) -> list[str]:
    """Store a chunk of one file for each block, and return their ids."""
    to, ids, end, line = to or stream(), [], 0, 1
    for data in blocks:
        block = Block(data, end, end, line, data.count(b"\n"), "-")
        ids.append(to.append(FILE, block, name="access.log"))
        end, line = end + len(data), line + block.lines
    return ids


def import_places_into(folder: Path, networks: dict[str, Any] | None = None) -> None:
    import_networks(folder, NETWORKS if networks is None else networks)


def worker(
    *callbacks: Callable[[], Callback],
    name: str = PLACES,
    level: str = "city",
    tries: int = 5,
    **options: Any,
) -> LogWorker:
    """Return a worker that ends when everything is counted, by places unless there are callbacks."""
    made = callbacks or (partial(PlaceCounter, level=level, kernel="naive"),)
    options = {"drains": True, **options}
    aggregation = Aggregation(name, tries=tries)
    return LogWorker(aggregation, LineReader(Book(), kernel="naive"), made, **options)
