"""
sync: what is new in all chats of a person, in one request that waits for it.

The client gives back the cursor of the answer before: how far it has come in each chat. The cursor is signed for
this person, so nobody makes one up; and nothing about it is kept here, so a client may stay away as long as it likes,
or ask again with an old one when an answer was lost.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from django.core import signing
from django.http import HttpRequest

from components.api import shapes
from components.api.endpoints import Answer
from components.api.fields import Values, body, query
from components.api.problems import Problem
from components.api.waiting import let_go, patience, place, retry_after
from components.exceptions import WaitersFull
from components.people import anames_of
from components.services.chat import Changes, Inbox, Position

_LARGEST = 1 << 18  # bytes of a body: the cursor of some ten thousand chats
_MOST_CHATS = 100  # in one answer
_AFTER = ""  # what no chat can be called: in a cursor, the place at which the list of chats goes on
_FIELDS = ("cursor", "timeout")
_CURSOR = re.compile(r"[A-Za-z0-9_:.-]+")


async def get(request: HttpRequest, user: str) -> Answer:
    """GET sync?cursor=&timeout="""
    return await _sync(request, user, query(request, *_FIELDS))


async def post(request: HttpRequest, user: str) -> Answer:
    """POST sync, for a cursor that is too long for an address. It changes nothing either."""
    return await _sync(request, user, body(request, *_FIELDS, largest=_LARGEST))


async def _sync(request: HttpRequest, user: str, values: Values) -> Answer:
    seconds = patience(request, values)
    cursor = values.text("cursor", "", longest=_LARGEST)
    since = read_cursor(user, cursor) if cursor else {}
    after = _content(user, cursor).get(_AFTER, "") if cursor else ""
    if after or not cursor:
        return await _listing(user, since, after)
    changes, could_wait = await _changes(user, since, seconds)
    told = {
        "user": user,
        "cursor": make_cursor(user, changes.positions) if changes.chats or changes.gone else cursor,
        "chats": [shapes.changed_chat(each) for each in changes.chats],
        "gone": list(changes.gone),
        "has_more_chats": changes.has_more,
        "unavailable": list(changes.unavailable),
        "people": await anames_of(shapes.people_of(changes.chats)),
    }
    return Answer(told, headers={} if could_wait else retry_after())


async def _listing(user: str, since: Mapping[str, Position], after: str) -> Answer:
    """Answer a client that begins: its chats with their last messages, page by page. All before that is history."""
    page = await Inbox(user).apage(limit=_MOST_CHATS, after=after)
    found = [each for each in page.chats if each.chat_id not in since]
    positions = {each.chat_id: Position(each.last_seq, each.revision) for each in found}
    told = {
        "user": user,
        "cursor": make_cursor(user, {**since, **positions}, page.next),
        "chats": [{**shapes.chat(each), "messages": [], "has_more": False, "missed": 0} for each in found],
        "gone": [],
        "has_more_chats": bool(page.next),
        "unavailable": list(page.unavailable),
        "people": await anames_of(shapes.people_of(found)),
    }
    return Answer(told)


async def _changes(user: str, since: Mapping[str, Position], seconds: float) -> tuple[Changes, bool]:
    """Return what is new, and whether it could be waited for."""
    inbox = Inbox(user)
    if seconds:
        await let_go()
        try:
            with place(user):
                return await inbox.achanges(since, wait=seconds), True
        except WaitersFull:
            pass
    return await inbox.achanges(since), False


def make_cursor(user: str, positions: Mapping[str, Position], after: str = "") -> str:
    """Return what a client asks with next: how far it has come, and after which chat its list goes on, if it does."""
    content: dict[str, Any] = {chat_id: [each.seq, each.revision] for chat_id, each in positions.items()}
    if after:
        content[_AFTER] = after
    return signing.dumps(content, salt=_salt(user), compress=True)


def read_cursor(user: str, cursor: str) -> dict[str, Position]:
    """Return the positions that make_cursor() was given. Raises Problem."""
    return {id: Position(*numbers) for id, numbers in _content(user, cursor).items() if id != _AFTER}


def _content(user: str, cursor: str) -> dict[str, Any]:
    """Return what is in a cursor. Raises Problem."""
    try:
        if not _CURSOR.fullmatch(cursor):
            raise signing.BadSignature
        content: dict[str, Any] = signing.loads(cursor, salt=_salt(user))
    except signing.BadSignature:
        raise Problem(
            "invalid-cursor", "The cursor is none that sync gave to you. Begin anew without one."
        ) from None
    return content


def _salt(user: str) -> str:
    """The number is that of the format."""
    return f"components.api.cursor.1:{user}"
