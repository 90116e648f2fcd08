"""Write the gathered figures in the formats of Prometheus. It needs prometheus_client, the extra "metrics"."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from components.kit.figures import Event, Family
from components.observing.gathering import Gathered, events, gather
from components.services.counters import Sum, cumulated


class Figures(Collector):
    """All figures of this app. Register it with a registry of your own if you already have one."""

    def collect(self) -> Iterator[Metric]:
        """Gather, and yield each metric."""
        gathered = gather()
        yield from map(_of_family, gathered.families)
        for _name, alike in groupby(events(), key=lambda event: event.name):
            yield _of_events([*alike], gathered.sums)
        yield _missing(gathered)

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


def _missing(gathered: Gathered) -> Metric:
    metric = GaugeMetricFamily(
        "components_figures_missing", "1 for a part whose figures could not be read.", labels=["part"]
    )
    for part in sorted(gathered.missing):
        metric.add_metric([part], 1)
    return metric
