"""
sync: one request that waits for news in all chats of a person.

The client sends the cursor of the previous answer, which holds its position in each chat. The cursor is signed for
this person, so nobody can forge one. The server stores nothing about it: a client may stay away for as long as it
likes, or use an old cursor again when an answer was lost.
"""

import re
from asyncio import to_thread
from collections.abc import Mapping
from typing import Annotated, Any, TypedDict

from django.core import signing
from django.http import HttpRequest
from django.utils.translation import gettext
from msgspec import Meta

from components.api.endpoints import Answer, Reply, operation
from components.api.problems import Problem
from components.api.shapes import People, Request, about
from components.api.waiting import PATIENCE, Timeout, wait_for
from components.people import anames_of
from components.services.chat import Inbox, Position
from components.services.chat.api import shapes

_LARGEST = 1 << 18  # bytes of a body: the cursor of some ten thousand chats
_MOST_CHATS = 100  # chats in one answer
_AFTER = ""  # the key in a cursor, which no chat has as its id, of the chat after which the list continues
_CURSOR = re.compile(r"[A-Za-z0-9_:.-]+")


class SyncRequest(Request):
    cursor: Annotated[
        str,
        Meta(max_length=_LARGEST),
        about(
            "The cursor of the previous answer. Without one, all chats with their last messages come at once."
        ),
    ] = ""
    timeout: Timeout = PATIENCE


class Sync(TypedDict):
    user: Annotated[str, about("The id of the caller.")]
    cursor: Annotated[str, about("The cursor for the next request.")]
    chats: list[shapes.ChangedChat]
    gone: Annotated[list[str], about("The ids of chats that the person is no longer in.")]
    has_more_chats: Annotated[bool, about("There are more chats. Ask again at once with the new cursor.")]
    unavailable: shapes.Unavailable
    people: People


_REPLIES = {200: Reply("The news; empty if there was none within the timeout.", Sync, "Retry-After")}


@operation("sync", _REPLIES, query=SyncRequest, problems=["invalid-cursor"])
async def sync(request: HttpRequest, user: str, given: SyncRequest) -> Answer:
    """
    Get what is new in all chats.

    Wait for up to timeout seconds until there is news. An answer with the header Retry-After did not wait, because
    too many requests are waiting, or because the site runs under WSGI.
    """
    cursor = given.cursor
    since = read_cursor(user, cursor) if cursor else {}
    after = _content(user, cursor).get(_AFTER, "") if cursor else ""
    if after or not cursor:
        return Answer(await _listing(user, since, after))
    inbox = Inbox(user)
    changes, headers = await wait_for(
        request, user, given.timeout, lambda wait: inbox.achanges(since, wait=wait)
    )
    told: Sync = {
        "user": user,
        "cursor": make_cursor(user, changes.positions) if changes.chats or changes.gone else cursor,
        "chats": await to_thread(lambda: [*map(shapes.changed_chat, changes.chats)]),
        "gone": list(changes.gone),
        "has_more_chats": changes.has_more,
        "unavailable": list(changes.unavailable),
        "people": await anames_of(shapes.people_of(changes.chats)),
    }
    return Answer(told, headers=headers)


@operation("sync", _REPLIES, body=SyncRequest, largest=_LARGEST, problems=["invalid-cursor"])
async def sync_by_body(request: HttpRequest, user: str, given: SyncRequest) -> Any:
    """
    Get what is new in all chats, with the cursor in the body.

    Use this if the cursor is too long for a URL. The body may have 262,144 bytes.
    """
    return await sync.handler(request, user, given)


async def _listing(user: str, since: Mapping[str, Position], after: str) -> Sync:
    """Return, page by page, the chats of a client without a cursor, each with its last message."""
    page = await Inbox(user).apage(limit=_MOST_CHATS, after=after)
    found = [each for each in page.chats if each.chat_id not in since]
    positions = {each.chat_id: Position(each.last_seq, each.revision) for each in found}
    return {
        "user": user,
        "cursor": make_cursor(user, {**since, **positions}, page.next),
        "chats": [
            {**shapes.chat(each), "messages": [], "changed": [], "has_more": False, "missed": 0}
            for each in found
        ],
        "gone": [],
        "has_more_chats": bool(page.next),
        "unavailable": list(page.unavailable),
        "people": await anames_of(shapes.people_of(found)),
    }


def make_cursor(user: str, positions: Mapping[str, Position], after: str = "") -> str:
    """Return a cursor with a client's positions and, if its list continues, the chat after which it does."""
    content: dict[str, Any] = {chat_id: [each.seq, each.revision] for chat_id, each in positions.items()}
    if after:
        content[_AFTER] = after
    return signing.dumps(content, salt=_salt(user), compress=True)


def read_cursor(user: str, cursor: str) -> dict[str, Position]:
    """Return the positions that were passed to make_cursor(). Raises Problem."""
    return {id: Position(*numbers) for id, numbers in _content(user, cursor).items() if id != _AFTER}


def _content(user: str, cursor: str) -> dict[str, Any]:
    """Return the content of a cursor. Raises Problem."""
    try:
        if not _CURSOR.fullmatch(cursor):
            raise signing.BadSignature
        content: dict[str, Any] = signing.loads(cursor, salt=_salt(user))
    except signing.BadSignature:
        raise Problem(
            "invalid-cursor",
            gettext("This cursor was not made by sync for you. Begin again without a cursor."),
        ) from None
    return content


def _salt(user: str) -> str:
    """Return the salt of a person's signature. The number in it is the version of the format."""
    return f"components.api.cursor.1:{user}"
