"""Counters: what was counted when, in slices of any precision, of one or of several; and what cleaning lets go."""

import asyncio
import math
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test.utils import override_settings
from redis import Redis

from components.exceptions import InvalidName, InvalidValue
from components.kit.keyspace import bucket
from components.services.counters import (
    Cleaned,
    Counter,
    CounterReader,
    Mark,
    Marks,
    Ranked,
    clean,
    count,
    counted,
    flush,
    marks,
    timed,
)
from components.services.counters.additions import MAX_COUNT
from components.services.counters.keys import CounterKeys, FamilyKeys
from components.services.counters.precisions import WINDOW, ask, plan
from components.services.locks import lock
from tests.support.counters import count_at, samples_key, seconds, stored
from tests.support.snapshots import snapshot

PRECISIONS = (1, 5, 60, 300, 3_600, 18_000, 86_400)


def at(second: float) -> datetime:
    return datetime.fromtimestamp(second, UTC)


def begin(redis: Redis, precision: int) -> int:
    """The second at which the slice began that is not yet over."""
    return seconds(redis) // precision * precision


@pytest.mark.parametrize("precision", PRECISIONS)
def test_an_update_counts_in_the_current_slice(redis: Redis, precision: int) -> None:
    before = seconds(redis)
    Counter("hits").update()
    Counter("hits").update(4)
    Counter("hits").update(-2)
    after = seconds(redis)

    series = Counter("hits").get(precision, fill="skip")

    assert series.total == sum(sample.count or 0 for sample in series) == 3
    assert before // precision <= series[0].at.timestamp() // precision <= after // precision


@override_settings(COMPONENTS={"COUNTER_PRECISIONS": [10, 30, 7, 100_000], "COUNTER_SAMPLES": 7})
def test_precisions_and_samples_are_settings(redis: Redis) -> None:
    Counter("hits").update(3)

    assert plan().kept == {7: 49, 10: 210, 100_000: 700_000}
    assert len(Counter("hits").get(30)) == 7
    assert [Counter("hits").get(each).total for each in (7, 10, 30, 100_000)] == [3] * 4
    assert stored(redis, "hits") == {7: 3, 10: 3, 100_000: 3}


def test_gaps_are_filled_as_the_caller_wishes(redis: Redis) -> None:
    now = begin(redis, 60)
    count_at(redis, "hits", now - 180, 7)
    count_at(redis, "hits", now - 60, 0)
    counter, since, until = Counter("hits"), at(now - 240), at(now)

    def counts(fill: object) -> list[int | None]:
        series = counter.get(60, since=since, until=until, fill=fill)  # type: ignore[arg-type]
        assert series.total == 7
        return [sample.count for sample in series]

    assert counts(0) == [0, 7, 0, 0]
    assert counts(None) == [None, 7, None, 0]
    assert counts(-1) == [-1, 7, -1, 0]
    assert counts("skip") == [7, 0]


def test_the_rate_is_over_the_time_that_has_passed(redis: Redis) -> None:
    Counter("hits").update(6)

    series = Counter("hits").get(3_600)

    passed = (series.until - series.since).total_seconds()
    assert series.until < series[-1].at + timedelta(hours=1)
    assert series.rate == pytest.approx(6 / passed)


def test_a_slot_stays_at_the_largest_number_that_is_exact(redis: Redis) -> None:
    for number in (MAX_COUNT - 1, 1, 1, MAX_COUNT):
        Counter("much").update(number)
    for _ in range(2):
        Counter("little").update(-MAX_COUNT)
    now = begin(redis, 18_000)
    for hour in range(5):
        count_at(redis, "more", now - 18_000 + hour * 3_600, MAX_COUNT)

    assert Counter("much").get(3_600).total in (MAX_COUNT, 2 * MAX_COUNT)  # if a new hour began
    assert Counter("little").get(3_600).total in (-MAX_COUNT, -2 * MAX_COUNT)
    assert Counter("more").get(18_000).total == MAX_COUNT
    assert Counter("more").get(3_600).total == 5 * MAX_COUNT


def test_samples_take_few_bytes(redis: Redis) -> None:
    now = begin(redis, 1)
    for number in range(121):
        count_at(redis, "hits", now - number, 4_000)
    Counter("hits").update()
    key = max(redis.keys(f"{CounterKeys(bucket('hits')).samples}:hits/1:*"), key=redis.hlen)

    assert redis.object("encoding", key) in (b"listpack", b"ziplist")
    assert redis.hlen(key) <= WINDOW


def test_a_slot_is_kept_for_as_long_as_it_can_be_asked_for(redis: Redis) -> None:
    """By when the hash of the window ends that it is in."""
    now = seconds(redis)
    Counter("hits").update()

    for precision, kept in plan().kept.items():
        [key] = redis.keys(f"*:samples:hits/{precision}:*")
        assert redis.ttl(key) + seconds(redis) >= now // precision * precision + kept


def test_several_are_read_at_once(redis: Redis) -> None:
    now = begin(redis, 60)
    names = [f"hits:/{number}" for number in range(70)]
    for number, name in enumerate(names):
        count_at(redis, name, now - 60, number)

    found = CounterReader().read([*names, "nothing", "hits:/1"], 60, fill=None)

    assert list(found) == [*names, "nothing"]
    assert [found[name].total for name in names] == list(range(70))
    assert found["nothing"].total == 0
    assert len({(series.since, series.until, len(series)) for series in found.values()}) == 1
    assert CounterReader().read([], 60) == {}


@pytest.mark.parametrize(
    ("skew", "expected"), [(0, [2, 3, 4]), (1, [1, 2, 3]), (-1, [3, 4, 0]), (-3, [0, 0, 0])]
)
def test_clocks_of_nodes_may_differ(skew: int, expected: list[int]) -> None:
    """Those of another node end 3 to 0 slices before its own now; the now that counts is *skew* slices earlier."""
    with override_settings(COMPONENTS={"COUNTER_SAMPLES": 3}):
        series = ask(60, None, None).series("hits", 60_000 - 60 * skew, 60_000 - 180, b"1,2,3,4,", 0)

    assert [sample.count for sample in series] == expected
    assert series.total == sum(expected)


def test_more_slots_than_a_call_looks_at_are_read_in_parts(redis: Redis) -> None:
    """120 slices of a day are so many slots that a call looks at six names."""
    names = [f"hits:{number}" for number in range(400)]
    today = begin(redis, 86_400)
    for number, name in enumerate(names):
        Counter(name).update(0)
        count_at(redis, name, today - 118 * 86_400, number)

    found = CounterReader().read(names, 86_400, since=at(today - 119 * 86_400))
    ranked = CounterReader().top("hits", 400, precision=86_400, since=at(today - 119 * 86_400))

    assert [found[name].total for name in names] == list(range(400))
    assert [each.name for each in ranked] == names[::-1]


def test_first_seen_counters_of_an_hour_are_listed_to_its_last_seconds(redis: Redis) -> None:
    """A name is noted as seen once an hour."""
    Counter("hits:/a").update(0)
    now = seconds(redis)
    count_at(redis, "hits:/a", now)
    index = FamilyKeys(bucket("hits:/a"), "hits").family
    redis.zadd(index, {"hits:/a": now // 3_600 * 3_600_000_000})
    since = at(max(now - 300, now // 3_600 * 3_600 + min(1, now % 3_600)))

    assert CounterReader().top("hits", precision=1, since=since) == [Ranked("hits:/a", 1)]


def test_counters_are_listed_by_when_they_were_seen(redis: Redis) -> None:
    before = datetime.now(UTC)
    names = [f"hits:/{number}" for number in range(40)] + ["plain", "a:b:c"]
    for name in names:
        Counter(name).update()
        Counter(name).update()

    listed = CounterReader().page(limit=99)

    assert [info.name for info in listed] == names[::-1]
    assert all(abs(info.seen_at - before) < timedelta(minutes=5) for info in listed)
    assert CounterReader().page(offset=3, limit=2) == listed[3:5]
    assert [info.name for info in CounterReader().page(family="a")] == ["a:b:c"]
    assert CounterReader().count() == 42
    assert CounterReader().count("hits") == 40
    assert CounterReader().families() == ["a", "hits"]
    assert CounterReader().sizes(["hits", "gone", "a"]) == {"hits": 40, "gone": 0, "a": 1}


def test_a_name_goes_when_nothing_of_it_is_kept(redis: Redis) -> None:
    """By whoever comes next: nothing is done from time to time."""
    tag = bucket("hits:/a")
    other = next(f"hits:/{n}" for n in range(999) if bucket(f"hits:/{n}") == tag)
    Counter("hits:/a").update()
    indexes = [CounterKeys(tag).names, FamilyKeys(tag, "hits").family]
    for index in indexes:
        redis.zincrby(index, -(120 * 86_400 + 1) * 1_000_000, "hits:/a")

    Counter(other).update()

    assert [redis.zrange(index, 0, -1) for index in indexes] == [[other.encode()]] * 2


def test_the_twins_do_the_same(redis: Redis) -> None:
    async def use() -> None:
        counter = Counter("hits:/a")
        await asyncio.gather(*(counter.aupdate() for _ in range(40)))
        assert (await counter.aget(3_600)).total == 40
        assert await CounterReader().atop("hits") == [Ranked("hits:/a", 40)]

    asyncio.run(use())


def test_another_prefix_is_another_counter(redis: Redis) -> None:
    """Who has sent under the one before sends under the new one."""
    Counter("hits").update()
    with override_settings(COMPONENTS={"PREFIX": "staging"}):
        Counter("hits").update(5)
        assert Counter("hits").get(3_600).total == 5

    assert Counter("hits").get(3_600).total == 1


def test_names_of_any_kind_are_kept_apart(redis: Redis) -> None:
    names = ["a", "a/60:1", "a/60", "{a}", "ä:ö", "a b", "a\nb", ":a", "a:", "💡" * 500, "*", "a,b"]
    for number, name in enumerate(names):
        Counter(name).update(number + 1)

    found = CounterReader().read(names, 3_600)

    assert [found[name].total for name in names] == list(range(1, len(names) + 1))
    assert [Counter(name).get(1).total for name in names] == list(range(1, len(names) + 1))


def test_the_clocks_of_clients_have_no_part_in_it(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here they are an hour off, back and forth."""
    real, offsets = time.time, iter([3_600, -3_600] * 10_000)
    monkeypatch.setattr(time, "time", lambda: real() + next(offsets))
    before = seconds(redis)
    for _ in range(20):
        Counter("hits").update()
        count("hits")
    flush()
    after = seconds(redis)

    series = Counter("hits").get(60)

    assert stored(redis, "hits") == {1: 40, 60: 40, 3_600: 40}
    slots = {samples_key("hits", 1, second).encode() for second in range(before, after + 1)}
    assert set(redis.keys("*:samples:hits/1:*")) <= slots
    assert at(before) <= series.until <= at(after + 60)


def test_an_update_is_one_call_of_a_script_and_three_numbers(redis: Redis) -> None:
    Counter("hits").update()
    redis.config_resetstat()
    Counter("hits").update()

    calls = {name: each["calls"] for name, each in redis.info("commandstats").items()}
    assert calls["cmdstat_evalsha"] == 1
    assert calls["cmdstat_hincrby"] == 3


HITS, READER = Counter("hits"), CounterReader()
#: What is wrong with it, for the error, and what may be asked with it.
WRONG: dict[str, tuple[list[Any], type[Exception], Callable[[Any], list[Callable[[], object]]]]] = {
    "name": (
        ["", "x" * 501, b"hits", None, 7, "\ud800", ["hits"]],
        InvalidName,
        lambda name: [
            *(lambda make=make: make(name) for make in (Counter, counted, timed, READER.top)),
            lambda: READER.read(["hits", name], 60),
        ],
    ),
    "count": (
        [1.0, math.nan, math.inf, True, "3", None, MAX_COUNT + 1, -MAX_COUNT - 1],
        InvalidValue,
        lambda count: [lambda: HITS.update(count), lambda: HITS.count(count)],
    ),
    "precision": (
        [0, -1, 2, 61, 60.0, math.nan, True, "60", None, 10**30, [60]],
        InvalidValue,
        lambda precision: [
            lambda: HITS.get(precision),
            lambda: READER.read(["hits"], precision),
            lambda: READER.top("hits", precision=precision),
        ],
    ),
    "instant": (
        [0, 1_800_000_000, math.nan, "2026-01-01", datetime(2026, 1, 1), date(2026, 1, 1), True],
        InvalidValue,
        lambda instant: [lambda: HITS.get(60, since=instant), lambda: HITS.get(60, until=instant)],
    ),
    "fill": (
        [1.0, math.nan, True, "previous", [0], "0"],
        ValueError,
        lambda fill: [lambda: HITS.get(60, fill=fill), lambda: READER.read(["hits"], 60, fill=fill)],
    ),
    "limit": (
        [0, -1, 1.0, math.nan, True, "3", 10_001, None],
        InvalidValue,
        lambda limit: [lambda: READER.top("hits", limit), lambda: READER.page(limit=limit)],
    ),
    "offset": (
        [-1, math.nan, "3", 10_001, None],
        InvalidValue,
        lambda offset: [lambda: READER.page(offset=offset)],
    ),
}


@pytest.mark.parametrize(
    ("what", "value"), [(what, value) for what, row in WRONG.items() for value in row[0]]
)
def test_what_is_wrong_is_refused_and_changes_nothing(redis: Redis, what: str, value: Any) -> None:
    _values, error, acts = WRONG[what]
    before = snapshot(redis)
    for act in acts(value):
        with pytest.raises(error):
            act()
    assert snapshot(redis) == before


def test_a_time_that_is_turned_round_or_lies_ahead_is_refused(redis: Redis) -> None:
    now, hour = at(seconds(redis)), timedelta(hours=1)
    for since, until in ((now, now), (now, now - hour), (now + hour, None), (now + hour, now + 25 * hour)):
        with pytest.raises(InvalidValue):
            HITS.get(60, since=since, until=until)
        with pytest.raises(InvalidValue):
            READER.read(["hits"], 1, since=since, until=until)
        with pytest.raises(InvalidValue):
            READER.top("hits", since=since, until=until)


@pytest.mark.parametrize(
    ("precision", "kept"), [(1, 600), (5, 120), (60, 600), (3_600, 2_880), (86_400, 120)]
)
def test_a_time_that_is_no_longer_kept_is_refused(redis: Redis, precision: int, kept: int) -> None:
    begun = seconds(redis) // precision * precision
    oldest, before = at(begun - (kept - 2) * precision), at(begun - kept * precision)

    assert HITS.get(precision, since=oldest)[0].at == oldest
    for asked in ({"since": before}, {"since": datetime.min.replace(tzinfo=UTC)}, {"until": before}):
        with pytest.raises(InvalidValue):
            HITS.get(precision, **asked)
    with pytest.raises(InvalidValue):
        READER.top("hits", precision=precision, since=before)


NAMES = [f"hits:/{number}" for number in range(30)]


def test_a_record_without_expiry_gets_back_the_one_it_had(redis: Redis) -> None:
    for name in NAMES:
        Counter(name).update()
    before = {key: redis.ttl(key) for key in redis.keys("*")}
    for key in before:
        redis.persist(key)

    done = clean()

    assert done == Cleaned(looked=len(before), mended=len(before))
    assert all(abs(redis.ttl(key) - ttl) <= 60 for key, ttl in before.items())
    assert clean() == Cleaned(looked=len(before))


def test_finished_listings_are_removed(redis: Redis) -> None:
    now = seconds(redis)
    for precision, kept in plan().kept.items():
        redis.hset(samples_key("hits", precision, now - kept - 121 * precision), "0", "1")
        redis.hset(samples_key("hits", precision, now), "0", "1")

    assert clean() == Cleaned(looked=6, removed=3, mended=3)
    assert len(redis.keys("*")) == 3


def test_keys_that_are_not_counters_are_removed(redis: Redis) -> None:
    tag = bucket("hits")
    wrong = [
        f"{CounterKeys(tag).samples}:hits",
        f"{CounterKeys(tag).samples}:hits/1:{10**30}",
        f"{CounterKeys(tag).names}-of-old",
        f"{CounterKeys(tag).samples}:wrong/60:{seconds(redis) // 7_200}",
    ]
    for key in wrong:
        redis.set(key, "something else")

    assert clean() == Cleaned(looked=4, removed=4)
    assert redis.keys("*") == []


@pytest.mark.parametrize(
    "prefix", ["other", "components:counters", "c*", "c?mponents", "[c]omponents", "c\\"]
)
def test_nothing_else_is_touched(redis: Redis, prefix: str) -> None:
    redis.set("components:counters", "of somebody else")
    redis.set("components:counters:hits", "of somebody else")
    with lock("hits", timeout=60):
        Counter("hits").update()
        for key in redis.keys("*"):
            redis.persist(key)
        before = snapshot(redis)
        with override_settings(COMPONENTS={"PREFIX": prefix}):
            Counter("hits").update()
            mine = len(redis.keys("*")) - len(before)
            done = clean()
        after = snapshot(redis)

    assert done.looked == mine
    assert {key: after[key] for key in before} == before


def now() -> datetime:
    return datetime.now(UTC)


def test_a_mark_is_found_between_two_instants(redis: Redis) -> None:
    ago = now() - timedelta(hours=2)
    first = Marks().add("version 1", ago)
    second = Marks().add("version 2")

    assert first == Mark("version 1", first.at)
    assert abs(first.at - ago) < timedelta(milliseconds=1)
    assert Marks().between(ago - timedelta(minutes=1), now() + timedelta(minutes=1)) == [first, second]
    assert Marks().between(ago + timedelta(minutes=1), now() + timedelta(minutes=1)) == [second]


def test_marks_are_bounded_and_end_by_themselves(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marks, "_MOST", 3)
    Marks().add("of long ago", now() - timedelta(days=400))
    for number in range(5):
        Marks().add(f"version {number}")

    [key] = redis.keys("*:marks")
    assert redis.zcard(key) == 3
    assert 0 < redis.ttl(key) <= 120 * 86_400
    redis.persist(key)
    assert clean().mended == 1


def test_the_command_sets_a_mark(redis: Redis) -> None:
    told = StringIO()
    call_command("mark", "version 1.2", stdout=told)
    call_command("mark", "version 1.1", "--at", f"{now() - timedelta(hours=1):%Y-%m-%dT%H:%MZ}", stdout=told)

    found = Marks().between(now() - timedelta(hours=2), now() + timedelta(minutes=1))
    assert [each.name for each in found] == ["version 1.1", "version 1.2"]
    assert "Marked version 1.2 at 20" in told.getvalue()
    for wrong in (["x" * 501], ["version", "--at", "yesterday"]):
        with pytest.raises(CommandError):
            call_command("mark", *wrong)
