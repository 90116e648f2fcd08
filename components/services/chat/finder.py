"""The finder of chats, by id or title."""

from __future__ import annotations

from functools import partial

from components.kit.cards import Link
from components.kit.figures import Ask
from components.kit.finders import MOST_FOUND, FinderReading, Found, small
from components.kit.keyspace import BUCKETS
from components.kit.scripts import Script
from components.kit.stored import text_of
from components.services.chat.keys import ChatKeys
from components.templatetags.control_room import legible

FIND = Script("chat/find")

#: The chats of a bucket that are looked at. Each takes a command, since its title is stored with it.
_MOST = 100


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
