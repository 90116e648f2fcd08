"""
sync: what is new in all chats of a person, in one request that waits for it.

The client gives back the cursor of the answer before: how far it has come in each chat. The cursor is signed for
this person, so nobody makes one up; and nothing about it is kept here, so a client may stay away as long as it likes,
or ask again with an old one when an answer was lost.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from django.core import signing
from django.http import HttpRequest

from components.exceptions import WaitersFull
from components.services.chat import Changes, Inbox, Position
from components.views.api import shapes
from components.views.api.endpoints import Answer
from components.views.api.fields import Values, body, query
from components.views.api.persons import names_of
from components.views.api.problems import Problem
from components.views.api.waiting import let_go, patience, place, retry_after

_LARGEST = 1 << 18  # bytes of a body: the cursor of some ten thousand chats
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
    if not cursor:
        return await _all(user)
    since = read_cursor(user, cursor)
    changes, could_wait = await _changes(user, since, seconds)
    told = {
        "user": user,
        "cursor": make_cursor(user, changes.positions) if changes.chats or changes.gone else cursor,
        "chats": [shapes.changed_chat(each) for each in changes.chats],
        "gone": list(changes.gone),
        "unavailable": list(changes.unavailable),
        "people": await names_of(shapes.people_of(changes.chats)),
    }
    return Answer(told, headers={} if could_wait else retry_after())


async def _all(user: str) -> Answer:
    """Where a client begins: all chats with their last messages; what came before is history."""
    found = await Inbox(user).achats()
    told = {
        "user": user,
        "cursor": make_cursor(user, {each.chat_id: Position(each.last_seq, each.revision) for each in found}),
        "chats": [{**shapes.chat(each), "messages": [], "has_more": False, "missed": 0} for each in found],
        "gone": [],
        "unavailable": list(found.unavailable),
        "people": await names_of(shapes.people_of(found)),
    }
    return Answer(told)


async def _changes(user: str, since: Mapping[str, Position], seconds: float) -> tuple[Changes, bool]:
    """What is new, and whether it could be waited for."""
    inbox = Inbox(user)
    if seconds:
        await let_go()
        try:
            with place(user):
                return await inbox.achanges(since, wait=seconds), True
        except WaitersFull:
            pass
    return await inbox.achanges(since), False


def make_cursor(user: str, positions: Mapping[str, Position]) -> str:
    content = {chat_id: [each.seq, each.revision] for chat_id, each in positions.items()}
    return signing.dumps(content, salt=_salt(user), compress=True)


def read_cursor(user: str, cursor: str) -> dict[str, Position]:
    """The positions that make_cursor() was given. Raises Problem."""
    try:
        if not _CURSOR.fullmatch(cursor):
            raise signing.BadSignature
        content = signing.loads(cursor, salt=_salt(user))
    except signing.BadSignature:
        raise Problem(
            "invalid-cursor", "The cursor is none that sync gave to you. Begin anew without one."
        ) from None
    return {chat_id: Position(*numbers) for chat_id, numbers in content.items()}


def _salt(user: str) -> str:
    """The number is that of the format."""
    return f"components.api.cursor.1:{user}"
