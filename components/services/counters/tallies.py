"""
tally(): what the services of this app count of themselves, in one line each where it happens.

It adds in the memory of this process, as count() does: Redis is asked nothing for an event, and nothing at all while
nothing happens. It is off unless COMPONENTS["COUNT_SERVICES"] is True: a process that does no more than use a service
has a thread then, and heeds SIGTERM. What is counted by name has few names (queues). docs/counters.md has the table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from components.conf import conf
from components.services.counters.buffers import count as add
from components.services.counters.measuring import beside

_MOST = 200  # things that one event is counted of by name in a process; that of others goes to "others"

#: The names of the counters of an event, by the event and what it was of: of how often, of how long.
_names: dict[tuple[str, str], tuple[list[str], list[str]]] = {}


def tally(event: str, count: int = 1, *, of: str = "", seconds: float | None = None) -> None:
    """
    Count the *event* "tasks:failed"; with *of*, "mail", as "tasks-failed:mail" as well. With *seconds*, what it took
    is added to "tasks-us:mail", in microseconds. Nothing is counted of 0.
    """
    if not count or not conf().count_services:
        return
    often, long = _names.get((event, of)) or _names_of(event, of)
    for name in often:
        add(name, count)
    if seconds is not None:
        for name in long:
            add(name, int(seconds * 1_000_000))


def tally_each(event: str, names: Sequence[str]) -> None:
    """Count the *event* of each of these."""
    if conf().count_services:
        numbers = (
            Counter(names) if len(names) > 1 else dict.fromkeys(names, 1)
        )  # a Counter takes a microsecond
        for name, count in numbers.items():
            tally(event, count, of=name)


def _names_of(event: str, of: str) -> tuple[list[str], list[str]]:
    if of and sum(known == event for known, _other in list(_names)) >= _MOST:
        of = "others"
    service, _colon, what = event.partition(":")
    member = f"{service}:{of}"
    found = ([event, beside(member, what)], [beside(member, "us")]) if of else ([event], [])
    return _names.setdefault((event, of), found)
