"""What is done to rows by name, which rows a list shows, and how many are counted of each name."""

import asyncio
import random

import pytest
from redis import Redis

from components.kit.keyspace import BUCKETS
from components.services.rows import Loader, RowControls, RowReader, name_and_key
from components.services.rows.keys import RowKeys
from tests.support.rows import (
    bodies,
    cache,
    claimed,
    due_at,
    let_pass,
    let_whole_delays_pass,
    loading,
    now,
    refresh,
    row_of,
)

pytestmark = pytest.mark.usefixtures("redis")

WANTED = {str(number): 86_400.0 for number in range(200)}


def fill(name: str = "items", wanted: dict[str, float] = WANTED) -> None:
    cache(name).schedule_many(wanted)
    refresh({key: ["sword", 3] for key in wanted}, name=name)
    let_whole_delays_pass()


def fail(*keys: str, name: str = "items") -> None:
    loader = Loader()
    loader.fail(loader.claim(10_000).claims, {f"{name}:{key}": "ValueError: no" for key in keys})


def spread(redis: Redis, seed: int = 1) -> list[str]:
    """Rows of two names, each due at another time; their members in that order."""
    cache().schedule_many(WANTED)
    cache("boxes").schedule_many(dict.fromkeys(map(str, range(40)), 60))
    start, chance = now(redis), random.Random(seed)
    dues: dict[str, int] = {}
    for tag in BUCKETS:
        schedule = RowKeys(tag).schedule
        for each in redis.zrange(schedule, 0, -1):
            dues[each.decode()] = start + chance.randrange(-10_000_000, 10_000_000)
            redis.zadd(schedule, {each: dues[each.decode()]})
    return sorted(dues, key=lambda each: dues[each])


def counts() -> dict[str, tuple[int, int]]:
    return {info.name: (info.count, info.failing) for info in RowReader().names()}


def members(redis: Redis) -> dict[str, tuple[int, int]]:
    """The same, counted by hand."""
    scheduled, failing = (
        [name_and_key(each.decode())[0] for tag in BUCKETS for each in read(tag)]
        for read in (
            lambda tag: redis.zrange(RowKeys(tag).schedule, 0, -1),
            lambda tag: redis.hkeys(RowKeys(tag).failures),
        )
    )
    return {name: (scheduled.count(name), failing.count(name)) for name in set(scheduled)}


def test_a_row_that_is_refreshed_is_due_now_and_still_read() -> None:
    fill(wanted={"1": 86_400, "2": 86_400})
    assert cache().refresh("1", "none") == {"none"}
    assert asyncio.run(cache().arefresh("none")) == {"none"}
    assert row_of("1")["stock"] == 3
    assert claimed(Loader().claim()) == ["1"]


def test_a_load_that_is_under_way_is_stored_and_followed_by_another(redis: Redis) -> None:
    loader, claims = loading()

    cache().refresh("1")
    assert claimed(Loader().claim()) == []
    assert loader.store(claims, bodies({"1": ["sword", 3]})) == set()
    assert cache().get("1") is not None

    claims = loader.claim().claims
    assert [claim.members for claim in claims] == [("items:1",)]
    loader.store(claims, bodies({"1": ["sword", 4]}))
    assert claims[0].since < (due_at(redis, "1") or 0) <= claims[0].since + 60_000_000

    # Nor does a load that has not found the row take it off the schedule, or one that fails delay the next.
    loader, claims = loading(key="2")
    cache().refresh("2")
    loader.store(claims, bodies({"2": None}))
    assert counts() == {"items": (2, 0)}
    loader, claims = loading(key="2")
    cache().refresh("2")
    loader.fail(claims, {"items:2": "ValueError: no"})
    assert claimed(Loader().claim()) == ["2"]

    cache().unschedule("1", "2")
    # None follows a load that began after it.
    loading(key="3")
    cache().refresh("3")
    let_pass(redis, 5)
    [claim] = loader.claim().claims
    loader.store([claim], bodies({"3": ["sword", 3]}))
    assert claim.since < (due_at(redis, "3") or 0) <= claim.since + 60_000_000


def test_a_delay_is_set_of_what_is_on_the_schedule_and_of_nothing_else(redis: Redis) -> None:
    fill(wanted={"1": 60})
    absent = RowControls("items").set_delay(5, "1", "2")
    info = RowReader().find("items", "1")
    assert (absent, info and info.delay, RowReader().count()) == ({"2"}, 5, 1)
    assert claimed(Loader().claim()) == []
    let_pass(redis, 5)
    assert claimed(Loader().claim()) == ["1"]


def test_all_rows_of_a_name_are_changed_and_no_others() -> None:
    fill()
    fill("it*ms", {"1": 60})
    fill("it", {"1": 60})
    controls = RowControls("items")

    assert RowControls("it*ms").refresh_all() == (1, 0)
    assert claimed(Loader().claim(10_000)) == ["1"]
    assert controls.refresh_all() == (200, 0)
    assert claimed(Loader().claim(10_000)) == sorted(WANTED)
    assert controls.set_delay_of_all(7) == (200, 0)
    infos = RowReader().look(RowReader().of("items").members)
    assert {info.delay for info in infos} == {7}
    assert controls.remove_all() == controls.remove_all()._replace(rows=200)
    assert counts() == {"it": (1, 0), "it*ms": (1, 0)}


def test_a_page_has_what_is_due_first_first_and_each_row_once(redis: Redis) -> None:
    ordered = spread(redis)
    reader = RowReader()
    pages = [reader.page(offset=offset, limit=50) for offset in range(0, 250, 50)]
    assert [f"{info.name}:{info.key}" for page in pages for info in page] == ordered
    assert reader.page(offset=250) == []


@pytest.mark.parametrize("few", [2_000, 3])
def test_rows_of_a_name_are_in_that_order(redis: Redis, monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    monkeypatch.setattr("components.services.rows.reader._FEW", few)
    ordered = spread(redis)

    listed = RowReader().of("boxes")

    assert listed.members == [each for each in ordered if each.startswith("boxes:")]
    assert not listed.is_cut
    monkeypatch.setattr("components.services.rows.reader.REACH", 20)
    cut = RowReader().of("items")
    assert cut.is_cut == (few == 3)
    assert not cut.is_cut or cut.members == [each for each in ordered[:20] if each.startswith("items:")]


def test_how_late_the_rows_of_each_name_are(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(wanted={"1": 60})
    cache("boxes").schedule("1", 3600)
    refresh({"1": ["box", 1]}, name="boxes")
    let_whole_delays_pass()
    let_pass(redis, 70)

    boxes, items = RowReader().names()

    assert (boxes.name, boxes.late, items.name) == ("boxes", 0, "items")
    assert 10 <= items.late < 60
    assert not items.is_at_most
    # One behind too many others has a bound.
    monkeypatch.setattr("components.services.rows.reader._LATEST", 1)
    fill(wanted=dict.fromkeys(WANTED, 60))
    let_pass(redis, 100)
    cache("boxes").schedule_many(dict.fromkeys(map(str, range(40)), 60))
    [boxes, _items] = RowReader().names()
    assert boxes.is_at_most
    assert 40 <= boxes.late < 110


def test_the_counts_are_those_of_the_schedule_whatever_happens(redis: Redis) -> None:
    chance = random.Random(1)
    loaders = [Loader(), Loader()]
    pending: list[list[object]] = [[], []]
    for _ in range(80):
        name, which = chance.choice(["items", "boxes"]), chance.randrange(2)
        some = [str(chance.randrange(6)) for _ in range(3)]
        match chance.randrange(8):
            case 0 | 1:
                cache(name).schedule_many(dict.fromkeys(some, 5))
            case 2:
                cache(name).unschedule(*some)
            case 3:
                pending[which] = list(loaders[which].claim().claims)
            case 4:
                rows = bodies({key: chance.choice([None, ["sword", 3]]) for key in some}, name)
                loaders[which].store(pending[which], rows)  # type: ignore[arg-type]
            case 5:
                loaders[which].fail(pending[which], {f"{name}:{key}": "no" for key in some})  # type: ignore[arg-type]
            case 6:
                let_pass(redis, 6)
            case 7:
                RowControls(name).set_delay(chance.choice([5, 9]), *some)
        assert counts() == members(redis)
