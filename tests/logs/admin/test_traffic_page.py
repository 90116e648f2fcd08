"""What the traffic of a job shows: bars of days, places, periods, a file."""

from __future__ import annotations

import csv
import io
import re
from html import unescape

import pytest

from components.services.logs import note_job
from components.services.logs.admin.traffic import label
from components.services.logs.admin.world_map import first_lines
from tests.control_room.pages import addresses, rows_of, text_of
from tests.logs.admin import traffic
from tests.support import traffic as counted

ROOT = "/admin/components/logjob/"
DASH = "\N{EN DASH}"

url = addresses(ROOT)

pytestmark = pytest.mark.usefixtures("redis")


@pytest.fixture
def viewer(staff):
    return staff("view_logjob")


def page(client, **query):
    return text_of(client, ROOT, "traffic/", **{"job": "default", **query}).replace("\xa0", " ")


def places(client, **query):
    """The rows of the table of places, which is the last."""
    rows = rows_of(client, ROOT, "traffic/", table=-1, **{"job": "default", **query})
    return [row.replace("\xa0", " ") for row in rows]


def lines_of(client, **query):
    response = client.get(f"{ROOT}csv/", {"job": "default", **query})
    assert response.status_code == 200
    return list(csv.reader(io.StringIO(response.text)))


def links(client, **query):
    """The queries of links to traffic on the page."""
    html = client.get(f"{ROOT}traffic/", {"job": "default", **query}).text
    return [unescape(each) for each in re.findall(rf'href="{ROOT}traffic/\?([^"]*)"', html)]


def test_the_last_two_weeks_that_have_data_are_shown_with_share_and_growth(viewer):
    traffic.count(28)

    text = page(viewer)
    rows = places(viewer)

    # A day has 780 lines from the US for each day since the first: days 15 to 28, and 1 to 14 before.
    us, before = 780 * sum(range(15, 29)), 780 * sum(range(1, 15))
    assert f"2011-09-27 to {traffic.LAST}" in text
    assert "from 2011-09-13 to 2011-09-26." in text
    assert rows[0] == f"US {us:,} 65.4 % {before:,} +186.7 %"
    assert rows[-1].startswith("unknown ")
    total = sum(traffic.PLACES.values()) * sum(range(15, 29))
    assert f"Lines {total:,} In the same number of days before" in text


def test_a_country_leads_to_its_regions_and_a_region_to_its_cities(viewer):
    traffic.count(14)

    regions = "job=default&level=region&within=US"
    assert regions in links(viewer)
    assert [row.split(" 6")[0].split(" 1")[0] for row in places(viewer, level="region", within="US")][:2] == [
        "CA",
        "NY",
    ]
    assert places(viewer, level="region", within="US")[-1].startswith("no region known 1,050 ")
    cities = "job=default&level=city&within=US%2FCA"
    assert cities in links(viewer, level="region", within="US")
    rows = places(viewer, level="city", within="US/CA")
    assert [re.split(r" \d", row)[0] for row in rows] == ["Mountain View", "Los Angeles", "no city known"]

    html = viewer.get(f"{ROOT}traffic/?{cities}").text
    assert "world-map" not in html
    trail = re.search(r'class="breadcrumbs">(.*?)</(?:ol|div)>', html, re.DOTALL)[1]
    assert "Traffic from CA, US by city" in trail
    assert re.findall(r">([^<>]+)</a>", trail)[2:] == ["Logs", "Job default", "Traffic", "US"]
    assert unescape(re.findall(r'href="([^"]*)"', trail)[-1]).endswith(f"?{regions}")


@pytest.mark.parametrize(
    ("query", "first", "last"),
    [
        ({"days": "7"}, "2011-10-04", "2011-10-10"),
        ({"from": "2011-10-01", "to": "2011-10-03"}, "2011-10-01", "2011-10-03"),
        ({"from": "2011-10-01"}, "2011-10-01", "2011-10-10"),
        ({"to": "2011-10-03"}, "2011-09-20", "2011-10-03"),
        ({"to": "2011-10-03", "days": "3"}, "2011-10-01", "2011-10-03"),
        ({"from": "2011-10-10", "to": ""}, "2011-10-10", "2011-10-10"),
    ],
)
def test_a_period_can_be_asked_for(viewer, query, first, last):
    traffic.count(30)

    text = page(viewer, **query)
    html = viewer.get(f"{ROOT}traffic/", {"job": "default", **query}).text

    assert f"{first} to {last}" in text
    assert f'name="from" value="{first}"' in html
    assert f'name="to" value="{last}"' in html
    if query == {"days": "7"}:
        assert {"job=default&level=region&within=US&days=7", "job=default&level=city&days=7"} <= {
            *links(viewer, **query)
        }
        assert f'href="{ROOT}csv/?job=default&level=country&days=7"' in unescape(html)


@pytest.mark.parametrize(
    ("query", "of"),
    [
        ({"from": "2011-02-30"}, "From is '2011-02-30'"),
        ({"to": "soon"}, "To is 'soon'"),
        ({"from": "0001-01-01", "to": "9999-12-31"}, "3,652,059 days"),
        ({"days": "x"}, "'x'"),
        ({"days": "99999"}, "99,999 days"),
        ({"days": "999999"}, "'999999'"),
        ({"to": "0001-01-05", "days": "9"}, "9 days before 0001-01-05"),
        ({"level": "street"}, "'street'"),
        ({"level": "country", "within": "US"}, "'US'"),
        ({"level": "city", "within": "x" * 501}, "called"),
    ],
)
def test_an_invalid_question_is_reported(viewer, query, of):
    traffic.count(1)

    for address in ("traffic", "csv"):
        response = viewer.get(f"{ROOT}{address}/", {"job": "default", **query})
        assert response.status_code == 400
        assert of in unescape(response.text)
        assert "live.js" not in response.text


def test_without_lines_the_pages_say_what_to_do(viewer):
    note_job("default")
    assert "manage.py copylogs access.log" in page(viewer)
    assert viewer.get(url("csv", job="default")).status_code == 400

    counted.count({traffic.LAST: {"US/CA": 5}}, levels=["country"])

    assert "manage.py aggregatelogs --level region" in page(viewer, level="region")
    assert "from 2011-10-10 to 2011-10-10" in page(viewer, **{"from": "2020-01-01", "to": "2020-01-02"})


def test_a_day_leads_to_its_hours_unless_a_bar_is_a_week(viewer):
    traffic.count(200)

    pages = [
        viewer.get(url("traffic", job="default", **query)).text
        for query in ({}, {"days": "90"}, {"level": "city"})
    ]
    assert ["live.js" in each for each in pages] == [True, False, False]  # some take too long to be refreshed
    near, far = (unescape(viewer.get(url("traffic", job="default", days=days)).text) for days in ("3", "200"))

    of_a_day = f'href="{ROOT}hours/?job=default&from=2011-10-09&to=2011-10-09'
    assert (near.count(of_a_day), far.count(of_a_day)) == (2, 0)


def test_a_file_has_all_places_with_their_days(viewer, monkeypatch):
    traffic.count(14)

    head, *lines = lines_of(viewer, days="3")
    monkeypatch.setattr("components.services.logs.admin.logs.MOST_CELLS", 28)
    assert len(lines_of(viewer)) == 1 + 2

    assert head[-4:] == ["growth", "2011-10-08", "2011-10-09", "2011-10-10"]
    assert lines[0][:3] == ["US", "US", str(780 * (12 + 13 + 14))]
    assert lines[0][6:] == [str(780 * number) for number in (12, 13, 14)]
    assert sum(int(line[2]) for line in lines) == sum(traffic.PLACES.values()) * 39
    response = viewer.get(url("csv", job="default", level="city", within="US/CA"))
    assert (
        response["Content-Disposition"]
        == 'attachment; filename="traffic-default-US-CA-city-2011-09-27-2011-10-10.csv"'
    )


def shades(html):
    """The colour and the title of each country on the map."""
    link = re.findall(r'<a class="map-(\d)"[^>]*><title>([^<]*)</title>', html)
    return {title: int(colour) for colour, title in link}


def test_the_map_has_a_colour_a_title_and_a_link_for_each_country_with_lines(viewer):
    traffic.count(14)

    html = viewer.get(url("traffic", job="default")).text

    assert shades(html) == {
        "US: 81,900 lines": 5,
        "DE: 12,600 lines": 4,
        "FR: 8,400 lines": 3,
        "GB: 6,300 lines": 3,
        "JP: 5,250 lines": 3,
        "BR: 4,200 lines": 2,
        "IN: 3,150 lines": 2,
        "NG: 2,100 lines": 2,
    }
    assert re.search(r'<a class="map-5" data-key="US"[^>]*href="\?job=default&amp;level=region', html)
    assert html.count('<path class="map-0"') == 1
    assert "not on the map: 1,260" in page(viewer)
    assert " style=" not in html


@pytest.mark.parametrize(
    ("counts", "starts"),
    [
        ([], []),
        ([0], []),
        ([1], [1]),
        ([1, 3], [1, 2]),
        ([7, 7], [5]),
        ([1, 100], [1, 2, 5, 10, 20]),
        ([5_000, 100_000], [5_000, 10_000, 20_000, 50_000]),
        ([1, 1_000_000], [1, 10, 200, 2_000, 50_000]),
        ([1, 7_300_000_000], [1, 50, 5_000, 500_000, 50_000_000]),
    ],
)
def test_colours_stand_for_round_numbers_of_lines(counts, starts):
    assert first_lines(counts) == starts


@pytest.mark.parametrize(
    ("place", "level", "within", "name"),
    [
        ("US", "country", "", "US"),
        ("unknown", "city", "", "unknown"),
        ("US", "region", "US", "no region known"),
        ("US/CA", "region", "", "CA, US"),
        ("US/CA", "city", "US", "CA (no city known)"),
        ("SG//Singapore", "city", "", "Singapore, SG"),
        ("CH/B%2FE/Biel%2FBienne", "city", "CH", "Biel/Bienne, B/E"),
        ("X/\u202e", "region", "X", r"\u202e"),
    ],
)
def test_a_place_is_called_by_what_is_known_of_it(redis, place, level, within, name):
    assert label(place, level, within) == name
