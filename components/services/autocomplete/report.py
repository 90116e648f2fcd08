"""The report of address books: how many there are, and finding them by name."""

from django.utils.translation import ngettext, ngettext_lazy

from components.kit.readings import ask_sizes
from components.reports import Card, CardReading, Past, finder_of
from components.services.autocomplete.keys import ALL, names

PAST = Past(
    "autocomplete:searched",
    ngettext_lazy(
        "%(count)s search in the last %(span)s", "%(count)s searches in the last %(span)s", "number"
    ),
)
find = finder_of("book", "book", lambda: [names(ALL)])


def card() -> CardReading:
    """Count the address books."""
    count = sum((yield ask_sizes([names(ALL)])))
    return Card(count, ngettext("address book", "address books", count))
