"""The history of a chat as a page shows it: messages unchanged, events as sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from components.people.person import Person, persons
from components.services.chat import ChatMessage, Event, EventKind
from components.services.chat.page import texts
from components.templatetags.control_room import legible

#: The sentence for each kind of event, with placeholders for the actor, the person concerned, and the detail.
TOLD: Mapping[EventKind, Promise] = {
    **{kind: told for kind, (told, _by_nobody) in texts.TOLD.items()},
    EventKind.ROLE: _("%(by)s changed the role of %(user)s: %(detail)s"),
    EventKind.DELETED: _("%(by)s deleted message %(detail)s"),
    EventKind.RENAMED: _("%(by)s renamed the chat: %(detail)s"),
    EventKind.REOPENED: _("%(by)s opened the chat again"),
}
ON_THEIR_OWN = _("%(user)s joined")


@dataclass(frozen=True)
class Line:
    """A message or an event as the page shows it."""

    message: ChatMessage
    #: The sender; None for an event.
    person: Person | None
    mentions: str
    #: The sentence of an event.
    told: str


def transcript(messages: Sequence[ChatMessage]) -> list[Line]:
    """Return the lines for *messages*. One query fetches all names."""
    known = persons(id for message in messages for id in message.people)
    return [
        Line(
            message,
            known.get(message.sender),
            ", ".join(str(known[user]) for user in message.mentions),
            _told(message.event, known) if message.event else "",
        )
        for message in messages
    ]


def _told(event: Event, known: Mapping[str, Person]) -> str:
    sentence = TOLD[event.kind]
    if event.kind is EventKind.ROLE:
        sentence = texts.MADE.get(event.detail, (sentence,))[0]  # newer releases may have others
    if event.kind is EventKind.JOINED and event.by == event.user:
        sentence = ON_THEIR_OWN
    by = known.get(event.by, gettext("The system"))
    return str(sentence) % {"by": by, "user": known.get(event.user, by), "detail": legible(event.detail)}
