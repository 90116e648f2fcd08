"""
Gather the figures of all services, in one round trip to each node of Redis.

This room knows no service's inside: reports.py says what a service contributes. A service whose answer is an
error, for example since a node is away, is left out and named, and the others have their figures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from components.kit import figures
from components.kit.figures import Ask, Event, Family, Gauges
from components.reports import reports
from components.services.counters import Sum, read_sums, sums_key


@dataclass
class Gathered:
    """What was gathered."""

    families: list[Family] = field(default_factory=list)
    #: The sums of events, by event and by what it was of.
    sums: Mapping[str, Mapping[str, Sum]] = field(default_factory=dict)
    #: The parts that could not be read, and why.
    missing: dict[str, Exception] = field(default_factory=dict)


def events() -> Iterator[Event]:
    """Yield the events of all services whose sums are figures."""
    for service in reports().values():
        yield from getattr(service, "EVENTS", ())


def gather() -> Gathered:
    """Return the figures of all services. It does not raise if Redis is away: then all of them are missing."""
    sums = dict[str, Mapping[str, Sum]]()
    readings = {
        each.__name__.split(".")[-2]: each.gauges() for each in reports().values() if hasattr(each, "gauges")
    }
    gathered = figures.gather({**readings, "redis": _redis(), "sums": _sums(sums)})
    families = [family for some in gathered.found.values() for family in some]
    return Gathered(families, sums, gathered.missing)


def _sums(found: dict[str, Mapping[str, Sum]]) -> Gauges:
    key = sums_key()
    [stored] = yield [Ask(key, lambda pipe: pipe.hgetall(key))]
    found.update(read_sums(stored))
    return []


def _redis() -> Gauges:
    up = Family("components_redis_up", "1 if the node answered.")
    used = Family("components_redis_memory_bytes", "Memory that the node uses.")
    most = Family("components_redis_memory_limit_bytes", "The node's maxmemory; 0 if it has none.")
    [nodes] = yield [Ask(None, lambda node: node.info("memory"))]
    for node, info in sorted(nodes.items()):
        is_up = not isinstance(info, Exception)
        up.add(is_up, node=node)
        if is_up:
            used.add(info["used_memory"], node=node)
            most.add(info["maxmemory"], node=node)
    return [up, used, most]
