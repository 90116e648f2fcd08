"""How numbers, durations, sizes, names and JSON are written, on pages and in sentences."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

from django.template.defaultfilters import filesizeformat
from django.utils.formats import number_format
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

#: Units of time, by the name that they have in code.
UNITS = {
    "d": _("%(number)s d"),
    "h": _("%(number)s h"),
    "min": _("%(number)s min"),
    "s": _("%(number)s s"),
    "ms": _("%(number)s ms"),
    "µs": _("%(number)s µs"),
}
_LONGEST_CALL = 200
_SIZES = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def duration(seconds: float | None) -> str:
    """Write 3725 as "1 h 2 min": the two largest units; tenths below ten seconds, milliseconds below one."""
    if seconds is None:
        return "\N{EN DASH}"
    if 0 < seconds < 1:
        return measured(round(seconds * 1000), "ms")
    if seconds < 10:
        return measured(round(seconds, 1), "s")
    whole = int(seconds)
    for (size, unit), (smaller, smaller_unit) in pairwise(_SIZES):
        if whole >= size:
            larger = measured(whole // size, unit)
            rest = whole % size // smaller
            return f"{larger} {measured(rest, smaller_unit)}" if rest else larger
    return measured(whole, "s")


def measured(number: float, unit: str) -> str:
    """Write a number with a unit of time, and without a fraction of zero: 1.0 and "s" as "1 s"."""
    return str(UNITS[unit]) % {"number": amount(number)}


def took(seconds: float | None) -> str:
    """Write a duration as duration() does, but below ten milliseconds with two places: 0.00031 as "0.31 ms"."""
    if seconds is None or seconds >= 0.01:
        return duration(seconds)
    return measured(round(seconds * 1000, 2), "ms")


def since(later: datetime | None, earlier: datetime | None) -> str:
    """Write the time from *earlier* to *later*; a dash if either is unknown."""
    return duration(max((later - earlier).total_seconds(), 0.0) if later and earlier else None)


def memory(size: int | None) -> str:
    """Write a number of bytes as "1.2 KB"."""
    return "\N{EN DASH}" if size is None else filesizeformat(size)


def grouped(number: int) -> str:
    """Write 1234567 as "1,234,567", in the format of the active language."""
    return number_format(number, force_grouping=True)


def rounded(number: float) -> str:
    """Write 1234.5 as "1,234", for figures whose fractions do not matter."""
    return grouped(round(number))


def amount(number: float) -> str:
    """Write a figure with at most two places: 1234.0 as "1,234", 0.125 as "0.13"."""
    rounded = round(number, 2)
    return number_format(int(rounded) if rounded == int(rounded) else rounded, force_grouping=True)


def pretty_json(value: Any) -> str:
    """Write *value* as indented JSON."""
    return _dumped(value, indent=2)


def compact_json(value: Any) -> str:
    """Write *value* as JSON in one line."""
    return _dumped(value)


def called(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Write the arguments of a call: [9] and {"to": "Jill"} as '9, to="Jill"'. Of long ones, write the start."""
    given = ", ".join([*map(_dumped, args), *(f"{name}={_dumped(value)}" for name, value in kwargs.items())])
    return given if len(given) <= _LONGEST_CALL else f"{given[:_LONGEST_CALL]}\N{HORIZONTAL ELLIPSIS}"


def _dumped(value: Any, indent: int | None = None) -> str:
    try:
        return json.dumps(value, indent=indent, ensure_ascii=False)
    except RecursionError:
        return gettext("(It is nested too deeply to be shown.)")


def legible(text: str) -> str:
    """
    Return *text* with invisible characters escaped, such as a line feed as \n: control characters, marks that change
    the direction of text, and spaces at the ends.
    """
    start, end = len(text) - len(text.lstrip(" ")), len(text.rstrip(" "))
    return "".join(
        char if char.isprintable() and start <= at < end else _written_out(char)
        for at, char in enumerate(text)
    )


def _written_out(char: str) -> str:
    return r"\x20" if char == " " else char.encode("unicode_escape").decode()


def shortened(name: str) -> str:
    """Return *name* for a list: of a very long one, the start and the end."""
    return name if len(name) <= 100 else f"{name[:60]}\N{HORIZONTAL ELLIPSIS}{name[-39:]}"


def mean(total: float, count: int) -> float | None:
    """Return the mean; None of nothing."""
    return total / count if count else None
