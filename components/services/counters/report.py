"""The report of counters: how many there are, the pages of times, and finding counters by name."""

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from components.kit.keyspace import BUCKETS
from components.kit.readings import ask_sizes
from components.reports import Card, CardReading, Link, finder_of
from components.services.counters.keys import CounterKeys

LINKS = (
    Link("times", _("Tasks by time"), of="tasks"),
    Link("times", _("Views by time"), of="views"),
    Link("times", _("Locks by time"), of="locks"),
)
find = finder_of("chart", "counter", lambda: [CounterKeys(tag).names for tag in BUCKETS])


def card() -> CardReading:
    """Count the counters."""
    count = sum((yield ask_sizes(CounterKeys(tag).names for tag in BUCKETS)))
    return Card(count, ngettext("counter", "counters", count), links=LINKS)
