"""What the Locks page shows and does, with real locks."""

import os
import re
import socket

import pytest
from django.contrib.admin.models import LogEntry

from components.exceptions import LockLost
from components.formatting import legible
from components.services.counters import flush, measure
from components.services.locks import LockReader
from components.services.locks.keys import LockKeys
from components.services.locks.named import key_of
from tests.control_room.pages import DASH, addresses, done, logged, round_trips, rows_of, texts_below, words
from tests.fixtures.admin import allowed
from tests.locks.admin import holdings

ROOT = "/admin/components/lock/"

url = addresses(ROOT)
page = texts_below(ROOT)

pytestmark = pytest.mark.usefixtures("redis")
viewer = allowed("view_lock")
operator = allowed("change_lock")


def holder_of(name):
    """For the query, as the button has it."""
    info = LockReader().find(name)
    return legible(info.token)


def release_url(name, **query):
    return url("release", **{"key": key_of(name), "holder": holder_of(name), **query})


def test_locks_are_listed_with_who_holds_them_and_how_it_went_the_longest_held_first(viewer, redis):
    holdings.contended()
    holdings.held(timeout=3600)
    holdings.waits("item:42", "jack", "joan")
    figures = {"waits": 4, "waited": 6_000_000, "longest": 2_500_000, "expired": 1}
    redis.hset(LockKeys.named("item:42").state, mapping=figures)
    for name in "dcba":
        holdings.held(name, timeout=None)

    rows = rows_of(viewer, ROOT)

    who, figures = rows[0].split(" ago ")
    place = re.escape(f"MainThread, process {os.getpid()} on {socket.gethostname()}")
    assert re.fullmatch(rf"item:42 jill {place} [\d:]+ \d+ m?s", who)
    assert re.fullmatch(r"(59 min \d+ s|1 h) 2 3 4 after a wait 1\.5 s longest 2\.5 s 1", figures)
    assert [row.split()[0] for row in rows[1:]] == ["d", "c", "b", "a"]
    assert all(row.endswith(f"never 0 1 {DASH} 0") for row in rows[1:])


@pytest.mark.parametrize("make", [holdings.held, holdings.contended])
def test_a_lock_is_found_by_its_whole_name_or_key(viewer, make):
    make()

    for text in ("item:42", "  item:42 ", key_of("item:42")):
        assert viewer.get(ROOT, {"q": text}).url == url("lock", key=key_of("item:42"))
    for wrong in ("item:4", "x" * 600):
        assert viewer.get(ROOT, {"q": wrong}).status_code == 200


def test_a_key_that_is_no_lock_is_neither_shown_nor_deleted(operator, redis):
    redis.set("session:1", "secret")

    assert "secret" not in operator.get(ROOT, {"q": "session:1"}).text
    for key in ("session:1", "x" * 900, ""):
        assert operator.get(url("lock", key=key)).status_code == 404
        assert operator.post(url("release", key=key, holder="secret")).status_code == 404
    assert redis.exists("session:1")


def test_a_lock_has_a_page_of_its_own(viewer):
    held = holdings.held(timeout=3600)
    holdings.waits("item:42", *(f"buyer {number}" for number in range(60)))

    text = page(viewer, "lock/", key=key_of("item:42"))

    assert "State Held Held by jill MainThread, process" in text
    assert f"Fencing token {held.fence} " in text
    assert f"Key {key_of('item:42')}" in text
    assert re.search("Expires in (59 min 59 s|1 h|59 min)", text)
    assert "Times acquired 1 Of these, after a wait 0" in text
    assert "the first 50 of 60" in text
    waiters = rows_of(viewer, ROOT, "lock/", key=key_of("item:42"))
    assert [re.sub(r" [\d.]+ m?s$", "", row) for row in waiters] == [
        f"buyer {number} worker, process 7 on shop-2" for number in range(50)
    ]


@pytest.mark.parametrize("make", [lambda: None, holdings.contended, lambda: holdings.held().release()])
def test_a_free_lock_cannot_be_released(operator, make):
    make()

    text = page(operator, "lock/", key=key_of("item:42"))

    assert "State Free" in text
    assert "Release by force" not in text
    assert operator.post(url("release", key=key_of("item:42"), holder="")).status_code == 302
    assert not LogEntry.objects.exists()


def test_a_holder_of_whom_nothing_is_known_is_shown_by_the_token(operator):
    holdings.held("report", owner="of the name")
    holdings.own_key("report", token=b"\xff0a1b")

    row = rows_of(operator, ROOT)[1]
    html = operator.get(url("lock", key="report")).text
    [button] = re.findall(r'class="button deletes" href="([^"]*)"', html)
    said = done(operator, button.replace("&amp;", "&"))

    assert row.startswith(r"report a key, not a name Not known \udcff0a1b")
    assert r"with the token \udcff0a1b, since" in said[0]
    assert [info.holder.owner for info in LockReader().held()] == ["of the name"]


def test_a_release_by_force_asks_first_is_logged_once_and_lost_to_its_holder(operator):
    held = holdings.held(timeout=3600)
    holdings.waits("item:42", "jack", "joan")
    address = release_url("item:42")

    text = words(operator.get(address))

    assert f"It is held by jill (process {os.getpid()} on {socket.gethostname()}, MainThread), since" in text
    assert f"with the fencing token {held.fence}" in text
    assert re.search(r"It expires in (59 min \d+ s|1 h) if it is not renewed\.", text)
    assert "Callers waiting for it: 2." in text
    assert held.owned()

    said = done(operator, address)
    assert done(operator, address) != said

    assert said == logged()
    assert re.search(r"jill \(process.* since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC, ", said[0])
    assert said[0].endswith(f"with the fencing token {held.fence}.")
    with pytest.raises(LockLost):
        held.release()
    assert "Times released by force 1" in page(operator, "lock/", key=key_of("item:42"))


def test_another_holder_than_the_one_who_was_seen_keeps_the_lock(operator):
    seen = holdings.held(owner="seen")
    address = release_url("item:42")
    seen.release()
    later = holdings.held(owner="later")

    assert "with the fencing token" not in words(operator.get(address))
    done(operator, address)

    assert later.owned()
    assert not LogEntry.objects.exists()


def test_staff_who_may_view_counters_see_for_how_long_locks_were_held(staff, settings):
    for name in ("item:1", "report"):
        holdings.held(name)
    measure("locks-held-us:item:*", 90_000_000)
    flush()
    clerk, viewer = staff("view_lock"), staff("view_lock", "view_counter")
    settings.COMPONENTS = {**settings.COMPONENTS, "COUNT_SERVICES": True}

    rows = {row.split()[0]: row for row in rows_of(viewer, ROOT)}

    assert rows["item:1"].endswith(" held 1 min 30 s")
    assert rows["report"].endswith(f" {DASH}")
    assert viewer.get(ROOT).content.count(b'class="sparkline"') == 1
    assert b"sparkline" not in clerk.get(ROOT).content
    assert (round_trips(viewer, ROOT), round_trips(clerk, ROOT)) == (8, 7)
