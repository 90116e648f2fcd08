"""
Additions: the calls that add to counters and to sums, and the sources that number them, so that each counts once.

Counters are in buckets, so that one call adds to many of them. Each bucket has an index of their names, ordered by
when each was last seen.

Sums say how often an event happened since the beginning, and how long it took, for /metrics: a monitoring system asks
again and again for sums that only grow. One hash has them all, so one command reads them. They are sent with counts
(buffer.py), if COMPONENTS["METRICS"] is True.

A source has at most one call in flight, and Redis stores the number of its last call for an hour. A forked child has
its own sources.
"""

import secrets
from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple, TypeAlias

from components.exceptions import CountRefused, InvalidValue
from components.kit.decoding import number_of, text_of
from components.kit.forking import in_child, notice
from components.kit.keyspace import bucket, parts
from components.kit.scripts import Call, Script
from components.services.counters.keys import SourceKeys, SumKeys, SumSourceKeys
from components.services.counters.precisions import plan
from components.services.counters.series import is_time

ADD = Script("counters/add")

#: What is added to: a counter; a bucket of its histogram; or a field of the sums, with SUMMED in place of the bucket.
Target: TypeAlias = str | tuple[str, int]
SUMMED = -1

#: Lua counts exactly up to this number; slots stop here.
MAX_COUNT = 2**53 - 1
#: Seconds after which an unanswered call is not sent again, because Redis may have forgotten its number.
PATIENCE = 1_800
_BATCH = 500  # the most counters in a call, which takes the server a few milliseconds


class Source:
    """Sends to the bucket *tag*, or to the sums, one call at a time."""

    def __init__(self, tag: str) -> None:
        self.tag, self.id = tag, secrets.token_hex(8)
        self.script: Script = SUM if tag == TAG else ADD
        #: The keys of the script, made once because each update needs them.
        self.keys, self._own = self.script.contract.keys_of(self._named, {}), self._named.source
        self._number = 0

    @property
    def _named(self) -> SourceKeys | SumSourceKeys:
        return (SumSourceKeys if self.script is SUM else SourceKeys)(self.tag, self.id)

    @property
    def is_valid(self) -> bool:
        """Return whether its keys are those of the settings: their prefix is one."""
        return self._own == self._named.source

    def next_number(self) -> int:
        self._number += 1
        return self._number


#: The sources without a call in flight, by bucket. A deque needs no lock.
_idle: defaultdict[str, deque[Source]] = defaultdict(deque)


def _take(tag: str) -> Source:
    """Return a source for a call to the bucket *tag*; Addition.is_over() gives it back."""
    notice()
    try:
        source = _idle[tag].pop()
    except IndexError:
        return Source(tag)
    return source if source.is_valid else Source(tag)


def forget() -> None:
    """Start over with new sources."""
    _idle.clear()


in_child(forget)


@dataclass(slots=True, eq=False)  # not frozen, which costs half a microsecond in each update
class Addition:
    """A call that adds to one bucket, or to sums. It counts once, however often it is sent before it is over."""

    source: Source
    call: Call
    #: The sums that it adds, to be reported if it is lost: of counts, and of microseconds.
    size: int
    microseconds: int
    #: The instant at which it was first sent, by components.kit.leases.clock().
    sent_at: float = 0.0

    @property
    def tag(self) -> str:
        return self.source.tag

    def check(self, answer: int) -> None:
        """Raise CountRefused if the script was ended by an error."""
        if not answer:
            raise CountRefused(
                f"A key of counters in the bucket {self.tag} holds something else; "
                "`manage.py cleancounters` removes it."
            )

    def is_over(self) -> None:
        """Give the source back: this was answered, or will not be sent again."""
        _idle[self.tag].append(self.source)


def addition(tag: str, counts: Iterable[tuple[Target, int]]) -> Addition:
    """Return a call that adds *counts* to counters of the bucket *tag*, and to their histograms."""
    source, sizes, chosen = _take(tag), {False: 0, True: 0}, plan()
    counted: list[str | int] = []
    measured: dict[str, str] = {}
    for target, count in counts:
        if isinstance(target, tuple):
            name, number = target
            measured[name] = f"{measured.get(name, '')}{number} {count} "
        else:
            counted += (target, count)
            sizes[is_time(target)] += abs(count)
    args = ADD.contract.args_of(
        {
            "call": source.next_number(),
            "plan": chosen.stored,
            "kept_histograms": chosen.stored_histograms if measured else "",
            "counted": counted,
            "measured": [*chain.from_iterable(measured.items())],
        }
    )
    return Addition(source, (source.keys, args), sizes[False], sizes[True])


def _of_sums(counts: Iterable[tuple[Target, int]]) -> Addition:
    source = _take(TAG)
    added = [Added(target[0], count) for target, count in counts]
    args = SUM.contract.args_of({"call": source.next_number(), "added": added})
    return Addition(source, (source.keys, args), 0, 0)


def name_of(target: Target) -> str:
    """Return the name of the counter that something is added to."""
    return target[0] if isinstance(target, tuple) else target


def is_summed(target: Target) -> bool:
    """Return whether something is added to the sums."""
    return isinstance(target, tuple) and target[1] == SUMMED


def tag_of(target: Target) -> str:
    """Return the tag of the keys that something is added to."""
    return TAG if is_summed(target) else bucket(name_of(target))


def additions(counts: Mapping[Target, int]) -> list[Addition]:
    """Return as few calls as can add all of *counts*."""
    by_bucket: defaultdict[str, list[tuple[Target, int]]] = defaultdict(list)
    for target, count in counts.items():
        by_bucket[tag_of(target)].append((target, max(-MAX_COUNT, min(MAX_COUNT, count))))
    calls = []
    for tag, pairs in by_bucket.items():
        for some in parts(pairs, _BATCH):
            calls.append(_of_sums(some) if tag == TAG else addition(tag, some))
    return calls


def check_count(count: object) -> int:
    """Return *count* if it is a valid count. Raises InvalidValue."""
    if type(count) is not int or not -MAX_COUNT <= count <= MAX_COUNT:
        raise InvalidValue(f"The count is {count!r}; it must be a whole number, between -2^53 and 2^53.")
    return count


SUM = Script("counters/sum")
TAG = "all"

#: The upper bounds of the buckets of a histogram, in seconds; the last bucket has none.
BOUNDS = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 30.0, 60.0, 300.0, 1_800.0)
_NAMES = (*(f"{bound:g}" for bound in BOUNDS), "+Inf")
_TIME = "us"  # stands for the sum of microseconds where a field names a bound


@dataclass
class Sum:
    """What is known of one event, of one thing."""

    count: int = 0
    #: Of a histogram: the number in each bucket by its upper bound, and the sum of seconds.
    buckets: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0


class Added(NamedTuple):
    """A field of the hash, and what is added to it."""

    name: str
    number: int


def count_of(event: str, of: str) -> str:
    """Return the field that counts an event of the thing *of*."""
    return f"{event}  {of}"


def of_duration(event: str, seconds: float, of: str) -> tuple[Added, Added]:
    """Return what a duration adds to the histogram of an event of the thing *of*."""
    bound = Added(f"{event} {_NAMES[bisect_left(BOUNDS, seconds)]} {of}", 1)
    return bound, Added(f"{event} {_TIME} {of}", max(0, round(seconds * 1e6)))


def read_sums(stored: Mapping[bytes, bytes]) -> dict[str, dict[str, Sum]]:
    """Return the sums in the hash by event, and by the thing that it was of."""
    found: defaultdict[str, defaultdict[str, Sum]] = defaultdict(lambda: defaultdict(Sum))
    for name, value in stored.items():
        event, bound, of = [*text_of(name).split(" ", 2), "", ""][:3]
        known, number = found[event][of], number_of(value)
        if bound == _TIME:
            known.seconds = number / 1e6
        elif bound:
            known.buckets[bound] = number
        else:
            known.count = number
    return {event: dict(sums) for event, sums in found.items()}


def cumulated(buckets: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return each bound, and how many durations were no longer, as Prometheus wants histograms."""
    total, found = 0, []
    for name in _NAMES:
        total += buckets.get(name, 0)
        found.append((name, total))
    return found


def sums_key() -> str:
    """Return the key of the hash with all sums."""
    return SumKeys(TAG).sums
