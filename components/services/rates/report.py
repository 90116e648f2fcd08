"""The report of rate limits: how many there are, their figures, and finding those used within a month by name."""

from django.utils.translation import ngettext, ngettext_lazy

from components.kit.keyspace import BUCKETS
from components.kit.readings import Event, ask_sizes
from components.reports import Card, CardReading, Past, finder_of
from components.services.rates.keys import RateKeys

PAST = Past(
    "rates:refused",
    ngettext_lazy(
        "%(count)s call was refused in the last %(span)s",
        "%(count)s calls were refused in the last %(span)s",
        "number",
    ),
)
EVENTS = (
    Event("rates:refused", "components_rate_refused", "Calls that exceeded their rate limit.", "limit"),
    Event(
        "rates:postponed",
        "components_rate_postponed",
        "Tasks that were given back until their turn.",
        "limit",
    ),
)


def _names() -> list[str]:
    return [RateKeys.of_bucket(tag).names for tag in BUCKETS]


find = finder_of("changelist", "q", _names)


def card() -> CardReading:
    """Count the rate limits."""
    count = sum((yield ask_sizes(_names())))
    return Card(count, ngettext("rate limit", "rate limits", count))
