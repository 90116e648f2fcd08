"""The card of chats: how many there are, and when somebody last wrote."""

from __future__ import annotations

from datetime import UTC, datetime

from django.utils.translation import gettext, ngettext, ngettext_lazy

from components.kit.cards import Card, CardReading, Past
from components.kit.figures import Ask, ask_sizes
from components.kit.keyspace import BUCKETS
from components.kit.stored import instant_of
from components.services.chat.keys import index
from components.templatetags.control_room import duration

PAST = Past(
    "chat:sent",
    ngettext_lazy(
        "%(count)s message was sent in the last %(span)s",
        "%(count)s messages were sent in the last %(span)s",
        "number",
    ),
)


def card() -> CardReading:
    """Count the chats."""
    answers = yield [*ask_sizes(map(index, BUCKETS)), *(_ask_last(index(tag)) for tag in BUCKETS)]
    count = sum(answers[: len(BUCKETS)])
    last = max((at for found in answers[len(BUCKETS) :] for _chat, at in found), default=None)
    age = None if last is None else max(0.0, (datetime.now(UTC) - instant_of(last)).total_seconds())
    ago = gettext("%(age)s ago") % {"age": duration(age)} if age is not None else duration(None)
    return Card(count, ngettext("chat", "chats", count), [(gettext("Last message"), ago)])


def _ask_last(key: str) -> Ask:
    return Ask(key, lambda pipe: pipe.zrange(key, 0, 0, desc=True, withscores=True))
