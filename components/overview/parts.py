"""
The cards of services, gathered together in one round trip to each node of Redis.

This room knows no service's inside: reports.py says what a service contributes. A card that cannot be read, for
example since a node is away, is missing, and the others are there.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from components import models
from components.kit.figures import Gathered, Reading, gather
from components.reports import Card, Past, reports
from components.services.counters import Series, recent


@dataclass(frozen=True)
class Part:
    """The card of a service, or the reason why it is missing."""

    model: type[models.Anchor]
    card: Card | None
    error: Exception | None = None
    #: What the service did lately; None if that is not counted, or may not be seen.
    past: Past | None = None
    series: Series | None = None


def look(
    wanted: Collection[type[models.Anchor]], *, has_past: bool = False, **others: Reading[Any]
) -> tuple[list[Part], Gathered[Any]]:
    """
    Return the cards of these services, and everything that was gathered, with what *others* have read.

    It does not raise if Redis is away: then all cards are missing.
    """
    services = {model: service for model, service in reports().items() if model in wanted}
    readings: dict[str, Reading[Any]] = {_card(model): service.card() for model, service in services.items()}
    if has_past:
        pasts = {model: service.PAST for model, service in services.items() if hasattr(service, "PAST")}
        readings |= {_past(model): recent(past.counter) for model, past in pasts.items()}
    gathered = gather({**readings, **others})
    parts = [
        Part(
            model,
            gathered.found.get(_card(model)),
            gathered.missing.get(_card(model)),
            getattr(service, "PAST", None),
            gathered.found.get(_past(model)),
        )
        for model, service in services.items()
    ]
    return parts, gathered


def _card(model: type[models.Anchor]) -> str:
    return f"the card of {model.__name__}"


def _past(model: type[models.Anchor]) -> str:
    return f"the past of {model.__name__}"
