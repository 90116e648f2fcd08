"""Problem details (RFC 9457), which explain a refusal. The address of a type of problem leads to an explanation."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.core.exceptions import BadRequest, SuspiciousOperation, TooManyFieldsSent
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.multipartparser import MultiPartParserError
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from components import exceptions
from components.kit.translation import grouped
from components.views import RETRY_AFTER, without_transaction

CONTENT_TYPE = "application/problem+json"


@dataclass(frozen=True)
class Kind:
    """A type of problem."""

    status: int
    title: Promise
    #: The text for people who look up the type.
    explanation: Promise


#: The kinds of problems by the last part of their type, ordered by status. A published type never changes its name.
KINDS: dict[str, Kind] = {
    "malformed": Kind(400, _("The request cannot be read"), _("The body must be a JSON object in UTF-8.")),
    "invalid-cursor": Kind(
        400,
        _("The cursor is not valid"),
        _("A cursor comes from sync, for one person. Begin again without one."),
    ),
    "not-authenticated": Kind(
        401, _("Log in first"), _("The session or bearer token is missing or not valid.")
    ),
    "csrf": Kind(
        403,
        _("The CSRF token is missing or wrong"),
        _("Send the value of the CSRF cookie in the header X-CSRFToken."),
    ),
    "not-allowed": Kind(403, _("Not allowed"), _("The person's role in the chat does not allow this.")),
    "muted": Kind(403, _("Muted"), _("The person cannot write in this chat for now.")),
    "blocked": Kind(
        403,
        _("Blocked"),
        _("The person may not be in this chat, or the recipient accepts no mail from them."),
    ),
    "not-found": Kind(404, _("There is nothing here"), _("The API has no such address.")),
    "chat-not-found": Kind(
        404,
        _("There is no such chat"),
        _("It does not exist, or the person is not in it. The API does not say which."),
    ),
    "message-not-found": Kind(
        404, _("There is no such message"), _("It was deleted, is too old, or the person may not see it.")
    ),
    "book-not-found": Kind(
        404,
        _("There is no such book"),
        _("It does not exist, or the person may not search it. The API does not say which."),
    ),
    "row-not-found": Kind(
        404,
        _("There is no such row"),
        _("It does not exist, or the person may not read it. The API does not say which."),
    ),
    "member-not-found": Kind(
        404, _("There is no such member"), _("The person in the address is not in the chat.")
    ),
    "person-not-found": Kind(
        404, _("There is no such recipient"), _("There is nobody with this id to whom the person may write.")
    ),
    "method-not-allowed": Kind(
        405, _("The method is not allowed"), _("The header Allow lists the allowed methods.")
    ),
    "chat-exists": Kind(409, _("The chat exists"), _("The idempotency key was used to create another chat.")),
    "chat-closed": Kind(409, _("The chat is closed"), _("It can be read, but not written to.")),
    "too-many-chats": Kind(
        409,
        _("Too many chats"),
        _("The person has created as many chats as allowed, or somebody is in as many chats as allowed."),
    ),
    "mailbox-full": Kind(
        409, _("The mailbox is full"), _("The recipient has to acknowledge some of their messages first.")
    ),
    "too-large": Kind(413, _("The body is too large"), _("The detail says how large it may be.")),
    "unsupported-media-type": Kind(415, _("The body is not JSON"), _("Send it as application/json.")),
    "invalid-value": Kind(422, _("A value is not valid"), _("The member field says which.")),
    "invalid-message": Kind(
        422, _("The message is not valid"), _("It is empty or too long, or its data is not JSON.")
    ),
    "idempotency-key-reused": Kind(
        422,
        _("The idempotency key was used for another request"),
        _("That request is carried out, and this is not. Make another key for each request."),
    ),
    "too-many-members": Kind(
        422, _("Too many members"), _("The chat would have more members than its limit.")
    ),
    "too-many-blocked": Kind(
        422, _("Too many are blocked"), _("The limit of blocked people is reached. Unblock others first.")
    ),
    "too-fast": Kind(429, _("Too fast"), _("The header Retry-After says when to try again.")),
    "row-not-loaded": Kind(
        503,
        _("The row is being loaded"),
        _("The database has not answered in time. The header Retry-After says when to try again."),
    ),
    "redis-unavailable": Kind(
        503, _("Redis does not answer"), _("Everything that was accepted is safe. Try again later.")
    ),
}

#: The kind of problem for each exception of the services. requests.py has checked most values before.
_RAISED: dict[type[Exception], str] = {
    exceptions.ChatNotFound: "chat-not-found",
    exceptions.MessageNotFound: "message-not-found",
    exceptions.NotAMember: "member-not-found",
    exceptions.BookNotFound: "book-not-found",
    exceptions.ChatExists: "chat-exists",
    exceptions.ChatClosed: "chat-closed",
    exceptions.MailboxFull: "mailbox-full",
    exceptions.NotAllowed: "not-allowed",
    exceptions.Muted: "muted",
    exceptions.Blocked: "blocked",
    exceptions.InvalidMessage: "invalid-message",
    exceptions.ClientIdReused: "idempotency-key-reused",
    exceptions.InvalidName: "invalid-value",
    exceptions.InvalidValue: "invalid-value",
    exceptions.TooManyMembers: "too-many-members",
    exceptions.TooManyBlocked: "too-many-blocked",
    exceptions.TooManyChats: "too-many-chats",
    exceptions.TooFast: "too-fast",
    exceptions.RowNotLoaded: "row-not-loaded",
    exceptions.RedisUnavailable: "redis-unavailable",
    BadRequest: "malformed",
    MultiPartParserError: "malformed",
    SuspiciousOperation: "malformed",
}
RAISED = tuple(_RAISED)


@dataclass
class Problem(Exception):
    """A refusal of a request. It may be raised anywhere while the request is handled."""

    kind: str
    detail: str | Promise
    #: Further members of the answer.
    more: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


def problem_of(error: Exception) -> Problem:
    """Return the problem that describes an exception of a service or of Django to a client."""
    kind = next(_RAISED[each] for each in type(error).__mro__ if each in _RAISED)
    if isinstance(error, exceptions.TooFast):
        seconds = max(1, math.ceil(error.retry_after))
        return Problem(kind, str(error), headers={"Retry-After": str(seconds)})
    if isinstance(error, exceptions.RowNotLoaded):
        return Problem(kind, gettext("Try again in a second."), headers={"Retry-After": "1"})
    # The message of the exception would reveal facts about the server.
    if isinstance(error, exceptions.RedisUnavailable):
        detail = ngettext("Try again in %(count)s second.", "Try again in %(count)s seconds.", RETRY_AFTER)
        return Problem(kind, detail % {"count": RETRY_AFTER})
    if isinstance(error, TooManyFieldsSent):
        said = gettext("The query may have at most %(most)s fields.")
        return Problem(kind, said % {"most": grouped(settings.DATA_UPLOAD_MAX_NUMBER_FIELDS)})
    # Django's own messages name settings and paths of the server.
    return Problem(kind, KINDS[kind].title if kind == "malformed" else str(error))


def response_to(problem: Problem) -> HttpResponse:
    """Return the response that describes *problem* to a client."""
    kind = KINDS[problem.kind]
    told = {
        "type": reverse("components:api-problem", args=[problem.kind]),
        "title": kind.title,
        "status": kind.status,
        "detail": problem.detail,
        **problem.more,
    }
    return JsonResponse(told, status=kind.status, content_type=CONTENT_TYPE, headers=dict(problem.headers))


@without_transaction
def explain(request: HttpRequest, kind: str) -> HttpResponse:
    """Explain a type of problem to people, at the address that is the type."""
    if (found := KINDS.get(kind)) is None:
        return response_to(
            Problem("not-found", gettext("There is no type of problem %(kind)r.") % {"kind": kind})
        )
    return HttpResponse(
        f"{found.status} {found.title}. {found.explanation}\n", content_type="text/plain; charset=utf-8"
    )
