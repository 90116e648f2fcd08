"""What the Semaphores page shows and does, with real semaphores."""

from __future__ import annotations

import os
import re
import socket

import pytest
from django.contrib.admin.models import LogEntry

from components.control_room.names import shortened
from components.exceptions import PermitLost
from components.services.semaphores import SemaphoreControls, SemaphoreReader
from components.services.semaphores.keys import SemaphoreKeys
from components.templatetags.control_room import legible
from tests.control_room.pages import addresses, done, logged, round_trips, rows_of, text_of, words
from tests.locks.admin import holdings
from tests.locks.admin.test_locks_page import AWKWARD

ROOT = "/admin/components/semaphore/"
DASH = "\N{EN DASH}"

url = addresses(ROOT)

pytestmark = pytest.mark.usefixtures("redis")


@pytest.fixture
def viewer(staff):
    return staff("view_semaphore")


@pytest.fixture
def operator(staff):
    return staff("change_semaphore")


def page(client, name="", /, **query):
    return text_of(client, ROOT, name, **query)


def evict_url(permit, name="api"):
    return url("evict", semaphore=name, permit=permit.id)


def test_while_there_is_none_one_sentence_says_how_that_changes(viewer):
    assert rows_of(viewer, ROOT) == [
        "No semaphore was used in the last month. Semaphore(name, limit=5).acquire() creates one."
    ]


def test_a_semaphore_is_listed_with_how_it_stands_and_how_it_went(viewer, redis):
    holdings.permit("api", weight=2)
    holdings.permit("api")
    holdings.waits_for_permit("api", count=4)
    figures = {"waits": 4, "waited": 6_000_000, "longest": 2_500_000, "given_up": 7, "expired": 1}
    redis.hset(SemaphoreKeys("api").stats, mapping=figures)

    assert rows_of(viewer, ROOT) == [
        "api 3 of 3 3 4 2 4 after a wait 1.5 s longest 2.5 s 7 1 at most 3 in use"
    ]


def test_a_semaphore_that_nobody_had_to_wait_for_has_no_waits(viewer):
    holdings.permit("api")

    assert rows_of(viewer, ROOT) == [f"api 1 of 3 3 0 1 {DASH} 0 0 at most 1 in use"]


def test_a_semaphore_shows_how_full_it_was(viewer, redis):
    permit = holdings.permit("api", weight=2)
    holdings.permit("api").release()
    permit.release()
    SemaphoreControls("idle").set_limit(4)

    shown, listed = page(viewer, "semaphore/", semaphore="api"), rows_of(viewer, ROOT)

    assert "How full it was Permits in use, of 3 in slices of 1 min, " in shown
    assert re.search(r"Permits in use at most 3 at [\d:]+ The same as a table", shown)
    assert "The highest number of each 1 min, the latest first" in shown
    assert listed[0].endswith(" 0 at most 3 in use")
    assert listed[1].startswith("idle 0 of 4")
    assert listed[1].endswith(f" 0 {DASH}")
    assert "How full it was" not in page(viewer, "semaphore/", semaphore="idle")


def test_a_limit_that_was_set_by_hand_says_so(viewer):
    holdings.permit("api")
    SemaphoreControls("api").set_limit(5)
    SemaphoreControls("planned").set_limit(1234)

    listed = rows_of(viewer, ROOT)

    assert listed[0].startswith("api 1 of 5 5 set by hand; 3 in the code 0 1")
    assert listed[1].startswith("planned 0 of 1,234 1,234 set by hand 0 0")
    assert "Limit 5, set by hand; 3 in the code " in page(viewer, "semaphore/", semaphore="api")
    assert "Limit 1,234, set by hand " in page(viewer, "semaphore/", semaphore="planned")


def test_a_long_list_has_pages_that_hold_each_semaphore_once(viewer):
    names = {f"api {number}" for number in range(120)}
    for name in names:
        SemaphoreControls(name).set_limit(5)

    pages = [rows_of(viewer, ROOT, offset=offset) for offset in (0, 50, 100)]

    assert [len(rows) for rows in pages] == [50, 50, 20]
    assert {" ".join(row.split()[:2]) for rows in pages for row in rows} == names
    assert f"51{DASH}100 of 120" in page(viewer, offset=50)


def test_a_semaphore_whose_figures_are_forgotten_breaks_no_list(viewer, redis):
    holdings.permit("api").release()
    redis.delete(SemaphoreKeys("api").stats)

    assert rows_of(viewer, ROOT) == [f"api 0 {DASH} 0 0 {DASH} 0 0 at most 1 in use"]


@pytest.mark.parametrize("text", ["api", " api  "])
def test_a_semaphore_is_found_by_its_whole_name(viewer, text):
    holdings.permit("api")

    assert viewer.get(ROOT, {"q": text}).url == url("semaphore", semaphore="api")


@pytest.mark.parametrize("text", ["ap", "API", "x" * 600])
def test_a_missing_result_is_reported(viewer, text):
    holdings.permit("api")

    response = viewer.get(ROOT, {"q": text})

    assert f"No semaphore with the name “{text}” was used in the last month." in words(response)
    assert "live.js" not in response.text


def test_a_semaphore_has_a_page_of_its_own(viewer):
    holdings.permit("api", weight=2)
    holdings.waits_for_permit("api", weight=3)

    text = page(viewer, "semaphore/", semaphore="api")
    [holder] = rows_of(viewer, ROOT, "semaphore/", semaphore="api")
    [waiter] = rows_of(viewer, ROOT, "semaphore/", table=1, semaphore="api")

    place = re.escape(f"process {os.getpid()} on {socket.gethostname()}")
    assert "Permits in use 2 of 3 Limit 3, as in the code Callers waiting 1 " in text
    assert "Permits granted 1 Of these, after a wait 0" in text
    assert re.fullmatch(rf"jill MainThread, {place} 2 [\d:]+ .* ago (30|29|2\d) s", holder)
    assert re.fullmatch(rf"MainThread {place} 3 [\d.]+ m?s", waiter)


def test_holders_are_listed_by_page(viewer):
    for number in range(60):
        holdings.permit("api", limit=100, owner=f"buyer {number}")

    first = rows_of(viewer, ROOT, "semaphore/", semaphore="api")
    second = rows_of(viewer, ROOT, "semaphore/", semaphore="api", offset=50)

    assert [len(first), len(second)] == [50, 10]
    assert first[0].startswith("buyer 0")
    assert second[-1].startswith("buyer 59")


def test_one_that_nobody_holds_says_so(viewer):
    holdings.permit("api").release()

    text = page(viewer, "semaphore/", semaphore="api")

    assert "Nobody holds a permit." in text
    assert "Nobody waits for a permit." in text


def test_the_limit_is_changed_with_a_form_and_logged(operator):
    holdings.permit("api")
    address = url("limit", semaphore="api")

    asked = words(operator.get(address))
    said = done(operator, address, limit="1234")

    assert "The limit is 3, as in the code. Permits in use: 1; callers waiting: 0." in asked
    assert SemaphoreControls("api").info().limit == 1234
    assert said == logged()
    assert said == ["Set the limit of the semaphore api to 1,234. It was 3, as in the code."]
    assert LogEntry.objects.get().object_repr == "api"


def test_the_form_has_the_limit_in_force(operator):
    holdings.permit("api")
    SemaphoreControls("api").set_limit(5)

    html = operator.get(url("limit", semaphore="api")).text

    [field] = re.findall(r'<input type="number"[^>]*>', html)
    assert 'value="5"' in field
    assert 'min="1"' in field
    assert "required" in field


@pytest.mark.parametrize(
    ("limit", "reason"),
    [
        ("", "This field is required."),
        ("0", "Ensure this value is greater than or equal to 1."),
        ("-1", "Ensure this value is greater than or equal to 1."),
        ("five", "Enter a whole number."),
        ("1.5", "Enter a whole number."),
        ("nan", "Enter a whole number."),
        ("2147483648", "Ensure this value is less than or equal to 2147483647."),
        ("9" * 5000, "Enter a whole number."),
    ],
)
def test_an_invalid_limit_is_shown_at_its_field_and_changes_nothing(operator, limit, reason):
    holdings.permit("api")

    response = operator.post(url("limit", semaphore="api"), {"limit": limit})

    assert reason in words(response)
    assert 'aria-invalid="true"' in response.text
    assert SemaphoreControls("api").info().override is None
    assert logged() == []


def test_the_limit_that_is_in_force_by_hand_already_is_not_logged_again(operator):
    holdings.permit("api")
    SemaphoreControls("api").set_limit(5)

    assert done(operator, url("limit", semaphore="api"), limit="5") == [
        "The limit of the semaphore api is 5 already."
    ]
    assert logged() == []


def test_more_holders_than_a_smaller_limit_allows_are_marked(operator):
    permits = [holdings.permit("api") for _ in range(3)]

    done(operator, url("limit", semaphore="api"), limit="1")

    html = operator.get(url("semaphore", semaphore="api")).text
    assert '<span class="bad">3 of 1</span>' in html
    assert len(SemaphoreControls("api").holders()) == len(permits)


def test_a_limit_is_reset_to_what_the_code_declares(operator):
    holdings.permit("api")
    SemaphoreControls("api").set_limit(5)
    address = url("reset", semaphore="api")

    asked = words(operator.get(address))
    said = done(operator, address)
    again = done(operator, address)

    assert "The limit is 5, set by hand; 3 in the code." in asked
    assert "The limit in the code applies again, in all processes and at once: 3." in asked
    assert said == logged()
    assert said[0].startswith("Reset the limit of the semaphore api to that in the code. It was 5")
    assert again == ["The limit of the semaphore api is already that in the code."]
    assert SemaphoreControls("api").info().limit == 3


def test_after_the_reset_of_what_no_code_declares_the_list_is_shown(operator):
    SemaphoreControls("planned").set_limit(5)

    response = operator.post(url("reset", semaphore="planned"), follow=True)

    assert response.request["PATH_INFO"] == ROOT
    assert "Reset the limit of the semaphore planned" in words(response)


def test_evicting_asks_first_and_says_what_will_happen(operator):
    permit = holdings.permit("api", limit=1)
    holdings.waits_for_permit("api", limit=1)

    text = words(operator.get(evict_url(permit)))

    assert (
        f"The permit is held by jill (process {os.getpid()} on {socket.gethostname()}, MainThread)." in text
    )
    assert "It counts as 1, and expires in" in text
    assert "The permit becomes free at once. 1 caller waits." in text
    assert "The holder is not stopped." in text
    permit.refresh()


def test_one_holder_is_evicted_logged_and_told(operator):
    evicted, kept = holdings.permit("api", owner="jack"), holdings.permit("api")

    said = done(operator, evict_url(evicted))
    again = done(operator, evict_url(evicted))

    assert said == logged()
    assert said[0].startswith("Took a permit of the semaphore api away from jack (process")
    assert again == ["Nothing to take away: nobody holds that permit of the semaphore api any more."]
    with pytest.raises(PermitLost):
        evicted.refresh()
    kept.refresh()


def test_a_holder_that_has_left_meanwhile_is_not_evicted(operator):
    permit = holdings.permit("api")
    address = evict_url(permit)
    permit.release()

    text = words(operator.get(address))

    assert "Nothing to take away: nobody holds that permit of the semaphore api any more." in text


@pytest.mark.slow
@pytest.mark.parametrize("name", AWKWARD)
def test_a_semaphore_of_any_name_can_be_listed_found_changed_and_looked_up(operator, name):
    permit = holdings.permit(name)

    [row] = rows_of(operator, ROOT)
    detail = page(operator, "semaphore/", semaphore=name)
    done(operator, url("limit", semaphore=name), limit="9")
    evicted = done(operator, evict_url(permit, name))
    entry = LogEntry.objects.latest("pk")
    logged_page = operator.get(entry.get_admin_url(), follow=True)
    history = operator.get(re.sub("change/$", "history/", entry.get_admin_url()))

    shown = legible(name)
    assert row.startswith(f"{shortened(shown)} 1 of 3")
    assert "jill" in detail
    assert evicted[0].startswith(f"Took a permit of the semaphore {shown} away from ")
    assert logged_page.request["PATH_INFO"] == f"{ROOT}semaphore/"
    assert "Permits in use 0 of 9" in words(logged_page)
    assert f"Set the limit of the semaphore {shown} to 9." in words(history)
    assert "\x00" not in entry.object_id + entry.object_repr + entry.change_message
    assert "<script>alert" not in logged_page.text + history.text


@pytest.mark.parametrize("permit", ["", "odd", "a" * 12 + "/1/x"])
def test_a_permit_of_another_semaphore_is_a_404(operator, permit):
    holdings.permit("api")

    assert operator.get(url("evict", semaphore="api", permit=permit)).status_code == 404


@pytest.mark.parametrize(
    ("name", "most"), [("", 5), ("semaphore/", 5), ("limit/", 2), ("reset/", 2), ("evict/", 4)]
)
def test_a_page_takes_so_many_round_trips_and_no_more_with_more_semaphores(operator, name, most):
    permit = holdings.permit("api", limit=1)
    holdings.waits_for_permit("api", limit=1)
    address = f"{evict_url(permit).replace('evict/', name)}"
    operator.get(address)

    few = round_trips(operator, address)
    for number in range(120):
        holdings.permit(f"api {number}")

    assert few == most
    assert round_trips(operator, address) == most
    assert SemaphoreReader().count() == 121
