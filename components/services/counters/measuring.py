"""
counted and timed count calls of a function or block; tally() and took() are for events of this app's own services.

All of them add in the memory of this process, as count() does. The name "pay:card" has related counters:
"pay-errors:card" for calls that raised an error, and "pay-us:card" for the microseconds that all calls took, with a
histogram of them (histograms.py).
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import lru_cache, wraps
from inspect import isawaitable
from time import perf_counter_ns
from typing import Any, NamedTuple, Self, TypeVar

from components.conf import conf
from components.kit.calls import is_awaited, is_generator, name_of
from components.kit.validation import check_name
from components.services.counters.additions import SUMMED, count_of, of_duration
from components.services.counters.buffer import add_up, measure, measure_valid
from components.services.counters.buffer import count as add

_F = TypeVar("_F", bound=Callable[..., Any])

_MOST = 200  # things that one event is counted of by name in a process; that of others goes to "others"

_MAX_OF = 400  # characters of such a name; the name of a counter may have 500


class _Names(NamedTuple):
    """What an event of a thing adds to: counters of how often and of how long, and sums."""

    often: list[str]
    long: list[str]
    summed: list[tuple[str, int]]
    #: The name of the thing, or "others".
    of: str


#: By the event, and by what it was of.
_names: dict[str, dict[str, _Names]] = {}

#: A part of a name that tells one thing of many from the others: a number, a UUID, a digest.
_ONE_OF_MANY = re.compile(r"(?<![^:/])(?=[^:/]*\d)(?:\d+|[0-9a-fA-F-]{8,})(?![^:/])")


def beside(name: str, what: str) -> str:
    """Return the name of a related counter: "pay-us:card" for "pay:card" and "us"."""
    family, colon, member = name.partition(":")
    return f"{family}-{what}{colon}{member}"


class counted:  # noqa: N801  (used as a decorator and in a with statement)
    """
    Count under *name* how often a function is called, or a block entered; under "<name>-errors" how often it raised.

        @counted("mails")
        def send(...): ...

        with counted("imports"): ...
    """

    def __init__(self, name: str) -> None:
        self._name = check_name("counter", name)
        self._errors = check_name("counter", beside(name, "errors"))

    def __call__(self, function: _F) -> _F:
        if is_generator(function):
            raise TypeError(
                f"{name_of(function)} is a generator: it runs after its call has returned. Use a with block in it."
            )

        async def until_done(call: _Call, result: Any) -> Any:
            with call:
                return await result

        @wraps(function)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            return await until_done(_Call(self), function(*args, **kwargs))

        @wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            with _Call(self) as call:
                result = function(*args, **kwargs)
                call.goes_on = isawaitable(result)
            return until_done(call, result) if call.goes_on else result

        return awaited if is_awaited(function) else called  # type: ignore[return-value]

    def __enter__(self) -> Self:
        _entered.set((*_entered.get(), _Call(self)))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        # An exit stack may leave a block elsewhere than it was entered; then nobody knows when it began.
        entered = _entered.get()
        latest = next((each for each in reversed(entered) if each.of is self), None) or _Call(self)
        _entered.set(tuple(each for each in entered if each is not latest))
        latest.__exit__(kind, error, trace)

    def note(self, nanoseconds: int, kind: type[BaseException] | None) -> None:
        add(self._name)
        if kind is not None and issubclass(kind, Exception):
            add(self._errors)


class timed(counted):  # noqa: N801  (as counted)
    """Count the same as counted, and under "<name>-us" how many microseconds the calls took."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._microseconds = check_name("counter", beside(name, "us"))

    def note(self, nanoseconds: int, kind: type[BaseException] | None) -> None:
        measure(self._microseconds, nanoseconds // 1_000)
        super().note(nanoseconds, kind)


class _Call:
    """One call, or one block. One that *goes_on* when its with block ends is noted when the next one ends."""

    def __init__(self, of: counted) -> None:
        self.of, self._began, self.goes_on = of, perf_counter_ns(), False

    def __enter__(self) -> Self:
        self.goes_on = False
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if not self.goes_on:
            self.of.note(perf_counter_ns() - self._began, kind)


#: The blocks that this thread or coroutine is in; many may enter one object.
_entered: ContextVar[tuple[_Call, ...]] = ContextVar("components_counted", default=())


def tally(event: str, count: int = 1, *, of: str = "", seconds: float | None = None) -> None:
    """
    Count an event of a service: "tasks:failed", and *of* "mail" as "tasks-failed:mail" as well.

    With *seconds*, the duration is added to "tasks-us:mail", in microseconds. Nothing happens if *count* is 0, or
    unless COMPONENTS["COUNT_SERVICES"] is True, because counting starts a thread in the process and a handler of
    SIGTERM. COMPONENTS["METRICS"] adds the event to the sums of /metrics. docs/counters.md has the table of events.
    """
    settings = conf()
    if not count or not (settings.metrics or settings.count_services):
        return
    names = _names_of(event, of)
    if settings.metrics:
        add_up((names.summed, count))
    if settings.count_services:
        lasted = [] if seconds is None else [(names.long, int(seconds * 1_000_000))]
        add_up((names.often, count), *lasted)


def sum_up(event: str, count: int = 1, *, of: str = "") -> None:
    """Add to the sum of an *event* of the thing *of*."""
    if conf().metrics:
        add_up((_names_of(event, of).summed, count))


def observe(event: str, seconds: float, *, of: str = "") -> None:
    """Add a duration to the histogram of an *event* of the thing *of*."""
    if conf().metrics:
        added = of_duration(event, seconds, _names_of(event, of).of)
        add_up(*(([(name, SUMMED)], number) for name, number in added))


def took(event: str, seconds: float, *, of: str) -> None:
    """
    Measure how long an event of a service took: "runs" *of* "mail.send" as "runs-us:mail.send", in microseconds.
    Nothing happens unless COMPONENTS["COUNT_SERVICES"] is True.
    """
    if conf().count_services:
        names = _names_of(event, of)
        measure_valid(names.long[0], int(seconds * 1_000_000) if seconds > 0 else 0)


@lru_cache(maxsize=4_096)
def pattern_of(name: str) -> str:
    """Return the name with an asterisk in place of its number, so that item:42 and item:43 are measured as one."""
    return _ONE_OF_MANY.sub("*", name)


def name_of_times(event: str, of: str) -> str:
    """Return the name of the counter into which took() measures: "runs-us:mail.send" for "runs" of "mail.send"."""
    return f"{beside(event, 'us')}:{of[:_MAX_OF]}"


def tally_each(event: str, names: Sequence[str]) -> None:
    """Count the *event* of each of these."""
    if conf().count_services or conf().metrics:
        # A Counter takes a microsecond.
        numbers = Counter(names) if len(names) > 1 else dict.fromkeys(names, 1)
        for name, count in numbers.items():
            tally(event, count, of=name)


def _names_of(event: str, of: str) -> _Names:
    known = _names.setdefault(event, {})
    if found := known.get(of):
        return found
    if of and len(known) >= _MOST:
        of = "others"
    service, _colon, what = event.partition(":")
    member = f"{service}:{of[:_MAX_OF]}"
    counters = [event, beside(member, what)] if of else [event]
    found = _Names(counters, [beside(member, "us")] if of else [], [(count_of(event, of), SUMMED)], of)
    return known.setdefault(of, found)
