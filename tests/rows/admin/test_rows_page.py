"""What the Cached rows page shows and does, with real rows."""

import re

import pytest
from django.contrib.admin.models import LogEntry

from components.services.rows import Loader, RowReader
from components.services.rows.admin import row_verbs
from tests.control_room.pages import (
    DASH,
    addresses,
    done,
    logged,
    rows_of,
    texts_below,
    words,
)
from tests.fixtures.admin import allowed
from tests.support.rows import cache, claimed, let_pass, let_whole_delays_pass, refresh

ROOT = "/admin/components/cachedrow/"
SIZE = r"\d+\sbytes"

url = addresses(ROOT)
page = texts_below(ROOT)

pytestmark = pytest.mark.usefixtures("redis")
viewer = allowed("view_cachedrow")
operator = allowed("refresh_cachedrow", "change_cachedrow", "remove_cachedrow")


def fill(count=3, *, name="items", delay=60):
    wanted = [str(number) for number in range(1, count + 1)]
    cache(name).schedule_many(dict.fromkeys(wanted, delay))
    refresh({key: ["sword", 3] for key in wanted}, name=name)
    let_whole_delays_pass()


def fail(name="items", key="9", error="ValueError: <b>no</b>"):
    cache(name).schedule(key, 60)
    loader = Loader()
    loader.fail(loader.claim().claims, {f"{name}:{key}": error})


def listed(client, name="", /, **query):
    """The rows in the list of rows, which is the last table."""
    return rows_of(client, ROOT, name, table=-1, **query)


def test_rows_are_listed_with_when_they_are_due_how_old_and_large_they_are(viewer, redis):
    fill()
    let_pass(redis, 20)
    fail()

    rows = listed(viewer)

    assert re.fullmatch(rf"items:9 [\d:]+ .* 1 min {DASH} {DASH} 1", rows[0])
    assert re.fullmatch(rf"items:\d [\d:]+ in .* {DASH} 1 min \d+ s {SIZE} 0", rows[1])
    assert "items no such model in this release 4 1" in page(viewer)
    assert "Rows reloaded regularly 4 Could not be loaded 1" in page(viewer)
    told = r"State In the cache Next load [\d:]+ in \d+ s .* Reloaded every 1 min .* Age of the copy 2\d s"
    assert re.search(told, page(viewer, "row/", row="items:2"))
    assert viewer.get(ROOT, {"q": " items:2 "}).url == url("row", row="items:2")
    assert viewer.get(ROOT, {"q": "items"}).url == url("model", model="items")
    assert [row.split()[0] for row in rows_of(viewer, ROOT, q="TEM")] == ["items"]


def test_a_dead_daemon_is_noticed(viewer, redis):
    fill()
    assert "No daemon" not in page(viewer)
    let_pass(redis, 72)

    told = r"Some rows should have been loaded 1[2-9] s ago\. No daemon is running, .* manage\.py cacherows starts"
    for text in (page(viewer), page(viewer, "model/", model="items")):
        assert re.search(told, text)
    assert re.search(r" 1[2-9] s 1 min ", listed(viewer)[0])
    refresh({str(number): ["sword", 3] for number in range(1, 4)})
    assert "No daemon" not in page(viewer)


def test_a_row_that_nobody_schedules_or_that_is_deleted_says_so(operator):
    cache().schedule("1", 60)
    refresh({"1": None})
    cache().get_or_load(["2"], lambda keys: {"2": ["bow", 1]}, delay=60)

    deleted, read = (page(operator, "row/", row=f"items:{key}") for key in "12")

    assert "State Deleted in the database Next load none" in deleted
    assert "State In the cache Next load none" in read
    assert "Reload now…" not in read
    assert "There is nothing to reload" in words(operator.get(url("refresh", row="items:2")))
    assert operator.get(url("delay", row="items:2")).status_code == 404
    assert len(done(operator, url("remove", row="items:2"))) == 1
    assert RowReader().find("items", "2") is None


def test_failing_rows_are_listed_with_their_errors(viewer):
    fail()
    fail("boxes", "1", "OSError: turned \u202eround")

    assert [row.split()[0] for row in listed(viewer, "failing/")] == ["boxes:1", "items:9"]
    [row] = listed(viewer, "failing/", model="boxes")
    assert row.endswith(r"OSError: turned \u202eround")
    assert listed(viewer, "failing/", model="none") == ["Every row could be loaded."]
    assert "Why it could not be loaded Failures in a row 1" in page(viewer, "row/", row="items:9")
    assert "<b>no" not in viewer.get(url("row", row="items:9")).text
    assert viewer.get(url("failing", model="a:b")).status_code == 404


def test_a_row_is_refreshed_once_it_is_asked(operator):
    fill()
    address = url("refresh", row="items:2")
    assert "It is reloaded every 1 min." in words(operator.get(address))
    assert claimed(Loader().claim()) == []
    assert done(operator, address) == logged() == ["The row items:2 will be reloaded next."]
    assert LogEntry.objects.get().object_repr == "items:2"
    assert cache().get("2") is not None
    assert claimed(Loader().claim()) == ["2"]


def test_all_rows_of_a_model_are_refreshed_slowed_down_and_removed(operator):
    fill()
    fill(1, name="boxes")

    done(operator, url("refresh", model="items"))
    assert len(claimed(Loader().claim())) == 3
    done(operator, url("delay", model="items"), delay="7.5")
    assert {info.delay for info in RowReader().page() if info.name == "items"} == {7.5}
    done(operator, url("remove", model="items"))

    assert [re.search(r"\d", each)[0] for each in logged()] == ["3"] * 3
    assert [info.name for info in RowReader().names()] == ["boxes"]
    assert operator.get(url("remove", model="items")).status_code == 404


def test_work_too_large_for_one_request_continues_in_the_next(operator, monkeypatch):
    monkeypatch.setattr(row_verbs, "MOST", 50)
    fill(120)
    address, removed = url("remove", model="items"), 0

    for _ in range(5):
        response = operator.post(address)
        removed = sum(int(re.search(r"Removed (\d+)", each).group(1)) for each in logged())
        if removed == 120:
            break
        assert re.search(r"About \d+% are left", logged()[0])
        address = response.url
        assert re.match(r".*remove/\?model=items&bucket=\d+$", address)

    assert (removed, RowReader().count()) == (120, 0)


def test_a_delay_is_changed_and_what_is_none_is_refused(operator):
    fill()
    address = url("delay", row="items:2")
    assert 'value="60"' in operator.get(address).text

    for given in ("0", "-1", "nan", "x", "", "1e12"):
        response = operator.post(address, {"delay": given})
        assert response.status_code == 200
        assert "errorlist" in response.text
    done(operator, address, delay="60")  # as it is already
    assert logged() == []

    said = done(operator, address, delay="0.5")

    assert said == logged() == ["Set the interval of the row items:2 to 500 ms. It was 1 min."]
    assert [RowReader().find("items", key).delay for key in "21"] == [0.5, 60]
