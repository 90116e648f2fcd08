"""What the Locks page shows and does, with real locks."""

from __future__ import annotations

import os
import re
import socket

import pytest
from django.contrib.admin.models import LogEntry

from components.control_room.names import shortened
from components.exceptions import LockLost
from components.services.counters import flush, measure
from components.services.locks import LockReader
from components.services.locks.keys import LockKeys
from components.services.locks.named import key_of
from components.templatetags.control_room import legible
from tests.control_room.pages import addresses, done, logged, round_trips, rows_of, text_of, words
from tests.locks.admin import holdings

ROOT = "/admin/components/lock/"
DASH = "\N{EN DASH}"
AWKWARD = [
    "a/b ü%{}&?#'\"<script>alert(1)</script>",
    "..",
    ".",
    "a/../b",
    "  ",
    "%2e%2e%2f",
    "q?x=1&key=no",
    "日本",
    "two\nlines",
    "a\x00b",
    "turned \u202eround",
    "x" * 450,
]

url = addresses(ROOT)

pytestmark = pytest.mark.usefixtures("redis")


@pytest.fixture
def viewer(staff):
    return staff("view_lock")


@pytest.fixture
def operator(staff):
    return staff("change_lock")


def page(client, name="", /, **query):
    return text_of(client, ROOT, name, **query)


def holder_of(name):
    """For the query, as the button has it."""
    info = LockReader().find(name)
    return legible(info.token)


def release_url(name, **query):
    return url("release", **{"key": key_of(name), "holder": holder_of(name), **query})


def test_while_nothing_is_held_one_sentence_says_how_that_changes(viewer):
    assert rows_of(viewer, ROOT) == [
        "No lock is held now. Code acquires one by with lock(name):, and it is listed here until it is released."
    ]


def test_a_lock_is_listed_with_who_holds_it_and_how_it_went(viewer, redis):
    holdings.contended()
    holdings.held(timeout=3600)
    holdings.waits("item:42", "jack", "joan")
    figures = {"waits": 4, "waited": 6_000_000, "longest": 2_500_000, "expired": 1}
    redis.hset(LockKeys.named("item:42").state, mapping=figures)

    [row] = rows_of(viewer, ROOT)

    who, figures = row.split(" ago ")
    place = re.escape(f"MainThread, process {os.getpid()} on {socket.gethostname()}")
    assert re.fullmatch(rf"item:42 jill {place} [\d:]+ \d+ m?s", who)
    assert re.fullmatch(r"(59 min \d+ s|1 h) 2 3 4 after a wait 1\.5 s longest 2\.5 s 1", figures)


def test_a_lock_that_nobody_had_to_wait_for_has_no_waits(viewer):
    holdings.held(timeout=None)

    [row] = rows_of(viewer, ROOT)

    assert row.endswith(f"never 0 1 {DASH} 0")


def test_the_longest_holder_comes_first(viewer):
    for name in ("a", "b", "c", "d"):
        holdings.held(name)

    assert [row.split()[0] for row in rows_of(viewer, ROOT)] == ["a", "b", "c", "d"]


def test_a_long_list_has_pages_that_hold_each_lock_once(viewer):
    names = {f"item:{number}" for number in range(120)}
    for name in names:
        holdings.held(name)

    pages = [rows_of(viewer, ROOT, offset=offset) for offset in (0, 50, 100)]

    assert [len(rows) for rows in pages] == [50, 50, 20]
    assert {row.split()[0] for rows in pages for row in rows} == names
    assert f"51{DASH}100 of 120" in page(viewer, offset=50)


@pytest.mark.parametrize("text", ["item:42", "  item:42 ", key_of("item:42")])
@pytest.mark.parametrize("is_held", [True, False])
def test_a_lock_is_found_by_its_whole_name_or_key(viewer, text, is_held):
    if is_held:
        holdings.held()
    else:
        holdings.contended()

    response = viewer.get(ROOT, {"q": text})

    assert response.url == f"{url('lock', key=key_of('item:42'))}"


@pytest.mark.parametrize("text", ["item", "item:4", "ITEM:42", "x" * 600, "\ud83d\ude00"])
def test_a_missing_result_is_reported(viewer, text):
    holdings.held()
    text = text.encode("utf-16", "surrogatepass").decode("utf-16")

    response = viewer.get(ROOT, {"q": text})

    nothing = f"No lock with the name or key “{text}” is held, and nobody has waited for one or lost one"
    assert f"{nothing} in the last day." in words(response)
    assert "All held locks" in words(response)
    assert "live.js" not in response.text


def test_a_search_for_nothing_is_none(viewer):
    holdings.held()

    assert len(rows_of(viewer, ROOT, q="  ")) == 1


@pytest.mark.parametrize("value", ["string", "hash"])
def test_a_key_that_is_no_lock_is_neither_shown_nor_deleted(operator, redis, value):
    redis.set("session:1", "secret") if value == "string" else redis.hset("session:1", "a", "secret")

    found = operator.get(ROOT, {"q": "session:1"})
    shown = operator.get(url("lock", key="session:1"))
    posted = operator.post(url("release", key="session:1", holder="secret"))

    assert "No lock with the name or key" in words(found)
    assert (shown.status_code, posted.status_code) == (404, 404)
    assert not any("secret" in response.text for response in (found, shown))
    assert redis.exists("session:1")


def test_a_lock_has_a_page_of_its_own(viewer):
    held = holdings.held(timeout=3600)
    holdings.waits("item:42", "jack", "joan")

    text = page(viewer, "lock/", key=key_of("item:42"))

    assert "State Held Held by jill MainThread, process" in text
    assert f"Fencing token {held.fence} " in text
    assert f"Key {key_of('item:42')}" in text
    assert re.search("Expires in (59 min 59 s|1 h|59 min)", text)
    assert "Times acquired 1 Of these, after a wait 0" in text
    waiters = rows_of(viewer, ROOT, "lock/", key=key_of("item:42"))
    assert [re.sub(r" [\d.]+ m?s$", "", row) for row in waiters] == [
        "jack worker, process 7 on shop-2",
        "joan worker, process 7 on shop-2",
    ]


def test_the_first_fifty_of_many_who_wait_are_shown(viewer):
    holdings.held()
    holdings.waits("item:42", *(f"buyer {number}" for number in range(60)))

    text = page(viewer, "lock/", key=key_of("item:42"))

    assert "Callers waiting, in order: the first 50 of 60" in text
    assert "buyer 49" in text
    assert "buyer 50" not in text


def test_a_lock_that_is_free_says_so_and_cannot_be_released(operator):
    holdings.contended()

    text = page(operator, "lock/", key=key_of("item:42"))

    assert "State Free Last acquired" in text
    assert "Nobody waits for it." in text
    assert "Release by force" not in text


def test_the_page_of_a_lock_that_was_released_meanwhile_says_so(operator):
    held = holdings.held()
    address = url("lock", key=key_of("item:42"))
    asked = url("release", key=key_of("item:42"), holder=holder_of("item:42"))
    held.release()

    text, posted = words(operator.get(address)), words(operator.post(asked, follow=True))

    assert "State Free" in text
    assert "Last acquired" not in text
    assert "Last fencing token" not in text
    assert "Nothing to release" in posted


def test_a_lock_that_was_never_used_is_free(operator):
    text = page(operator, "lock/", key=key_of("item:42"))

    assert "State Free" in text
    assert "Nobody waits for it." in text
    assert "Release by force" not in text


def test_a_key_and_a_name_that_are_the_same_are_two_locks(viewer):
    holdings.held("report", owner="of the name")
    holdings.own_key("report", token="h/1/t/of the key/x")

    assert "of the name" in page(viewer, "lock/", key=key_of("report"))
    assert "of the key" in page(viewer, "lock/", key="report")
    assert "The code that uses this lock chose its key, and gave it no name." in page(
        viewer, "lock/", key="report"
    )


def test_a_holder_of_whom_nothing_is_known_is_shown_by_the_token(operator):
    holdings.own_key("report", token="0a1b")

    [row] = rows_of(operator, ROOT)
    said = done(operator, url("release", key="report", holder="0a1b"))

    assert row.startswith("report a key, not a name Not known 0a1b")
    assert "It was held by an unknown holder with the token 0a1b, since" in said[0]


def test_a_token_that_is_no_text_can_be_released_too(operator):
    holdings.own_key("report", token=b"\xff\x00")
    html = operator.get(url("lock", key="report")).text
    [button] = re.findall(r'class="button deletes" href="([^"]*)"', html)

    done(operator, button.replace("&amp;", "&"))

    assert LockReader().held() == []
    assert r"\udcff\x00" in logged()[0]


def test_releasing_asks_first_and_says_what_will_happen(operator):
    held = holdings.held(timeout=3600)
    holdings.waits("item:42", "jack", "joan")

    text = words(operator.get(release_url("item:42")))

    assert "Release the lock item:42 by force" in text
    assert f"It is held by jill (process {os.getpid()} on {socket.gethostname()}, MainThread), since" in text
    assert f"with the fencing token {held.fence}" in text
    assert re.search(r"It expires in (59 min \d+ s|1 h) if it is not renewed\.", text)
    assert "Callers waiting for it: 2. One of them gets it at once." in text
    assert "The holder is not stopped." in text
    assert held.owned()


def test_a_lock_released_by_force_is_free_logged_and_lost_to_its_holder(operator):
    held = holdings.held()

    said = done(operator, release_url("item:42"))

    assert said == logged()
    assert said[0].startswith("Released the lock item:42 by force. It was held by jill (process")
    assert re.search(r"since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC, ", said[0])
    assert said[0].endswith(f"with the fencing token {held.fence}.")
    entry = LogEntry.objects.get()
    assert (entry.object_repr, entry.user.username) == ("item:42", "staff ('change_lock',)")
    with pytest.raises(LockLost):
        held.release()
    assert "Times released by force 1" in page(operator, "lock/", key=key_of("item:42"))


def test_a_waiting_call_is_woken(operator, redis):
    holdings.held()
    holdings.waits("item:42", "jack")

    done(operator, release_url("item:42"))

    assert redis.keys(f"{LockKeys.named('item:42').wake}:*jack*")


def test_another_holder_than_the_one_who_was_seen_keeps_the_lock(operator):
    seen = holdings.held(owner="seen")
    address = release_url("item:42")
    seen.release()
    later = holdings.held(owner="later")

    asked = words(operator.get(address))
    said = done(operator, address)

    nothing = "Nothing to release: that holder no longer holds the lock item:42."
    assert nothing in asked
    assert said == [nothing]
    assert later.owned()
    assert not LogEntry.objects.exists()


def test_released_twice_it_is_released_and_logged_once(operator):
    holdings.held()
    address = release_url("item:42")

    assert done(operator, address)[0].startswith("Released")
    assert done(operator, address)[0].startswith("Nothing to release")
    assert len(logged()) == 1


@pytest.mark.parametrize("name", AWKWARD)
def test_a_lock_of_any_name_can_be_listed_found_released_and_looked_up(operator, name):
    holdings.held(name)

    [row] = rows_of(operator, ROOT)
    detail = page(operator, "lock/", key=key_of(name))
    said = done(operator, release_url(name))
    entry = LogEntry.objects.get()
    logged_page = operator.get(entry.get_admin_url(), follow=True)
    history = operator.get(re.sub("change/$", "history/", entry.get_admin_url()))

    shown = legible(name)
    assert row.startswith(f"{shortened(shown)} jill")
    assert "Held by jill" in detail
    assert said[0].startswith(f"Released the lock {shown} by force.")
    assert logged_page.request["PATH_INFO"] == f"{ROOT}lock/"
    assert "State Free" in words(logged_page)
    assert f"Released the lock {shown} by force." in words(history)
    assert "\x00" not in entry.object_id + entry.object_repr + entry.change_message
    assert "<script>alert" not in logged_page.text + history.text


def test_a_lock_at_any_key_of_its_own_has_its_pages(operator):
    for name in AWKWARD:
        holdings.own_key(name)

    for name in AWKWARD:
        assert "State Held" in page(operator, "lock/", key=name)
        assert done(operator, url("release", key=name, holder=legible(holder_at(name))))
        assert "State Free" in page(operator, "lock/", key=name)


def holder_at(key):
    return LockReader().at(key).token


def test_staff_who_may_view_counters_see_for_how_long_locks_were_held(staff, settings):
    for name in ("item:1", "item:2", "report"):
        holdings.held(name)
    measure("locks-held-us:item:*", 90_000_000)
    flush()
    clerk, viewer = staff("view_lock"), staff("view_lock", "view_counter")
    settings.COMPONENTS = {**settings.COMPONENTS, "COUNT_SERVICES": True}

    rows = {row.split()[0]: row for row in rows_of(viewer, ROOT)}

    assert rows["item:1"].endswith(" held 1 min 30 s")
    assert rows["item:2"].endswith(" held 1 min 30 s")
    assert rows["report"].endswith(f" {DASH}")
    assert viewer.get(ROOT).content.count(b'class="sparkline"') == 2
    assert round_trips(viewer, ROOT) == 7
    assert "Last two hours" not in page(clerk)
    assert round_trips(clerk, ROOT) == 6


@pytest.mark.parametrize(("name", "most"), [("", 6), ("lock/", 5), ("release/", 3)])
def test_a_page_takes_so_many_round_trips_and_no_more_with_more_locks(operator, name, most):
    holdings.held()
    holdings.waits("item:42", "jack")
    address = f"{ROOT}{name}?key={key_of('item:42')}&holder={holder_of('item:42')}"
    operator.get(address)

    few = round_trips(operator, address)
    for number in range(120):
        holdings.held(f"item:{number + 100}")

    assert few == most
    assert round_trips(operator, address) <= most


def test_a_refresh_gets_its_part_alone(viewer):
    part = viewer.get(ROOT, headers={"X-Live": "1"}).text

    assert part.startswith('<div id="live" data-live')
    assert "<html" not in part
