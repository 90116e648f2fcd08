"""The card of address books: how many there are."""

from __future__ import annotations

from django.utils.translation import ngettext, ngettext_lazy

from components.kit.cards import Card, CardReading, Past
from components.kit.figures import ask_sizes
from components.services.autocomplete.keys import ALL, names

PAST = Past(
    "autocomplete:searched",
    ngettext_lazy(
        "%(count)s search in the last %(span)s", "%(count)s searches in the last %(span)s", "number"
    ),
)


def card() -> CardReading:
    """Count the address books."""
    count = sum((yield ask_sizes([names(ALL)])))
    return Card(count, ngettext("address book", "address books", count))
