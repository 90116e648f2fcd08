"""
Gather the figures of all services, in one round trip to each node of Redis, and write them in the formats of
Prometheus. It needs prometheus_client, the extra "metrics".

This room knows no service's inside: reports.py says what a service contributes. A service whose answer is an
error, for example since a node is away, is left out and named, and the others have their figures.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from components.kit.readings import Ask, Event, Family, Gathered, Gauges, Reading
from components.kit.readings import gather as gather_readings
from components.reports import reports
from components.services.counters import Sum, cumulated, read_sums, sums_key


def gather() -> Gathered[Any]:
    """Return the families of each service, and the sums of events. If Redis is away, all of them are missing."""
    readings: dict[str, Reading[Any]] = {
        each.__name__.split(".")[-2]: each.gauges() for each in reports().values() if hasattr(each, "gauges")
    }
    return gather_readings({**readings, "redis": _redis(), "sums": _sums()})


def _sums() -> Reading[Mapping[str, Mapping[str, Sum]]]:
    [stored] = yield [Ask.of("hgetall", sums_key())]
    return read_sums(stored)


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


class Figures(Collector):
    """All figures of this app. Register it with a registry of your own if you already have one."""

    def collect(self) -> Iterator[Metric]:
        """Gather, and yield each metric."""
        gathered = gather()
        sums = gathered.found.pop("sums", {})
        for families in gathered.found.values():
            yield from map(_of_family, families)
        events = (each for service in reports().values() for each in getattr(service, "EVENTS", ()))
        for _name, alike in groupby(events, key=lambda event: event.name):
            yield _of_events([*alike], sums)
        about = "1 for a part whose figures could not be read."
        missing = GaugeMetricFamily("components_figures_missing", about, labels=["part"])
        for part in sorted(gathered.missing):
            missing.add_metric([part], 1)
        yield missing

    def describe(self) -> Iterable[Metric]:
        """Return nothing, so that registering gathers nothing."""
        return []


def expose(accepted: str) -> tuple[bytes, str]:
    """Return the figures, and their content type, in the format that the header Accept asks for."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Figures())
    write, content_type = choose_encoder(accepted)
    return write(registry), content_type


def _of_family(family: Family) -> Metric:
    labels = [*family.samples[0][0]] if family.samples else []
    kind = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
    metric = kind(family.name, family.help, labels=labels)
    for named, value in family.samples:
        metric.add_metric([named[label] for label in labels], value)
    return metric


def _of_events(alike: Sequence[Event], sums: Mapping[str, Mapping[str, Sum]]) -> Metric:
    first = alike[0]
    labels = [*([first.label] if first.label else []), *(name for name, _value in first.labels)]
    kind = HistogramMetricFamily if first.is_histogram else CounterMetricFamily
    metric: Metric = kind(first.name, first.help, labels=labels)
    for event in alike:
        none = {} if event.label else {"": Sum()}
        for of, found in sorted((sums.get(event.event) or none).items()):
            values = [*([of] if event.label else []), *(value for _name, value in event.labels)]
            if isinstance(metric, HistogramMetricFamily):
                metric.add_metric(values, buckets=cumulated(found.buckets), sum_value=found.seconds)
            elif isinstance(metric, CounterMetricFamily):
                metric.add_metric(values, found.count)
    return metric
