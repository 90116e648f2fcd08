"""Presence: who has a chat open, and who is typing. One request is a sign of life, and waits for others."""

from typing import Annotated, TypedDict

from asgiref.sync import sync_to_async
from django.http import HttpRequest

from components.api.endpoints import Answer, Reply, operation
from components.api.shapes import Ids, Nothing, People, Request, Whole, about, shaped
from components.api.waiting import PATIENCE, Timeout, wait_for
from components.conf import conf
from components.people import anames_of, is_hidden
from components.services.chat import Presence
from components.services.rates import RateLimit

_LATER = "60"  # seconds after which a client of a site without presence may ask again
RATE = RateLimit("api:typing", "5/5s")


class Attendance(Request):
    typing: Annotated[
        Ids | None, about("Those of whom the client knows that they are typing. Without it, do not wait.")
    ] = None
    timeout: Timeout = PATIENCE


class Present(TypedDict):
    here: Annotated[list[str], about("The ids of others who have the chat open, at most 50.")]
    count: Annotated[Whole, about("How many others have it open.")]
    typing: Annotated[list[str], about("The ids of others who are typing, at most five.")]
    people: People


@operation(
    "presence",
    {200: Reply("The people who have the chat open, and those who are typing.", Present, "Retry-After")},
    body=Attendance,
    problems=["chat-not-found"],
)
async def attend(request: HttpRequest, user: str, given: Attendance, chat_id: str) -> Answer:
    """
    Say that the caller has the chat open, and ask who else has.

    This counts for a minute. Wait for up to timeout seconds until others are typing than those named. An answer with
    the header Retry-After did not wait.
    """
    presence, is_shown = Presence(chat_id), not await _is_hidden(user)
    found, headers = await wait_for(
        request,
        user,
        given.timeout,
        lambda wait: presence.aattend(user, is_shown=is_shown, typing=given.typing, wait=wait),
    )
    if not conf().chat_presence:
        headers = {"Retry-After": _LATER}
    told = shaped(Present, found, people=await anames_of([*found.here, *found.typing]))
    return Answer(told, headers=headers)


@operation(
    "presence",
    {204: Reply("Those who have the chat open are told, unless five others are typing.")},
    body=Nothing,
    problems=["muted", "chat-not-found", "chat-closed", "too-fast"],
)
async def type_message(request: HttpRequest, user: str, given: Nothing, chat_id: str) -> None:
    """
    Say that the caller is typing.

    This counts for six seconds, or until they send their message. Clients repeat it every few seconds.
    """
    await RATE.aacquire(user)
    if not await _is_hidden(user):
        await Presence(chat_id).atype(user)


async def _is_hidden(user: str) -> bool:
    """Return whether others do not see this of the person. The site's function may ask the database."""
    return conf().chat_hidden is not None and await sync_to_async(is_hidden)(user)
