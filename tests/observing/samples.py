"""What /metrics says, by name and labels."""

from __future__ import annotations

from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from components.observing.exposition import expose
from components.services.counters import flush


class Samples(dict[tuple[str, frozenset[tuple[str, str]]], float]):
    """The figures of one gathering."""

    @classmethod
    def gather(cls) -> Samples:
        flush()
        text = expose("text/plain")[0].decode()
        return cls(
            {
                (sample.name, frozenset(sample.labels.items())): sample.value
                for family in text_string_to_metric_families(text)
                for sample in family.samples
            }
        )

    def of(self, name: str, /, **labels: Any) -> float | None:
        return self.get((f"components_{name}", frozenset(labels.items())))

    @property
    def names(self) -> set[str]:
        return {name for name, _labels in self}
