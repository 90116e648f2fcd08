"""
The HTTP API of mailboxes: reading the caller's own mailbox, and pushing to those of others.

Looking is a GET and changes nothing. Pulling is a POST, because it hands out messages and acknowledges earlier ones,
which a link that somebody is tricked into following must not do.
"""

from collections.abc import Sequence
from typing import Annotated, Any, TypedDict

from django.http import HttpRequest
from django.urls import path, reverse
from msgspec import Meta

from components.api.endpoints import Answer, Reply, endpoint, operation
from components.api.people import check_recipient
from components.api.requests import MessageNumber, person
from components.api.shapes import Instant, Nothing, People, Request, TextOrData, Whole, about, shaped
from components.api.waiting import PATIENCE, Timeout, wait_for
from components.people import anames_of, anote_contacts
from components.services.mailboxes import Fate, Mailbox
from components.services.mailboxes import Mail as StoredMail

RECIPIENT, SENDER, NUMBER = person("recipient"), person("sender"), MessageNumber("id")


class Look(Request):
    limit: Annotated[int, Meta(ge=1, le=200)] = 10
    newest: bool = False


class PullMail(Look):
    after: Annotated[
        Whole | None, about("Acknowledge the messages that were handed out up to this id first.")
    ] = None
    timeout: Timeout = PATIENCE


class AcknowledgeMail(Request):
    id: Whole


class Mail(TypedDict):
    id: Whole
    sender: str
    text: str
    data: Annotated[Any, about("Any JSON, or null.")]
    sent_at: Instant
    is_again: Annotated[bool, about("It was handed out before, and not acknowledged.")]
    is_unreadable: Annotated[bool, about("The stored message cannot be read; the text is a placeholder.")]


class Mails(TypedDict):
    messages: list[Mail]
    people: People
    missed: Annotated[Whole, about("How many messages were dropped without the recipient knowing yet.")]


class MailboxContent(Mails):
    depth: Whole


class Acknowledged(TypedDict):
    acknowledged: Whole


class Pushed(TypedDict):
    id: Whole
    sent_at: Instant
    is_duplicate: bool
    dropped: Annotated[Whole, about("How many older messages were dropped to make room.")]


def _word(fate: Fate) -> str:
    return fate.replace(" ", "_")


class Delivery(TypedDict):
    id: Whole
    fate: Annotated[str, about(enum=[_word(each) for each in Fate])]
    recipient_pulled_at: Instant | None


@operation("mailbox", {200: Reply("The oldest, or the newest.", MailboxContent)}, query=Look)
async def look_into_mailbox(request: HttpRequest, user: str, given: Look) -> MailboxContent:
    """List the messages in the caller's mailbox, without taking them."""
    mailbox = Mailbox(user)
    found = await mailbox.apeek(given.limit, newest=given.newest)
    depth, missed = await mailbox.adepth(), await mailbox.amissed()
    return {**await _mails(found, missed), "depth": depth}


@operation(
    "mailbox",
    {200: Reply("The messages; none if none came within the timeout.", Mails, "Retry-After")},
    body=PullMail,
)
async def pull_mail(request: HttpRequest, user: str, given: PullMail) -> Answer:
    """Take messages; they come again until they are acknowledged."""
    mailbox = Mailbox(user)
    found, headers = await wait_for(
        request,
        user,
        given.timeout,
        lambda wait: mailbox.apull(given.limit, after=given.after, newest=given.newest, wait=wait),
    )
    return Answer(await _mails(found, found.missed), headers={} if found else headers)


@operation("mailbox", {200: Reply("How many were acknowledged.", Acknowledged)}, body=AcknowledgeMail)
async def acknowledge_mail(request: HttpRequest, user: str, given: AcknowledgeMail) -> Acknowledged:
    """Acknowledge all messages that were handed out, up to an id."""
    return {"acknowledged": await Mailbox(user).aacknowledge(given.id)}


@operation(
    "mailbox",
    {
        201: Reply("Pushed.", Pushed, "Location"),
        200: Reply("Pushed by an earlier request with the same key.", Pushed, "Location"),
    },
    body=TextOrData,
    is_repeatable=True,
    problems=["blocked", "person-not-found", "mailbox-full", "invalid-message"],
)
async def push_mail(
    request: HttpRequest, user: str, given: TextOrData, recipient: str, key: str | None
) -> Answer:
    """Put a message into somebody's mailbox."""
    await check_recipient(user, recipient)
    pushed = await Mailbox(recipient).apush(user, given.text, data=given.data, client_id=key)
    await anote_contacts(user, [recipient])
    told = shaped(Pushed, pushed, dropped=len(pushed.dropped))
    where = reverse("components:api-fate", args=[recipient, str(pushed.id)])
    return Answer(told, 200 if pushed.is_duplicate else 201, {"Location": where})


@operation(
    "mailbox",
    {200: Reply("The fate of the message, known while it is in the mailbox and for a day after.", Delivery)},
    problems=["message-not-found", "invalid-value"],
)
async def mail_fate(request: HttpRequest, user: str, recipient: str, id: int) -> Delivery:
    """Report the fate of a message to its sender."""
    found = await Mailbox(recipient).astatus(id, sender=user)
    return shaped(Delivery, found, fate=_word(found.fate), recipient_pulled_at=found.pulled_at)


@operation("mailbox", {204: Reply("Blocked.")}, body=Nothing, problems=["too-many-blocked"])
async def block_sender(request: HttpRequest, user: str, given: Nothing, sender: str) -> None:
    """Refuse mail from somebody from now on."""
    await Mailbox(user).ablock(sender)


@operation("mailbox", {204: Reply("Not blocked.")}, problems=["invalid-value"])
async def unblock_sender(request: HttpRequest, user: str, sender: str) -> None:
    """Accept mail from somebody again."""
    await Mailbox(user).aunblock(sender)


async def _mails(found: Sequence[StoredMail], missed: int) -> Mails:
    return {
        "messages": [shaped(Mail, each) for each in found],
        "people": await anames_of(each.sender for each in found),
        "missed": missed,
    }


urlpatterns = [
    path("mailbox", endpoint(get=look_into_mailbox), name="api-mailbox"),
    path("mailbox/pull", endpoint(post=pull_mail), name="api-pull"),
    path("mailbox/acknowledge", endpoint(post=acknowledge_mail), name="api-acknowledge"),
    path(
        "mailbox/blocked/<str:sender>",
        endpoint(SENDER, put=block_sender, delete=unblock_sender),
        name="api-mail-blocked",
    ),
    path("mailboxes/<str:recipient>", endpoint(RECIPIENT, post=push_mail), name="api-push"),
    path(
        "mailboxes/<str:recipient>/messages/<str:id>",
        endpoint(RECIPIENT, NUMBER, get=mail_fate),
        name="api-fate",
    ),
]
