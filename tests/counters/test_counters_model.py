"""Whatever is counted when, and whatever is asked for: the answer is that of a list of events, added up in Python."""

import math
from collections import Counter as Tally
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redis import Redis

from components.exceptions import InvalidValue
from components.services.counters import Counter, CounterReader, Ranked, Series
from components.services.counters.precisions import Plan, plan
from tests.support.counters import count_at, seconds

PRECISIONS = (1, 5, 60, 300, 3_600, 18_000, 86_400)
NAMES = ("hits:/a", "hits:/b", "hits:/c")
#: Seconds ago, of which many lie near the ends of slices, and of what is kept.
AGES = st.one_of(
    *[
        st.builds(
            lambda slices, more, p=p: max(0, slices * p + more), st.integers(0, 121), st.integers(-2, 2)
        )
        for p in PRECISIONS
    ]
)
EVENTS = st.lists(st.tuples(st.sampled_from(NAMES), AGES, st.integers(-3, 2**40)), max_size=40)

anything_goes = settings(max_examples=60)
Event = tuple[str, int, int]


def store(redis: Redis, events: list[Event]) -> tuple[int, list[Event]]:
    """The server's now, and the events with the seconds at which they were."""
    redis.flushall()
    now = seconds(redis)
    for name in NAMES:
        Counter(name).update(0)  # by which it is known
    dated = [(name, now - age, count) for name, age, count in events]
    for name, at, count in dated:
        count_at(redis, name, at, count)
    return now, dated


def at(second: float) -> datetime:
    return datetime.fromtimestamp(second, UTC)


def check(series: Series, events: list[Event], precision: int) -> None:
    expected: Tally[int] = Tally()
    for name, second, count in events:
        if name == series.name:
            expected[second // precision] += count
    slices = [int(sample.at.timestamp()) // precision for sample in series]
    assert [sample.count for sample in series] == [expected[each] for each in slices]
    assert slices == list(range(slices[0], slices[0] + len(slices)))
    assert series.total == sum(expected[each] for each in slices)


@anything_goes
@given(EVENTS, st.sampled_from(PRECISIONS))
def test_the_last_samples_are_those_of_the_events(redis: Redis, events: list[Event], precision: int) -> None:
    now, dated = store(redis, events)

    found = CounterReader().read(NAMES, precision)

    for series in found.values():
        assert len(series) == 120
        assert now // precision <= int(series[-1].at.timestamp()) // precision <= (now + 60) // precision
        check(series, dated, precision)


@anything_goes
@given(EVENTS, st.sampled_from(PRECISIONS), AGES, AGES)
def test_any_time_is_answered_or_refused(
    redis: Redis, events: list[Event], precision: int, since: int, until: int
) -> None:
    now, dated = store(redis, events)
    kept = plan().slices(precision)
    first, end = now - since, now - until
    if first >= end or (now - first) // precision >= kept - 60 // precision - 2:
        with suppress(InvalidValue):  # at the end of what is kept, a second makes the difference
            check(Counter(NAMES[0]).get(precision, since=at(first), until=at(end)), dated, precision)
        return

    series = Counter(NAMES[0]).get(precision, since=at(first), until=at(end))

    assert series.since == at(first // precision * precision)
    assert len(series) == math.ceil(end / precision) - first // precision
    check(series, dated, precision)


@anything_goes
@given(EVENTS, st.sampled_from(PRECISIONS), AGES)
def test_the_first_of_a_family_are_those_of_the_events(
    redis: Redis, events: list[Event], precision: int, since: int
) -> None:
    now, dated = store(redis, events)
    try:
        ranked = CounterReader().top("hits", 2, precision=precision, since=at(now - since))
    except InvalidValue:
        assert since // precision >= plan().slices(precision) - 60 // precision - 2
        return

    first = (now - since) // precision
    sums = dict.fromkeys(NAMES, 0)
    for name, second, count in dated:
        if second // precision >= first:
            sums[name] += count
    expected = sorted(sums.items(), key=lambda each: (-each[1], each[0]))[:2]
    assert ranked == [Ranked(name, count) for name, count in expected]


@pytest.mark.parametrize("samples", [1, 7, 120, 500])
def test_as_many_samples_as_the_settings_say_are_kept(samples: int) -> None:
    chosen = Plan(PRECISIONS, samples)

    for precision in PRECISIONS:
        stored = chosen.made_of[precision]
        assert precision % stored == 0
        assert precision // stored <= 24
        assert chosen.slices(precision) >= samples
