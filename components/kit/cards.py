"""
Cards: what services contribute to the overview of the control room.

A service has a module card.py. In it, card() is a reading, as gauges() of figures.py is one: it yields lists of Asks,
gets the answers, and returns a Card. PAST names the counter of what the service did lately; None if there is none.
Pages are named as the service's admin names them. What a card has to say takes the same room however much there is.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from django.utils.functional import Promise

from components.kit.figures import Reading

#: Things of one kind that have a line of their own; one more line counts the others.
MOST_LINES = 3


class Link:
    """A page of the service's admin, or the page of one of its verbs, which not everybody may open."""

    def __init__(self, page: str, label: str | Promise, **query: str) -> None:
        self.page, self.label, self.query = page, label, query


@dataclass(frozen=True)
class Line:
    """Something that needs attention."""

    #: One sentence that says what is wrong, and of what.
    said: str
    #: The page that shows it; None for the first page of the service.
    page: Link | None = None
    #: The verb that mends it.
    mend: Link | None = None
    #: The command that mends it.
    command: str = ""
    #: What to do, in a sentence, if it is neither a verb nor a command.
    advice: str = ""
    #: Whether something does not work; else it is a warning.
    is_serious: bool = True


@dataclass(frozen=True)
class Badge:
    """A few words beside the name of the service in the admin's index."""

    text: str
    is_serious: bool = True


@dataclass(frozen=True)
class Past:
    """The counter of what a service did lately, and a lazy text about it, with *number*, *count* and *span*."""

    counter: str
    said: Any


@dataclass
class Card:
    """The state of a service: one figure and what it counts, and facts that have a name and a value."""

    figure: int
    unit: str
    facts: Sequence[tuple[str, str]] = ()
    lines: list[Line] = field(default_factory=list)
    badges: list[Badge] = field(default_factory=list)
    #: Further pages, which answer what people often ask.
    links: Sequence[Link] = ()


CardReading: TypeAlias = Reading[Card]


def and_more(lines: Sequence[Line], things: Sized, more: Line) -> list[Line]:
    """Return the *lines* of the first of *things*, and *more*, which counts the others, if there are any."""
    return [*lines, *([more] if beyond(things) else [])]


def beyond(things: Sized) -> int:
    """Return how many of *things* have no line of their own."""
    return max(0, len(things) - MOST_LINES)
