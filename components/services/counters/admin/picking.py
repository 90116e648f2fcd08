"""
The query of a page of charts: counters, families and a time.

An instant without a zone is in the user's time zone, since the browser's date picker writes it so. Invalid input
raises an error only when it is used, so that the form is still shown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from django.http import HttpRequest
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from components.control_room.pages import number_in
from components.exceptions import InvalidValue
from components.formatting import grouped, legible
from components.kit.decoding import typed_instant
from components.services.counters import Mark, Series
from components.services.counters.charts import Span, offered_spans
from components.services.counters.charts.figures import MOST_LINES
from components.services.counters.charts.spans import MOST_SLICES
from components.services.counters.precisions import plan
from components.services.counters.series import split_families

_FROM = _("From is %(text)r; it must be a date and a time, as 2026-01-31T12:00.")
_UNTIL = _("Until is %(text)r; it must be a date and a time, as 2026-01-31T12:00.")


@dataclass(frozen=True)
class Choice:
    """Counters, and families as one line each."""

    names: Sequence[str]
    families: Sequence[str]

    @classmethod
    def of(cls, request: HttpRequest) -> Choice:
        """Return the counters and families of the address, and what was typed, each once. "tasks:*" is a family."""
        typed = request.GET.get("add", "").strip()
        names, meant = split_families([*request.GET.getlist("counter"), typed])
        families = [*request.GET.getlist("family"), *meant]
        return cls(*([each for each in dict.fromkeys(some) if each] for some in (names, families)))

    @property
    def size(self) -> int:
        return len(self.names) + len(self.families)

    @property
    def query(self) -> str:
        pairs = [("counter", name) for name in self.names] + [("family", family) for family in self.families]
        return urlencode(pairs)

    @property
    def title(self) -> str:
        if not self.size:
            return gettext("Compare counters")
        if self.size == 1 and self.names:
            return gettext("Counter %(counter)s") % {"counter": legible(self.names[0])}
        if self.size == 1:
            return gettext("Family %(family)s") % {"family": legible(self.families[0])}
        if self.names:
            words = ngettext("%(count)s counter", "%(count)s counters", self.size)
        else:
            words = ngettext("%(count)s family", "%(count)s families", self.size)
        return words % {"count": grouped(self.size)}

    @property
    def filename(self) -> str:
        first = re.sub(r"[^A-Za-z0-9]+", "-", [*self.names, *self.families, ""][0]).strip("-")
        return f"counters-{first[:60] or 'unnamed'}.csv"

    def lines(self, span: Span, most: int) -> tuple[list[Series], list[Mark]]:
        """
        Return the lines, and the marks of their time. Raises InvalidValue for more than *most* lines, or more
        families than a chart has lines, and the errors of Span.
        """
        if self.size > most:
            wrong = gettext("These are %(count)s lines; there is room for %(most)s.")
            raise InvalidValue(wrong % {"count": grouped(self.size), "most": grouped(most)})
        if len(self.families) > MOST_LINES:
            wrong = gettext("These are %(count)s families; there is room for %(most)s.")
            raise InvalidValue(wrong % {"count": grouped(len(self.families)), "most": MOST_LINES})
        found, marks = span.lines(self.names, self.families)
        if len(found) > most:  # a family of events is a line for each of them
            wrong = gettext("These are %(count)s lines; there is room for %(most)s.")
            raise InvalidValue(wrong % {"count": grouped(len(found)), "most": grouped(most)})
        return found, marks


@dataclass(frozen=True)
class Picked:
    """The input of the form of a page of charts."""

    span: str = ""
    precision: str = ""
    since: str = ""
    until: str = ""

    @classmethod
    def of(cls, request: HttpRequest) -> Picked:
        return cls(*(request.GET.get(name, "").strip() for name in ("span", "precision", "from", "until")))

    def asked(self, most: int = MOST_SLICES) -> Span:
        """Return the chosen time. Raises InvalidValue."""
        precision = number_in(self.precision)
        if self.precision and precision is None:
            wrong = gettext("The precision is %(precision)r; it must be a whole number of seconds.")
            raise InvalidValue(wrong % {"precision": self.precision})
        since, until = _instant(self.since, _FROM), _instant(self.until, _UNTIL, is_end=True)
        if until and not since:
            raise InvalidValue(gettext("The end of the time is given, but not its beginning."))
        return Span(self.seconds, since, until, precision, most)

    @property
    def seconds(self) -> int:
        """The length of a time that ends now; not used if there is an instant. Raises InvalidValue."""
        if not self.span:
            offered = offered_spans()
            return Span.seconds if Span.seconds in offered else offered[-1]
        if (found := number_in(self.span)) is None:
            wrong = gettext("The time is %(time)r; it must be a whole number of seconds.")
            raise InvalidValue(wrong % {"time": self.span})
        return found

    @property
    def given(self) -> dict[str, str]:
        """The input, by the names of the fields."""
        pairs = {"span": self.span, "precision": self.precision, "from": self.since, "until": self.until}
        return {name: value for name, value in pairs.items() if value}

    @property
    def query(self) -> str:
        """The query for another page about the same time."""
        return f"&{urlencode(self.given)}" if self.given else ""

    @property
    def local_since(self) -> str:
        return _local(self.since)

    @property
    def local_until(self) -> str:
        return _local(self.until)

    @property
    def offered(self) -> Sequence[tuple[int, bool]]:
        """The times to choose from, and whether each is chosen."""
        chosen = number_in(self.span) if self.span else self.seconds
        return [(each, each == chosen) for each in sorted({*offered_spans(), *([chosen] if chosen else [])})]

    @property
    def precisions(self) -> Sequence[tuple[int, bool]]:
        return [(each, str(each) == self.precision) for each in plan().precisions]


def _instant(text: str, wrong: Promise, *, is_end: bool = False) -> datetime | None:
    """Return the instant in UTC; None without input. Raises InvalidValue, which says *wrong*."""
    found = typed_instant(text, is_end=is_end)
    if text and found is None:
        raise InvalidValue(str(wrong) % {"text": text})
    return found


def _local(text: str) -> str:
    """Return an instant in the format of the browser's date picker; "" if it is not an instant."""
    found = typed_instant(text)
    return f"{timezone.localtime(found):%Y-%m-%dT%H:%M:%S}" if found else ""
