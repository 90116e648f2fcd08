"""The history of a chat as a page shows it: messages unchanged, events as sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from components.people.person import Person, persons
from components.services.chat import ChatMessage, Event, EventKind
from components.templatetags.control_room import legible

#: The sentence for each kind of event, with placeholders for the actor, the person concerned, and the detail.
TOLD: Mapping[EventKind, str] = {
    EventKind.CREATED: "{by} made the chat",
    EventKind.JOINED: "{by} added {user}",
    EventKind.LEFT: "{user} left",
    EventKind.KICKED: "{by} kicked {user}",
    EventKind.BLOCKED: "{by} blocked {user}",
    EventKind.UNBLOCKED: "{by} unblocked {user}",
    EventKind.ROLE: "{by} made {user} {detail}",
    EventKind.MUTED: "{by} muted {user}",
    EventKind.UNMUTED: "{by} unmuted {user}",
    EventKind.DELETED: "{by} deleted message {detail}",
    EventKind.ERASED: "The messages of {user} were erased",
    EventKind.RENAMED: "{by} renamed the chat: {detail}",
    EventKind.CONFIGURED: "{by} changed the settings",
    EventKind.CLOSED: "{by} closed the chat",
    EventKind.REOPENED: "{by} opened the chat again",
}
ON_THEIR_OWN = "{user} joined"


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
    if event.kind is EventKind.JOINED and event.by == event.user:
        sentence = ON_THEIR_OWN
    by = known.get(event.by, "The system")
    return sentence.format(by=by, user=known.get(event.user, by), detail=legible(event.detail))
