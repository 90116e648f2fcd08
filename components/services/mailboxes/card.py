"""The card of mailboxes: how many there are."""

from __future__ import annotations

from django.utils.translation import ngettext, ngettext_lazy

from components.kit.cards import Card, CardReading, Past
from components.kit.figures import ask_sizes
from components.kit.keyspace import BUCKETS
from components.services.mailboxes.keys import index

PAST = Past(
    "mailboxes:pushed",
    ngettext_lazy(
        "%(count)s message was sent in the last %(span)s",
        "%(count)s messages were sent in the last %(span)s",
        "number",
    ),
)


def card() -> CardReading:
    """Count the mailboxes."""
    count = sum((yield ask_sizes(map(index, BUCKETS))))
    return Card(count, ngettext("mailbox", "mailboxes", count))
