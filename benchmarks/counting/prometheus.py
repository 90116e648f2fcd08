"""prometheus_client in its mode for several processes: files that all of them map into memory. Its slices are made by
a server that asks for totals."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable

os.environ.setdefault("PROMETHEUS_MULTIPROC_DIR", tempfile.mkdtemp(prefix="prometheus-"))

from prometheus_client import CollectorRegistry, Counter  # type: ignore[import-not-found]
from prometheus_client.multiprocess import MultiProcessCollector  # type: ignore[import-not-found]

from benchmarks.counting.base import Guarantees, System


class Prometheus(System):
    guarantees = Guarantees("totals", "nothing until the files go", "sends nothing", "by hand, files")
    share = 50

    def __init__(self, version: str) -> None:
        super().__init__(version)
        self._counter = Counter("hits", "Events.", ["name"])
        self._before: dict[str, int] = {}

    def begin(self) -> None:
        self._before = self._totals()

    def counting(self, name: str) -> Callable[[], object]:
        increment: Callable[[], object] = self._counter.labels(name).inc
        return increment

    def total(self, name: str) -> int:
        return self._totals().get(name, 0) - self._before.get(name, 0)

    def _totals(self) -> dict[str, int]:
        registry = CollectorRegistry()
        MultiProcessCollector(registry)
        return {
            sample.labels["name"]: int(sample.value)
            for metric in registry.collect()
            for sample in metric.samples
            if sample.name == "hits_total"
        }
