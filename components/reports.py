"""
Reports: what services say of themselves to the overview, to `manage.py doctor`, to /metrics and to the search of the
control room. Nothing that reads them knows a service by name.

A service has a module report.py. Its functions are readings: they yield lists of Asks, get the answers, and return
what they made of them, so all services together take one round trip to each node. Each is there if the service has
something to say:

- card() returns a Card: the state, and lines about what needs attention;
- PAST names the counter of what the service did lately;
- EVENTS says which sums of counted events are figures of /metrics, and gauges() returns further Families;
- find(text) returns what Ctrl-K finds: those that were used last of a bounded number, and the one that is the text;
- examine() yields findings of the doctor that take more than a reading.

Pages are named as the service's admin names them. What a card has to say takes the same room however much there is.
"""

import string
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeAlias, TypeVar

from django.core.checks import CheckMessage, Error, Warning
from django.utils.functional import Promise
from django.utils.text import capfirst
from django.utils.translation import gettext, ngettext

from components import models
from components.formatting import duration, grouped, legible
from components.kit.decoding import text_of
from components.kit.readings import Ask, Reading
from components.kit.scripts import Script

FIND = Script("kit/find")

#: The folder of each service that has a report, by the anchor of its pages, in the order of the cards.
_FOLDERS: dict[type[models.Anchor], str] = {
    models.Queue: "queues",
    models.CachedRow: "rows",
    models.Lock: "locks",
    models.Semaphore: "semaphores",
    models.RateLimit: "rates",
    models.LogJob: "logs",
    models.Chat: "chat",
    models.Mailbox: "mailboxes",
    models.AddressBook: "autocomplete",
    models.Counter: "counters",
}
#: Things of one kind that have a line of their own; one more line counts the others.
MOST_LINES = 3
#: The longest text that is looked for: no name is longer.
MOST_TEXT = 500
#: Things of one kind that are found.
MOST_FOUND = 5
#: The things of a bucket that are looked at for waiting callers: what is held, or used last, up to a thousand in all.
MOST_WAITED_FOR = 32
#: Seconds that one may wait before somebody should look at it.
_PATIENCE = 10.0
#: The names that are looked at, in all buckets together.
_MOST = 10_000
_SMALL = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_T = TypeVar("_T")


@cache
def reports() -> dict[type[models.Anchor], Any]:
    """Return the report of each service, by the anchor of its pages."""
    return {model: import_module(f"components.services.{name}.report") for model, name in _FOLDERS.items()}


class Link:
    """A page of the service's admin, or the page of one of its verbs, which not everybody may open."""

    def __init__(self, page: str, label: str | Promise, **query: str) -> None:
        self.page, self.label, self.query = page, label, query


@dataclass(frozen=True)
class Line:
    """Something that needs attention."""

    #: By which the doctor knows it, and SILENCED_SYSTEM_CHECKS: "E112" is components.E112.
    id: str
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

    @property
    def is_serious(self) -> bool:
        """Whether something does not work; else it is a warning."""
        return self.id.startswith("E")


def finding_of(line: Line, page: str) -> CheckMessage:
    """Return the line as the doctor says it; *page* is the name of the service's page in the admin."""
    link = line.mend or line.page
    on_the_page = f'On the page {capfirst(page)} of the admin: "{link.label}".' if link else ""
    hint = f"Run `{line.command}`." if line.command else line.advice or on_the_page
    return (Error if line.is_serious else Warning)(line.said, hint=hint, id=f"components.{line.id}")


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
    #: Further pages, which answer what people often ask.
    links: Sequence[Link] = ()


CardReading: TypeAlias = Reading[Card]


def lines_about(things: Sequence[_T], line: Callable[[_T], Line]) -> list[Line]:
    """Return the lines of the first *things*, and one that counts the others."""
    lines = [line(thing) for thing in things[:MOST_LINES]]
    if number := len(things[MOST_LINES:]):
        said = ngettext(
            "There is %(count)s more of this kind.", "There are %(count)s more of this kind.", number
        )
        lines.append(Line(lines[0].id, said % {"count": grouped(number)}))
    return lines


class Contended(NamedTuple):
    """Something that callers wait for."""

    name: str
    waiting: int
    #: Seconds that the first has waited.
    waited: float
    #: The token of its holder, if the service says it.
    token: str


def card_of_waits(
    asks: Sequence[Ask],
    unit: Callable[[int], str],
    waiting: str,
    line: Callable[[Contended], Line],
) -> CardReading:
    """
    Count things, and find those that somebody has waited for too long. Each answer is their number; and of each that
    is waited for its name, the token of its holder, how many wait, and the microseconds that the first has waited.
    """
    answers = yield asks
    number = sum(int(answer[0]) for answer in answers)
    contended = [
        Contended(text_of(name), waiting, int(waited) / 1e6, token.decode(errors="surrogateescape"))
        for _number, *found in answers
        for name, token, waiting, waited in zip(*[iter(found)] * 4, strict=True)
    ]
    stuck = sorted((each for each in contended if each.waited >= _PATIENCE), key=lambda each: -each.waited)
    facts = [
        (waiting, grouped(sum(each.waiting for each in contended))),
        (gettext("Longest wait"), duration(max((each.waited for each in contended), default=None))),
    ]
    return Card(number, unit(number), facts, lines_about(stuck, line))


@dataclass(frozen=True)
class Found:
    """Something that was found: its page, whose label is the thing's name."""

    page: Link
    #: What it is, if not what the service's pages are about.
    kind: str = ""


FinderReading: TypeAlias = Reading[list[Found]]


def finder_of(page: str, argument: str, keys: Callable[[], Sequence[str]]) -> Callable[[str], FinderReading]:
    """Return a find() for the names in the sorted sets at *keys*; each has a *page*, which it is an *argument* of."""

    def find(text: str) -> FinderReading:
        answers = yield ask_names(keys(), text)
        return [Found(Link(page, legible(name), **{argument: name})) for name in best_of(answers, text)]

    return find


def ask_names(keys: Sequence[str], text: str, *, starts: Sequence[str] = ()) -> list[Ask]:
    """Return the questions for the names in the sorted sets at *keys*; *starts* is what precedes them in each."""
    request = {"wanted": small(text), "exact": text, "most": _MOST // len(keys), "limit": MOST_FOUND}
    return [
        Ask(key, partial(FIND.put, keys=SimpleNamespace(names=key), start=start, **request))
        for key, start in zip(keys, starts or [""] * len(keys), strict=True)
    ]


def best(names: Iterable[str], text: str) -> list[str]:
    """Return the names that contain *text*, at most MOST_FOUND: that name first, then those that begin with it."""
    wanted = small(text)
    found = {name for name in names if wanted in small(name)}

    def order(name: str) -> tuple[bool, bool, str]:
        return name != text, not small(name).startswith(wanted), name

    return sorted(found, key=order)[:MOST_FOUND]


def best_of(answers: Iterable[Iterable[bytes]], text: str) -> list[str]:
    """Return the best of the answers to ask_names()."""
    return best((text_of(name) for answer in answers for name in answer), text)


def small(text: str) -> str:
    """Return *text* with small letters, but for letters beyond ASCII, which scripts cannot change."""
    return text.translate(_SMALL)
