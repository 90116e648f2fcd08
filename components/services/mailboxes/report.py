"""The report of mailboxes: how many there are, their figures, and finding those used within a year by name."""

from django.utils.translation import ngettext, ngettext_lazy

from components.kit.keyspace import BUCKETS
from components.kit.readings import Event, ask_sizes
from components.reports import Card, CardReading, Past, finder_of
from components.services.mailboxes.keys import index

PAST = Past(
    "mailboxes:pushed",
    ngettext_lazy(
        "%(count)s message was sent in the last %(span)s",
        "%(count)s messages were sent in the last %(span)s",
        "number",
    ),
)
EVENTS = (
    Event("mailboxes:pushed", "components_mailbox_pushed", "Messages that were pushed into mailboxes."),
    Event("mailboxes:pulled", "components_mailbox_pulled", "Messages that were pulled from mailboxes."),
    Event("mailboxes:acknowledged", "components_mailbox_acknowledged", "Messages that were acknowledged."),
)
find = finder_of("mailbox", "mailbox", lambda: [*map(index, BUCKETS)])


def card() -> CardReading:
    """Count the mailboxes."""
    count = sum((yield ask_sizes(map(index, BUCKETS))))
    return Card(count, ngettext("mailbox", "mailboxes", count))
