"""
The systems that count, to be measured by counters.py. Each module is imported only when its turn may come: its
library may not be there.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

from benchmarks.counting.base import System

OURS, BUFFERED, BOOK = "components, at once", "components, in memory", "book"
FLOOR = "a script that does nothing"
#: name in the report -> distribution, class
_ALL = {
    FLOOR: ("", "floor.Floor"),
    OURS: ("", "ours.AtOnce"),
    BUFFERED: ("", "ours.InMemory"),
    BOOK: ("", "book.Book"),
    "prometheus_client": ("prometheus_client", "prometheus.Prometheus"),
    "statsd": ("statsd", "over_udp.StatsD"),
}


def systems() -> dict[str, System]:
    """Those whose libraries are installed; of the others it is said."""
    found = {}
    for name, (distribution, path) in _ALL.items():
        try:
            installed = version(distribution) if distribution else ""
        except PackageNotFoundError:
            print(f"{name} is not installed, and left out: pip install -r benchmarks/requirements.txt")
            continue
        module, _, kind = path.rpartition(".")
        found[name] = getattr(import_module(f"benchmarks.counting.{module}"), kind)(installed)
    return found
