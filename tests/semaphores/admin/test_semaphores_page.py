"""What the Semaphores page shows and does, with real semaphores."""

import os
import re
import socket

import pytest
from django.contrib.admin.models import LogEntry

from components.exceptions import PermitLost
from components.services.semaphores import SemaphoreControls
from components.services.semaphores.keys import SemaphoreKeys
from tests.control_room.pages import DASH, addresses, done, logged, rows_of, texts_below, words
from tests.fixtures.admin import allowed
from tests.locks.admin import holdings

ROOT = "/admin/components/semaphore/"

url = addresses(ROOT)
page = texts_below(ROOT)

pytestmark = pytest.mark.usefixtures("redis")
viewer = allowed("view_semaphore")
operator = allowed("change_semaphore")


def evict_url(permit, name="api"):
    return url("evict", semaphore=name, permit=permit.id)


def test_semaphores_are_listed_with_how_they_stand_and_how_it_went(viewer, redis):
    holdings.permit("api", weight=2)
    holdings.permit("api")
    holdings.waits_for_permit("api", count=4)
    figures = {"waits": 4, "waited": 6_000_000, "longest": 2_500_000, "given_up": 7, "expired": 1}
    redis.hset(SemaphoreKeys("api").stats, mapping=figures)
    holdings.permit("calm")
    SemaphoreControls("calm").set_limit(5)
    holdings.permit("forgotten").release()
    redis.delete(SemaphoreKeys("forgotten").stats)
    SemaphoreControls("idle").set_limit(1234)

    assert rows_of(viewer, ROOT) == [
        "api 3 of 3 3 4 2 4 after a wait 1.5 s longest 2.5 s 7 1 at most 3 in use",
        f"calm 1 of 5 5 set by hand; 3 in the code 0 1 {DASH} 0 0 at most 1 in use",
        f"forgotten 0 {DASH} 0 0 {DASH} 0 0 at most 1 in use",
        f"idle 0 of 1,234 1,234 set by hand 0 0 {DASH} 0 0 {DASH}",
    ]
    assert "Limit 5, set by hand; 3 in the code " in page(viewer, "semaphore/", semaphore="calm")
    assert 'class="chart' in viewer.get(url("semaphore", semaphore="calm")).text
    assert 'class="chart' not in viewer.get(url("semaphore", semaphore="idle")).text


def test_a_semaphore_has_a_page_of_its_own(viewer):
    holdings.permit("api", weight=2)
    holdings.waits_for_permit("api", weight=3)
    assert viewer.get(ROOT, {"q": " api  "}).url == url("semaphore", semaphore="api")
    for wrong in ("ap", "x" * 600):
        assert viewer.get(ROOT, {"q": wrong}).status_code == 200
        assert viewer.get(url("semaphore", semaphore=wrong)).status_code == 404

    text = page(viewer, "semaphore/", semaphore="api")
    [holder] = rows_of(viewer, ROOT, "semaphore/", semaphore="api")
    [waiter] = rows_of(viewer, ROOT, "semaphore/", table=1, semaphore="api")

    place = re.escape(f"process {os.getpid()} on {socket.gethostname()}")
    assert "Permits in use 2 of 3 Limit 3, as in the code Callers waiting 1 " in text
    assert "Permits granted 1 Of these, after a wait 0" in text
    assert re.fullmatch(rf"jill MainThread, {place} 2 [\d:]+ .* ago (30|2\d) s", holder)
    assert re.fullmatch(rf"MainThread {place} 3 [\d.]+ m?s", waiter)


def test_the_limit_is_changed_with_a_form_and_logged_once(operator):
    permits = [holdings.permit("api") for _ in range(3)]
    address = url("limit", semaphore="api")

    asked = words(operator.get(address))
    said = done(operator, address, limit="1")

    assert "The limit is 3, as in the code. Permits in use: 3; callers waiting: 0." in asked
    assert SemaphoreControls("api").info().limit == 1
    assert done(operator, address, limit="1") != said
    assert said == logged()
    assert LogEntry.objects.get().object_repr == "api"
    assert '<span class="bad">3 of 1</span>' in operator.get(url("semaphore", semaphore="api")).text
    assert len(SemaphoreControls("api").holders()) == len(permits)


@pytest.mark.parametrize("limit", ["", "0", "five", "1.5", "2147483648", "9" * 5000])
def test_an_invalid_limit_is_shown_at_its_field_and_changes_nothing(operator, limit):
    holdings.permit("api")

    response = operator.post(url("limit", semaphore="api"), {"limit": limit})

    assert 'aria-invalid="true"' in response.text
    assert SemaphoreControls("api").info().override is None
    assert logged() == []


def test_a_limit_is_reset_to_what_the_code_declares(operator):
    holdings.permit("api")
    for name in ("api", "planned"):
        SemaphoreControls(name).set_limit(5)
    address = url("reset", semaphore="api")

    assert "5, set by hand; 3 in the code" in words(operator.get(address))
    said = done(operator, address)
    assert done(operator, address) != said

    assert said == logged()
    assert SemaphoreControls("api").info().limit == 3
    response = operator.post(url("reset", semaphore="planned"), follow=True)
    assert response.request["PATH_INFO"] == ROOT  # no code has declared it, so it is gone


def test_evicting_asks_first_is_logged_once_and_told(operator):
    evicted, kept = holdings.permit("api", owner="jack"), holdings.permit("api", weight=2)
    holdings.waits_for_permit("api", count=2)
    address = evict_url(evicted)

    asked = words(operator.get(address))
    evicted.refresh()
    said = done(operator, address)
    assert done(operator, address) != said

    assert f"jack (process {os.getpid()} on {socket.gethostname()}, MainThread)" in asked
    assert "It counts as 1, and expires in" in asked
    assert "2 callers wait." in asked
    assert said == logged()
    assert "jack (process" in said[0]
    with pytest.raises(PermitLost):
        evicted.refresh()
    kept.refresh()
    assert "It counts as" not in words(operator.get(address))
    for permit in ("", "odd", "a" * 12 + "/1/x"):
        assert operator.get(url("evict", semaphore="api", permit=permit)).status_code == 404
