"""The card of counters: how many there are."""

from __future__ import annotations

from django.utils.translation import ngettext

from components.kit.cards import Card, CardReading
from components.kit.figures import ask_sizes
from components.kit.keyspace import BUCKETS
from components.services.counters.keys import CounterKeys

PAST = None


def card() -> CardReading:
    """Count the counters."""
    count = sum((yield ask_sizes(CounterKeys(tag).names for tag in BUCKETS)))
    return Card(count, ngettext("counter", "counters", count))
