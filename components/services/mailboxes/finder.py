"""The finder of mailboxes, by name."""

from __future__ import annotations

from components.kit.cards import Link
from components.kit.finders import FinderReading, Found, ask_names, best_of
from components.kit.keyspace import BUCKETS
from components.services.mailboxes.keys import index
from components.templatetags.control_room import legible


def find(text: str) -> FinderReading:
    """Find mailboxes that were used within a year."""
    answers = yield ask_names([*map(index, BUCKETS)], text)
    return [Found(Link("mailbox", legible(name), mailbox=name)) for name in best_of(answers, text)]
