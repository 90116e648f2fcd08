"""
Gather the figures of all services, in one round trip to each node of Redis.

This room knows no service's inside: kit/figures.py says what a service contributes. A service whose answer is an
error, for example since a node is away, is left out and named, and the others have their figures.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from components.exceptions import RedisUnavailable
from components.kit.figures import Ask, Event, Family, Gauges, send
from components.services.chat import figures as chat
from components.services.counters import Sum, read_sums, sums_key
from components.services.locks import figures as locks
from components.services.logs import figures as logs
from components.services.mailboxes import figures as mailboxes
from components.services.queues import figures as queues
from components.services.rows import figures as rows
from components.services.semaphores import figures as semaphores

logger = logging.getLogger(__name__)

#: Every service that has figures.
SERVICES: tuple[Any, ...] = (queues, locks, semaphores, chat, mailboxes, rows, logs)


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
    for service in SERVICES:
        yield from service.EVENTS


def gather() -> Gathered:
    """Return the figures of all services. It does not raise if Redis is away: then all of them are missing."""
    found = Gathered()
    running = {_name(each): each.gauges() for each in SERVICES if hasattr(each, "gauges")}
    running |= {"redis": _redis(), "sums": _sums(found)}
    asks = {name: next(gauges) for name, gauges in running.items()}
    while asks:
        outcomes = iter(_send([ask for some in asks.values() for ask in some]))
        answers = {name: [next(outcomes) for _ in some] for name, some in asks.items()}
        asks = {}
        for name, some in answers.items():
            if failed := [each for each in some if isinstance(each, Exception)]:
                found.missing[name] = failed[0]
                running[name].close()
                continue
            try:
                asks[name] = running[name].send(some)
            except StopIteration as end:
                found.families += end.value
            except Exception as error:
                logger.exception("The figures of %s could not be read.", name)
                found.missing[name] = error
    return found


def _send(asks: Sequence[Ask]) -> list[Any]:
    try:
        return send(asks)
    except RedisUnavailable as error:
        return [error] * len(asks)


def _name(service: Any) -> str:
    return str(service.__name__).split(".")[-2]


def _sums(found: Gathered) -> Gauges:
    key = sums_key()
    [stored] = yield [Ask(key, lambda pipe: pipe.hgetall(key))]
    found.sums = read_sums(stored)
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
