"""Rows that are loaded again and again: who may store, what readers see, what becomes of those that fail."""

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any, TypeAlias

import pytest
from redis import Redis

from components.exceptions import RowNotLoaded, RowNotSerializable
from components.kit.client import get_client
from components.kit.keyspace import BUCKETS, bucket
from components.kit.sync_async import at_once
from components.services.rows import LEASE, Loader, RowCache, RowReader, Shape, Unshared
from components.services.rows.keys import RowKeys
from components.services.rows.loader import begin
from components.services.rows.single_flight import Flight, Flights, has_landed
from tests.support.rows import (
    SHAPE,
    bodies,
    cache,
    claimed,
    due_at,
    failure_of,
    let_pass,
    loading,
    now,
    refresh,
    row_of,
)
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("redis")

YEAR = 366 * 86_400
Rows: TypeAlias = Mapping[str, Sequence[Any]]


def test_a_row_is_due_at_once_and_again_after_its_delay(redis: Redis) -> None:
    cache().schedule("42", 5)
    assert cache().get("42") is None

    assert refresh({"42": ["sword", 3]}) == set()

    row = row_of("42")
    assert dict(row) == {"name": "sword", "stock": 3}
    assert row.since < (due_at(redis, "42") or 0) <= row.since + 5_000_000
    assert claimed(Loader().claim()) == []
    let_pass(redis, 5)
    assert claimed(Loader().claim()) == ["42"]


def test_rows_that_were_scheduled_together_part_and_keep_their_instants(redis: Redis) -> None:
    wanted = {str(number): 1000 for number in range(100)}
    cache().schedule_many(wanted)
    refresh({key: ["sword", 3] for key in wanted})
    first = {key: due_at(redis, key) or 0 for key in wanted}

    for tag in BUCKETS:  # all are late, and are loaded together again
        for each in redis.zrange(RowKeys(tag).schedule, 0, -1):
            redis.zadd(RowKeys(tag).schedule, {each: 1})
    refresh({key: ["sword", 3] for key in wanted})
    again = {key: due_at(redis, key) or 0 for key in wanted}

    assert max(first.values()) - min(first.values()) > 500e6
    assert {round(again[key] - first[key]) % 1_000_000_000 for key in wanted} == {0}


def test_many_rows_are_read_in_the_order_in_which_they_are_asked_for() -> None:
    wanted = [str(number) for number in range(600)]
    cache().schedule_many(dict.fromkeys(wanted, 60))
    refresh({key: ["sword", int(key)] for key in wanted})
    rows = cache().get_many([*reversed(wanted), "none", "7"])
    assert list(rows) == wanted[::-1]
    assert [row["stock"] for row in rows.values()] == list(range(599, -1, -1))
    assert cache().get_many([]) == {}


def test_the_twins_say_the_same() -> None:
    async def use() -> list[Any]:
        its = cache()
        await its.aschedule("1", 5)
        await its.aschedule_many({"2": 5, "3": 5})
        await asyncio.to_thread(refresh, {"1": ["sword", 3], "2": ["bow", 4], "3": ["axe", 5]})
        await its.aunschedule("2")
        await its.ainvalidate("3")
        return [await its.aget("1"), await its.aget_many(["1", "2", "3"])]

    row, rows = asyncio.run(use())

    assert row == cache().get("1")
    assert rows == cache().get_many(["1", "2", "3"]) == {"1": row}


def test_nothing_is_kept_of_a_row_that_is_unscheduled_and_little_of_one_that_is_deleted(redis: Redis) -> None:
    for delay in (0, -1, -0.5, float("-inf")):
        cache().schedule("1", 5)
        refresh({"1": ["sword", 3]})

        cache().schedule("1", delay)

        assert cache().get("1") is None
        assert redis.keys("*:rows:*:row:*") == redis.keys("*:rows:*:schedule") == []

    cache().schedule("1", 5)
    refresh({"1": None})
    row = row_of("1")
    assert (row.is_deleted, dict(row), due_at(redis, "1")) == (True, {}, None)
    assert redis.keys("*:rows:*:delays") == []
    let_pass(redis, 5 + LEASE)
    assert cache().get("1") is None


def test_what_is_scheduled_or_unscheduled_while_a_row_is_loaded_is_heeded(redis: Redis) -> None:
    loader, claims = loading(5)
    cache().unschedule("1")
    assert loader.store(claims, bodies({"1": ["sword", 3]})) == {"items:1"}
    assert cache().get("1", stale=True) is None
    assert due_at(redis, "1") is None

    loader, claims = loading()
    cache().schedule("1", 2)
    loader.store(claims, bodies({"1": ["sword", 3]}))
    row = row_of("1")
    assert row.since < (due_at(redis, "1") or 0) <= row.since + 2_000_000
    # It may be there again: who created it has scheduled it afterwards.
    loader, claims = loading(key="2")
    cache().schedule("2", 60)
    loader.store(claims, bodies({"2": None}))
    assert claimed(loader.claim()) == ["2"]
    cache().get_or_load(["4"], lambda wanted: cache().schedule("4", 60) or {}, delay=60)
    assert claimed(loader.claim()) == ["4"]
    # Else one that is scheduled at every view of a page would be loaded all the time.
    loader, claims = loading(10**9, key="3")
    cache().schedule("3", 10**9)
    loader.store(claims, bodies({"3": ["sword", 3]}))
    assert claimed(loader.claim()) == []


def test_a_shorter_delay_lets_a_row_be_due_earlier_and_a_longer_one_not_later(redis: Redis) -> None:
    cache().schedule("1", 60)
    refresh({"1": ["sword", 3]})
    cache().schedule("1", 5)
    sooner = due_at(redis, "1") or 0
    assert 0 < sooner <= now(redis) + 5_000_000
    cache().schedule("1", 600)
    assert due_at(redis, "1") == sooner

    # Even if no daemon runs, a row is good for no longer than that.
    cache().get_or_load(["2"], lambda wanted: {"2": ["sword", 3]}, delay=600)
    cache().schedule("2", 10)
    assert cache().get("2") == {"name": "sword", "stock": 3}
    cache().schedule("2", 60)
    let_pass(redis, 10 + LEASE)
    assert cache().get("2") is None
    assert row_of("2", stale=True) == {"name": "sword", "stock": 3}


def test_a_slow_loader_may_store_while_no_other_has_claimed_and_no_data_were_lost(redis: Redis) -> None:
    loader, claims = loading()
    let_pass(redis, LEASE + 1)
    # Time has passed in Redis, and not for the claim that the loader holds in his hands.
    assert loader.store(claims, bodies({"1": ["sword", 3]})) == set()
    loader, claims = loading(5, key="2")
    redis.flushall()
    assert loader.store(claims, bodies({"2": ["sword", 3]})) == {"items:2"}
    assert redis.keys("*") == []


def test_rows_of_a_loader_that_died_are_claimed_by_another_with_twice_the_lease(redis: Redis) -> None:
    cache().schedule("1", 60)
    for lease in (LEASE, 2 * LEASE, 4 * LEASE):
        [claim] = Loader().claim().claims
        assert claimed(Loader().claim()) == []
        assert due_at(redis, "1") == claim.since + lease * 1e6
        let_pass(redis, lease)

    refresh({"1": ["sword", 3]})
    let_pass(redis, 60)
    [claim] = Loader().claim().claims
    assert due_at(redis, "1") == claim.since + LEASE * 1e6


def test_a_row_that_nobody_loads_is_gone_for_readers_after_its_delay_and_a_lease(redis: Redis) -> None:
    cache().schedule("1", 500)
    refresh({"1": ["sword", 3]})

    let_pass(redis, 500)
    row = row_of("1")
    assert not row.is_stale
    assert row.age >= 500
    assert cache().get("1", max_age=560) is not None
    assert cache().get("1", max_age=500) is None  # who reads may want it younger
    let_pass(redis, LEASE)

    assert cache().get("1") is None
    stale = row_of("1", stale=True)
    assert stale.is_stale
    assert stale["stock"] == 3


def is_claimed(token: str, key: str = "1") -> bool:
    claims, waiting = at_once(begin(get_client(), [f"items:{key}"], token, SHAPE, None, LEASE))
    assert waiting == (set() if claims else {f"items:{key}"})
    return bool(claims)


def test_what_a_clock_stored_that_was_a_day_ahead_is_not_there_and_is_due(redis: Redis) -> None:
    cache().schedule_many({"1": 5, "2": 60 * 86_400})
    refresh({"1": ["a", 1], "2": ["b", 2]})
    assert (is_claimed("dead", "3"), is_claimed("alive", "3")) == (True, False)
    let_pass(redis, -86_400)

    assert cache().get("1") is None
    assert is_claimed("alive", "3")
    assert claimed(Loader().claim(10)) == []
    assert claimed(Loader().claim(10)) == ["1"]


@pytest.mark.parametrize(("delay", "kept"), [(0.1, 60), (3_600, 3_600), (YEAR, 86_400)])
def test_a_stale_row_is_kept_as_long_as_it_was_good(redis: Redis, delay: float, kept: float) -> None:
    cache().schedule("1", delay)
    refresh({"1": ["sword", 3]})
    ttl = redis.pttl(RowKeys(bucket("items:1")).row_of("items:1")) / 1000
    good = delay + LEASE
    assert good + kept - 10 < ttl <= good + max(kept, min(good, 86_400)) + 0.001


def test_a_row_of_another_shape_is_not_known() -> None:
    cache().schedule("1", 5)
    refresh({"1": ["sword", 3]})

    for shape in (
        Shape([("name", "text"), ("price", "integer")]),
        Shape([("name", "text"), ("stock", "decimal")]),
        Shape([("stock", "integer"), ("name", "text")]),
        Shape([("name", "text"), ("stock", "integer")], note="another table"),
    ):
        assert RowCache("items", shape).get("1", stale=True) is None
    assert RowCache("items", Shape([("name", "text"), ("stock", "integer")])).get("1") is not None


def test_a_row_that_fails_is_due_later_each_time_and_stops_no_other(redis: Redis) -> None:
    cache().schedule_many({"1": 0.01, "2": 0.01})
    for number, pause in enumerate((1, 2, 4, 8), start=1):
        loader = Loader()
        claims = loader.claim().claims
        loader.store(claims, bodies({"2": ["bow", number]}))
        before = now(redis)

        loader.fail(claims, {"items:1": "ValueError: \ud800"})

        due = due_at(redis, "1")
        assert due is not None
        assert before + pause * 1e6 <= due <= now(redis) + pause * 1e6
        failure = failure_of("1")
        assert (failure.count, failure.error) == (number, r"ValueError: \ud800")
        assert row_of("2")["stock"] == number
        let_pass(redis, pause)

    assert RowReader().failing() == 1
    refresh({"1": ["sword", 3]})
    assert RowReader().failing() == 0
    assert [info.failure for info in RowReader().page()] == [None, None]
    claims = Loader().claim().claims
    Loader().fail(claims, {"items:1": "again"})
    cache().unschedule("1")
    assert redis.keys("*:rows:*:failures") == []


def test_rows_that_are_given_back_are_due_when_it_is_said_and_have_not_failed() -> None:
    cache().schedule_many({"1": 60, "2": 60})
    loader = Loader()
    claims = loader.claim().claims
    loader.release(claims, ["items:1"])
    loader.release(claims, ["items:2"], pause=30)
    assert claimed(loader.claim()) == ["1"]
    assert RowReader().failing() == 0
    assert loader.store(claims, bodies({"1": ["sword", 3]})) == {"items:1"}


def test_a_claim_is_as_large_as_was_asked_for_and_tells_when_the_next_row_is_due(redis: Redis) -> None:
    assert Loader().claim().pause is None
    cache("boxes").schedule_many({str(number): 60 for number in range(500)})
    claims = Loader().claim(32)
    assert ({len(claim.members) for claim in claims.claims}, claims.pause) == ({1}, 0)
    cache("boxes").unschedule(*map(str, range(500)))
    cache().schedule_many({"1": 300, "2": 600})
    refresh({"1": ["sword", 3], "2": ["bow", 4]})

    soonest = min(due_at(redis, key) or 0 for key in ("1", "2"))

    before, pause, after = now(redis), Loader().claim().pause, now(redis)

    assert pause is not None
    assert soonest - after <= pause * 1e6 <= soonest - before


def test_a_missed_row_is_loaded_by_one_of_all_who_miss_it() -> None:
    loads: list[Sequence[str]] = []
    all_wait = Event()

    def load(wanted: Sequence[str]) -> Rows:
        loads.append(wanted)
        all_wait.wait(20)
        return {"1": ["sword", 3]}

    def read() -> Any:
        return cache().get_or_load(["1"], load, delay=60, wait=20)["1"]

    with ThreadPoolExecutor(20) as pool:
        first = pool.submit(read)
        assert eventually(lambda: loads)
        others = [pool.submit(read) for _ in range(19)]
        all_wait.set()
        rows = {each.result()["stock"] for each in [first, *others]}

    assert rows == {3}
    assert loads == [["1"]]


def test_a_load_that_fails_fails_for_all_who_wait_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[Sequence[str]] = []
    waiting = set[object]()

    async def read() -> list[Any]:
        all_wait = asyncio.Event()

        async def note(flight: Flight, seconds: float) -> bool:
            waiting.add(asyncio.current_task())
            if len(waiting) == 99:
                all_wait.set()
            return await has_landed(flight, seconds)

        async def load(wanted: Sequence[str]) -> Rows:
            loads.append(wanted)
            await all_wait.wait()
            raise LookupError("the database is away")

        monkeypatch.setattr("components.services.rows.cache.has_landed", note)
        readers = (cache().aget_or_load(["1"], load, delay=60, wait=60) for _ in range(100))
        return await asyncio.gather(*readers, return_exceptions=True)

    assert {type(each) for each in asyncio.run(read())} == {LookupError}
    assert loads == [["1"]]


def test_the_next_loader_does_what_the_first_could_not() -> None:
    async def read() -> list[Any]:
        others_wait = asyncio.Event()
        loads = []

        async def refuse(wanted: Sequence[str]) -> Rows:
            loads.append(wanted)
            await others_wait.wait()
            raise Unshared("within a transaction")

        async def load(wanted: Sequence[str]) -> Rows:
            return {"1": ["sword", 3]}

        first = asyncio.create_task(cache().aget_or_load(["1"], refuse, delay=60))
        cancelled = asyncio.create_task(cache().aget_or_load(["2"], refuse, delay=60))
        await asyncio.sleep(0)
        second = asyncio.create_task(cache().aget_or_load(["1"], load, delay=60))
        third = asyncio.create_task(cache().aget_or_load(["2"], load, delay=60))
        while len(loads) < 2:
            await asyncio.sleep(0.001)
        cancelled.cancel()
        others_wait.set()
        return await asyncio.gather(first, cancelled, second, third, return_exceptions=True)

    first, cancelled, second, third = asyncio.run(read())

    assert isinstance(first, Unshared)
    assert isinstance(cancelled, asyncio.CancelledError)
    assert second["1"]["stock"] == 3
    assert third["2"].is_deleted


def test_readers_of_crossing_rows_wait_for_each_other_and_not_for_ever() -> None:
    loads: list[list[str]] = []

    async def load(wanted: Sequence[str]) -> Rows:
        loads.append(list(wanted))
        await asyncio.sleep(0.01)
        return {key: ["sword", int(key)] for key in wanted}

    async def read() -> list[Any]:
        wishes = [[str((first + each) % 10) for each in range(4)] for first in range(10)]
        readers = (cache().aget_or_load(wish, load, delay=60, wait=60) for wish in wishes)
        return await asyncio.wait_for(asyncio.gather(*readers), 30)

    rows = asyncio.run(read())

    assert [[row["stock"] for row in each.values()] for each in rows] == [
        [(first + each) % 10 for each in range(4)] for first in range(10)
    ]
    assert sorted(key for wanted in loads for key in wanted) == [str(key) for key in range(10)]


def test_a_wait_for_an_invalidated_load_does_not_last_to_its_end() -> None:
    loads_old, may_end = Event(), Event()

    def load_old(wanted: Sequence[str]) -> Rows:
        loads_old.set()
        may_end.wait(20)
        return {"1": ["old", 1]}

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(cache().get_or_load, ["1"], load_old, delay=60, wait=20)
        loads_old.wait(20)
        cache().invalidate("1")
        row = cache().get_or_load(["1"], lambda wanted: {"1": ["new", 2]}, delay=60, wait=20)["1"]
        may_end.set()

    assert row["name"] == first.result()["1"]["name"] == "new"


def test_missed_rows_are_loaded_together_and_those_that_are_not_there_are_remembered(redis: Redis) -> None:
    loads = []

    def load(wanted: Sequence[str]) -> Rows:
        loads.append(sorted(wanted))
        return {"1": ["sword", 3], "2": ["bow", 4]}

    for _ in range(2):
        rows = cache().get_or_load(["3", "2", "1"], load, delay=60)

        assert [(key, row.is_deleted) for key, row in rows.items()] == [
            ("3", True),
            ("2", False),
            ("1", False),
        ]
    assert loads == [["1", "2", "3"]]
    assert redis.keys("*:schedule") == []
    let_pass(redis, 54)
    assert list(cache().get_many(["1", "2"])) == ["1", "2"]
    let_pass(redis, 6)
    assert cache().get_many(["1", "2"]) == {}


def test_a_caller_that_gives_up_is_told_and_one_that_takes_stale_rows_need_not_wait(redis: Redis) -> None:
    cache().schedule("1", 1)
    refresh({"1": ["sword", 3]})
    let_pass(redis, 1 + LEASE)
    Loader().claim()

    def load(wanted: Sequence[str]) -> Rows:
        raise AssertionError("another loads it")

    with pytest.raises(RowNotLoaded):
        cache().get_or_load(["1"], load, delay=60, wait=0)
    row = cache().get_or_load(["1"], load, delay=60, wait=0, stale=True)["1"]
    assert row.is_stale


def test_a_missed_row_that_cannot_be_stored_is_an_error_and_the_others_are_stored(redis: Redis) -> None:
    with pytest.raises(RowNotSerializable):
        cache().get_or_load(["1", "2"], lambda wanted: {"1": [object(), 3], "2": ["bow", 4]}, delay=60)
    assert list(cache().get_many(["1", "2"])) == ["2"]
    assert redis.keys("*:claim:*") == []


def test_a_reader_who_was_too_late_looks_again_and_does_not_go_back() -> None:
    """What he loaded is older than what another has stored meanwhile, and somebody may have read."""
    loads = []

    def load(wanted: Sequence[str]) -> Rows:
        loads.append(wanted)
        cache().invalidate("1")
        cache().schedule("1", 60)
        refresh({"1": ["new", 2]})
        return {"1": ["old", 1]}

    row = cache().get_or_load(["1"], load, delay=60)["1"]

    assert (row["name"], len(loads)) == ("new", 1)


def test_a_row_on_the_schedule_that_a_reader_loads_is_not_loaded_by_a_daemon_as_well(redis: Redis) -> None:
    cache().schedule("1", 60)
    seen = []

    def load(wanted: Sequence[str]) -> Rows:
        seen.append(claimed(Loader().claim()))
        return {"1": ["sword", 3]}

    row = cache().get_or_load(["1"], load, delay=9)["1"]

    assert seen == [[]]
    assert row.since < (due_at(redis, "1") or 0) <= row.since + 60_000_000


def test_the_reader_tells_how_rows_stand(redis: Redis) -> None:
    reader = RowReader()
    assert (reader.count(), reader.failing(), reader.lateness(), reader.page()) == (0, 0, 0, [])
    wanted = {str(number): 60 for number in range(70)}
    cache().schedule_many(wanted)
    refresh({key: ["sword", 3] for key in wanted})
    let_pass(redis, 61)

    infos = [*reader.page(limit=50), *reader.page(offset=50, limit=50)]

    assert reader.count() == 70
    assert reader.lateness() >= max(info.late for info in infos) >= 1
    assert sorted(info.key for info in infos) == sorted(wanted)
    assert {(info.name, info.delay, info.is_deleted, info.failure) for info in infos} == {
        ("items", 60, False, None)
    }
    assert all(1 <= info.late <= (info.age or 0) >= 61 and info.size > 40 for info in infos)
    assert reader.find("items", "none") is None


def test_a_cancelled_claim_leaves_nothing(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server has done what he asked for, and he does not know it."""

    async def begin_late(*arguments: Any) -> Any:
        await begin(*arguments)
        await asyncio.Event().wait()

    async def read() -> Any:
        monkeypatch.setattr("components.services.rows.cache.begin", begin_late)
        task = asyncio.create_task(cache().aget_or_load(["1", "2"], lambda wanted: {}, delay=60))
        while len(redis.keys("*:claim:*")) < 2:
            await asyncio.sleep(0.001)
        task.cancel()
        return await asyncio.gather(task, return_exceptions=True)

    [cancelled] = asyncio.run(read())

    assert isinstance(cancelled, asyncio.CancelledError)
    assert redis.keys("*:claim:*") == []


def test_a_forked_process_waits_for_no_thread_of_its_parent() -> None:
    flights = Flights()
    flights.take_off(["items:1", "items:2"])
    flights.reset()
    assert flights.take_off(["items:1"]) == {"items:1"}
    flights.land(["items:1", "items:2"], {})
    assert flights.find("items:1") is None


@pytest.mark.slow
def test_more_rows_of_a_bucket_are_stored_than_a_script_can_take() -> None:
    wanted = [each for each in map(str, range(270_000)) if bucket(f"items:{each}") == "00"]
    rows = cache().get_or_load(wanted, lambda wanted: {}, delay=60)
    assert len(rows) == len(wanted) > 8_000
    assert cache().get(wanted[-1]) is not None


def test_a_reader_who_takes_a_row_over_has_twice_as_long_for_it(redis: Redis) -> None:
    """Else a query that is slower than a lease would never be done where many read."""
    for number, lease in enumerate((LEASE, 2 * LEASE, 4 * LEASE)):
        assert is_claimed(f"first-{number}")
        let_pass(redis, lease - 1)
        assert not is_claimed(f"second-{number}")
        let_pass(redis, 1)
