"""
The mailbox of a person, and pushing to those of others.

Looking is a GET and changes nothing. Pulling is a POST, since it hands messages out and acknowledges those before:
a link that somebody is made to follow must not do that.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpRequest
from django.urls import reverse

from components.api import shapes
from components.api.endpoints import Answer
from components.api.fields import Values, body, idempotency_key, number, query
from components.api.persons import check_recipient, names_of
from components.api.waiting import let_go, patience, place, retry_after
from components.exceptions import WaitersFull
from components.people import anote_contacts
from components.services.mailboxes import Mail, Mailbox, Mails

_MOST = 200  # messages in one answer


async def look(request: HttpRequest, user: str) -> Answer:
    """GET mailbox?limit=&newest=: what is there, without taking it."""
    values = query(request, "limit", "newest")
    mailbox = Mailbox(user)
    found = await mailbox.apeek(_limit(values), newest=values.boolean("newest", False))
    depth, missed = await mailbox.adepth(), await mailbox.amissed()
    return Answer({**await _told(found), "depth": depth, "missed": missed})


async def pull(request: HttpRequest, user: str) -> Answer:
    """POST mailbox/pull: the next messages, as soon as there are any; they come again until acknowledged."""
    values = body(request, "after", "limit", "newest", "timeout")
    found, could_wait = await _pulled(
        Mailbox(user),
        _limit(values),
        values.integer("after", None),
        values.boolean("newest", False),
        patience(request, values),
    )
    told = {**await _told(found), "missed": found.missed}
    return Answer(told, headers={} if could_wait or found else retry_after())


async def acknowledge(request: HttpRequest, user: str) -> Answer:
    """POST mailbox/acknowledge {"id"}: all that were handed out, up to this one, are gone."""
    id = body(request, "id").integer("id")
    return Answer({"acknowledged": await Mailbox(user).aacknowledge(id)})


async def push(request: HttpRequest, user: str, recipient: str) -> Answer:
    """POST mailboxes/{user}: 201; 200 if it was pushed before under the same Idempotency-Key."""
    values = body(request, "text", "data")
    text, data, key = values.text("text", ""), values.raw("data"), idempotency_key(request)
    await check_recipient(user, recipient)
    pushed = await Mailbox(recipient).apush(user, text, data=data, client_id=key)
    await anote_contacts(user, [recipient])
    told = {
        "id": pushed.id,
        "sent_at": shapes.instant(pushed.sent_at),
        "is_duplicate": pushed.is_duplicate,
        "dropped": len(pushed.dropped),
    }
    where = reverse("components:api-fate", args=[recipient, str(pushed.id)])
    return Answer(told, 200 if pushed.is_duplicate else 201, {"Location": where})


async def fate(request: HttpRequest, user: str, recipient: str, id: str) -> Answer:
    """GET mailboxes/{user}/messages/{id}: what became of a message, for its sender only."""
    found = await Mailbox(recipient).astatus(number(id), sender=user)
    return Answer(shapes.delivery(found))


async def block(request: HttpRequest, user: str, sender: str) -> Answer:
    """PUT mailbox/blocked/{user}: his mail is refused from now on."""
    body(request)
    await Mailbox(user).ablock(sender)
    return Answer()


async def unblock(request: HttpRequest, user: str, sender: str) -> Answer:
    """DELETE mailbox/blocked/{user}"""
    await Mailbox(user).aunblock(sender)
    return Answer()


async def _pulled(
    mailbox: Mailbox, limit: int, after: int | None, newest: bool, seconds: float
) -> tuple[Mails, bool]:
    """The messages, and whether they could be waited for."""
    if seconds:
        await let_go()
        try:
            with place(mailbox.name):
                return await mailbox.apull(limit, after=after, newest=newest, wait=seconds), True
        except WaitersFull:
            pass
    return await mailbox.apull(limit, after=after, newest=newest), False


async def _told(found: Sequence[Mail]) -> dict[str, object]:
    names = await names_of(each.sender for each in found)
    return {"messages": [shapes.mail(each) for each in found], "people": names}


def _limit(values: Values) -> int:
    limit: int = values.integer("limit", 10, least=1, most=_MOST)
    return limit
