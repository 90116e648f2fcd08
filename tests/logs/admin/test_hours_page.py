"""What the page of hours shows, and how their filters are combined."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape

import pytest

from components.services.logs import note_job
from tests.control_room.pages import addresses, rows_of, words
from tests.logs.admin import traffic
from tests.support import traffic as counted

ROOT = "/admin/components/logjob/"
DAY = traffic.LAST

url = addresses(ROOT)

pytestmark = pytest.mark.usefixtures("redis")


@pytest.fixture
def viewer(staff):
    return staff("view_logjob")


@pytest.fixture
def hours():
    """Two days; the second has lines that were counted by day only, and lines without a time."""
    note_job("default")
    members = {"00/US/200": 100, "13/US/404": 40, "13/DE/200": 30, "13/unknown/4xx": 5, "/FR/": 25}
    before = DAY - timedelta(1)
    counted.add({f"hourly:{DAY}": members, f"hourly:{before}": {"23/US/500": 7}})
    counted.add({"days": {str(DAY): 210, str(before): 7}})


def text(client, page="hours", **query):
    return words(client.get(url(page, job="default", **query))).replace("\xa0", " ")


def tables(client, number, page="hours", **query):
    rows = rows_of(client, ROOT, f"{page}/", job="default", table=number, **query)
    return [row.replace("\xa0", " ") for row in rows]


def test_the_newest_day_is_opened_into_its_hours(viewer, hours):
    shown = text(viewer)

    assert "Lines 200 Without a time 25 Counted by day only 10" in shown
    assert tables(viewer, 0)[:11][-1].startswith("13:00 75")
    assert len(tables(viewer, 0)) == 24
    assert tables(viewer, 1)[:3] == ["200 130 65.0 %", "404 40 20.0 %", "no status in the line 25 12.5 %"]
    assert tables(viewer, 2) == ["US 140 70.0 %", "DE 30 15.0 %", "FR 25 12.5 %", "unknown 5 2.5 %"]


def test_filters_are_combined_and_can_be_removed(viewer, hours):
    query = {"hour": "13", "status": "4xx", "country": "US"}
    html = unescape(viewer.get(url("hours", job="default", **query)).text)

    assert "Lines 40 " in text(viewer, **query)
    for each in query:
        rest = "&".join(f"{name}={query[name]}" for name in ("country", "hour", "status") if name != each)
        assert f'href="?job=default&{rest}"' in html
    assert re.search(r"<option selected>13</option>", html)
    assert re.search(r"<option selected>4xx</option>", html)
    assert "No line fits." in text(viewer, hour="05")


def test_a_period_of_days_is_added_up(viewer, hours):
    assert "Lines 207 " in text(viewer, **{"from": "2011-10-09", "to": "2011-10-10"})
    assert "Lines 7 " in text(viewer, **{"from": "2011-10-09"})


@pytest.mark.parametrize(
    ("query", "of"),
    [
        ({"hour": "25"}, "'25'"),
        ({"from": "x"}, "From is 'x'"),
        ({"from": "2011-01-01", "to": "2011-12-31"}, "365 days"),
        ({"path": "/", "hour": "13", "country": "US"}, "the hour or the country"),
        ({"path": "/", "agent": "curl"}, "one of path"),
    ],
)
def test_an_invalid_question_is_reported(viewer, hours, query, of):
    response = viewer.get(url("hours", job="default", **query))

    assert response.status_code == 400
    assert of in words(response)


@pytest.fixture
def requested(hours):
    """What was requested on the second day, most of it by hour and by country; too much for all to be kept."""
    table = f"values:path:served:{DAY}"
    counted.add(
        {table: {"/": 90, "/a?<b>": 40, "-": 20, "": 5}, f"values:path:unserved:{DAY}": {"/gone": 45}}
    )
    counted.add({f"values:path:unserved:{DAY}:*": {"404//gone": 45}})
    counted.add({f"values:path:unserved:{DAY}:13": {"404//gone": 40}})
    counted.add(
        {f"values:path:unserved:{DAY}:@US": {"404//gone": 44}, f"daily:country:{DAY}": {"US": 1, "DE": 1}}
    )
    counted.add({f"values:referrer:served:{DAY}": {"example.org": 7, "-": 203}})
    counted.add({f"values:path:unserved:{DAY}:@DE": {"404//gone": 1}})


def test_paths_are_listed_and_lead_to_their_lines(viewer, requested):
    assert tables(viewer, 3) == [
        "/ 90 45.0 %",
        "/gone at least 45 22.5 %",
        "/a?<b> 40 20.0 %",
        "no path in the line 20 10.0 %",
    ]
    shown, html = text(viewer), unescape(viewer.get(url("hours", job="default")).text)
    assert "too many different ones to keep all of them apart: 5." in shown
    assert "Lines of these days that were not counted in this way: 10." in shown
    assert 'href="?job=default&path=%2Fgone"' in html
    assert tables(viewer, 3, by="referrer") == [
        "no referring site in the line 203 96.7 %",
        "example.org 7 3.3 %",
    ]
    assert "These lines were not counted in this way" in text(viewer, by="agent")


def test_a_path_is_combined_with_an_hour_or_a_country_and_a_status(viewer, requested):
    shown = text(viewer, path="/gone")
    assert "Only the path /gone: remove this filter" in shown
    assert "Lines 45 " in shown
    assert tables(viewer, 1, path="/gone") == ["404 45 100.0 %"]
    assert tables(viewer, 2, path="/gone") == ["US 44 97.8 %", "DE 1 2.2 %"]
    assert "Lines 40 " in text(viewer, path="/gone", hour="13", status="404")
    assert "Countries are not listed" in text(viewer, path="/gone", hour="13")
    assert "Lines by day" in text(viewer, path="/gone", country="US")
    assert "Hours are not shown" in text(viewer, path="/gone", country="US")
    assert 'id="hour"' not in viewer.get(url("hours", job="default", path="/gone", country="US")).text
    assert "No line fits." in text(viewer, path="/gone", status="200")
    assert tables(viewer, 3, hour="13", status="4xx") == ["/gone 40 100.0 %"]


def test_what_was_not_counted_together_is_not_offered(viewer, requested):
    assert 'data-key="apart"' in viewer.get(url("hours", job="default", hour="13", country="US")).text
    assert "values" not in re.findall(
        r'data-key="(\w+)"', viewer.get(url("hours", job="default", path="/")).text
    )
