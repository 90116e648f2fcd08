"""The report of chats: how many there are, when somebody last wrote, and finding them by id or title."""

from datetime import UTC, datetime
from functools import partial

from django.utils.translation import gettext, ngettext, ngettext_lazy

from components.formatting import duration, legible
from components.kit.decoding import instant_of, text_of
from components.kit.keyspace import BUCKETS
from components.kit.readings import Ask, Event, ask_sizes
from components.kit.scripts import Script
from components.reports import MOST_FOUND, Card, CardReading, FinderReading, Found, Link, Past, small
from components.services.chat.keys import ChatKeys, index

FIND = Script("chat/find")

#: The chats of a bucket that a search looks at. Each takes a command, since its title is stored with it.
_MOST = 100
PAST = Past(
    "chat:sent",
    ngettext_lazy(
        "%(count)s message was sent in the last %(span)s",
        "%(count)s messages were sent in the last %(span)s",
        "number",
    ),
)
EVENTS = (
    Event("chat:sent", "components_chat_sent", "Messages that were sent to chats."),
    Event("chat:fetched", "components_chat_fetched", "Messages that were read from chats."),
)


def card() -> CardReading:
    """Count the chats."""
    keys = [index(tag) for tag in BUCKETS]
    latest = (Ask.of("zrange", key, 0, 0, desc=True, withscores=True) for key in keys)
    answers = yield [*ask_sizes(keys), *latest]
    count = sum(answers[: len(BUCKETS)])
    last = max((at for found in answers[len(BUCKETS) :] for _chat, at in found), default=None)
    age = None if last is None else max(0.0, (datetime.now(UTC) - instant_of(last)).total_seconds())
    ago = gettext("%(age)s ago") % {"age": duration(age)} if age is not None else duration(None)
    return Card(count, ngettext("chat", "chats", count), [(gettext("Last message"), ago)])


def find(text: str) -> FinderReading:
    """Find chats that somebody wrote in lately, and the chat with the id *text*."""
    wanted = small(text)
    request = {"wanted": wanted, "exact": text, "most": _MOST, "limit": MOST_FOUND}
    buckets = map(ChatKeys.of_bucket, BUCKETS)
    answers = yield [Ask(keys.names, partial(FIND.put, keys=keys, **request)) for keys in buckets]
    titles = {
        text_of(id): text_of(title)
        for answer in answers
        for id, title in zip(answer[::2], answer[1::2], strict=True)
    }

    def order(id: str) -> tuple[bool, bool, str]:
        begins = any(small(name).startswith(wanted) for name in (titles[id], id))
        return id != text, not begins, titles[id]

    ids = sorted(titles, key=order)[:MOST_FOUND]
    return [Found(Link("chat", _label(id, titles[id]), chat=id)) for id in ids]


def _label(id: str, title: str) -> str:
    return f"{legible(title)} ({id})" if title and title != id else legible(id)
