"""What the pages of logs show and do: jobs, workers, rejected lines, dead chunks; traffic by day, place and hour."""

import csv
import io
import re
from datetime import timedelta
from html import unescape

import pytest
from django.contrib.admin.models import LogEntry

from components.services.logs import Aggregation, dead_chunks, look_at, note_job
from components.services.logs.admin.traffic import label
from components.services.logs.admin.world_map import first_lines
from components.services.logs.keys import JobKeys
from tests.control_room.pages import DASH, addresses, done, logged, rows_of, text_of, words
from tests.fixtures.admin import allowed
from tests.logs.admin import traffic
from tests.support import traffic as counted

ROOT = "/admin/components/logjob/"
OF_PLACES = {"job": "default", "aggregation": "places"}

url = addresses(ROOT)

pytestmark = pytest.mark.usefixtures("redis")
viewer = allowed("view_logjob")
operator = allowed("view_logjob", "resend_logjob", "discard_logjob", "remove_logjob")


def dead(name="places"):
    return [each.id for each in dead_chunks("default", name)]


def test_jobs_are_listed_with_what_is_in_flight_and_who_counts_it(viewer, redis):
    traffic.busy(redis)
    note_job("nightly")
    default, nightly = rows_of(viewer, ROOT)
    size = f"{look_at('default').bytes} bytes"
    told = rf"default Traffic {size} of 976.6 KB {size} 1 4,200,000 .*?s 2 60"
    assert re.fullmatch(told, default.replace("\xa0", " "))
    assert nightly.replace("\xa0", " ") == f"nightly Traffic 0 bytes 0 0 {DASH} 0 0"


def test_a_job_shows_how_its_aggregation_stands(viewer, redis):
    living, silent = traffic.busy(redis)
    redis.hset(JobKeys("default").state, "skipped", 3)

    text = text_of(viewer, ROOT, "job/", job="default")
    workers = rows_of(viewer, ROOT, "job/", job="default")

    told = r"Chunks 5 Age .* Lines copied in total 60 .* Lines left out because they exceed a chunk 3 .*"
    told += r"Lines a second 4,200,000 Lag .+? Waiting chunks 1 Held by workers 2 Dead 2 Lease 30 s"
    assert re.search(told, text)
    assert "Lines so far 1,010 Rejected 10" in text
    assert "starts one" not in text + text_of(viewer, ROOT)
    [at_work] = [row for row in workers if row.startswith(living.id)]
    [gone] = [row for row in workers if row.startswith(silent.id)]
    assert "alive node-1 7 4,200,000 1 1,000,000 30 book, by city, numba 2026-01-01" in at_work
    assert re.search(rf"silent for .+: presumed dead {DASH} {DASH} {DASH} 1 ", gone)


def test_rejected_lines_are_told_by_reason_and_shown_safely(viewer, redis):
    traffic.busy(redis)
    reasons, samples = (rows_of(viewer, ROOT, "job/", job="default", table=number) for number in (1, 2))
    html = viewer.get(url("job", job="default")).text
    assert reasons == ["format a field is missing 7", "date no time, or a day that does not exist 3"]
    shown = r"format \x00\xff<script>alert(1)</script> \u202eleft a.log 12 480"
    assert any(row.startswith(shown) for row in samples)
    assert ("<script>alert" in html, "\u202e" in html) == (False, False)


def test_dead_chunks_are_listed_by_page(operator, redis):
    traffic.busy(redis, dead=60)
    ids = dead()

    first, second = (rows_of(operator, ROOT, "dead/", offset=offset, **OF_PLACES) for offset in (0, 50))
    text = text_of(operator, ROOT, "dead/", **OF_PLACES)

    assert [row.split()[0] for row in [*first, *second]] == ids
    assert second[-1].startswith(f"{ids[-1]} access.log 1 10 ")
    assert "The selected chunks All 60 chunks" in text
    assert f"1{DASH}50 of 60 Next" in text
    assert operator.get(url("dead", **OF_PLACES, select="page")).text.count(" checked>") == 51


def test_chosen_chunks_are_handed_out_again_once_it_is_asked(operator, redis):
    traffic.busy(redis, dead=3)
    third, second, _first = dead()
    Aggregation("places").resend([second])
    address = f"{url('resend', **OF_PLACES)}&chunk={third}&chunk={second}"
    changed = "No longer dead: 1 chunk of the selection."
    asked = words(operator.get(address))
    assert "10 lines" in asked
    assert changed in asked
    assert len(dead()) == 2

    said = done(operator, address)

    assert (said[1], logged()) == (changed, [" ".join(said)])
    assert LogEntry.objects.get().object_repr == "default"
    assert len(dead()) == 1
    assert third in [each.id for each in Aggregation("places").consumer().claim()]
    done(operator, address)
    assert len(logged()) == 1


def test_all_dead_chunks_are_discarded(operator, redis):
    traffic.busy(redis, dead=3)
    chunks = look_at("default").chunks
    address = url("discard", **OF_PLACES, scope="all")
    assert "30 lines" in words(operator.get(address))
    response = operator.post(address)
    assert response.url == url("dead", **OF_PLACES)
    assert logged() == ["Discarded 3 dead chunks of places."]
    assert (dead(), look_at("default").chunks) == ([], chunks - 3)


def test_an_aggregation_leaves_and_what_is_lost_is_said_before(operator, redis):
    traffic.busy(redis)
    address = url("leave", **OF_PLACES)
    asked = words(operator.get(address))
    assert re.search("5 chunks .*waiting 1, held by workers 2, dead 2", asked)
    assert "Its workers: 1." in asked

    said = done(operator, address)

    assert said == logged() == ["Removed the aggregation places from the job default."]
    assert look_at("default").aggregations == []
    done(operator, address)
    assert len(logged()) == 1


def page(client, name, /, **query):
    return text_of(client, ROOT, name, **{"job": "default", **query}).replace("\xa0", " ")


def rows(client, name, /, **query):
    found = rows_of(client, ROOT, name, **{"job": "default", **query})
    return [row.replace("\xa0", " ") for row in found]


def places(client, **query):
    """The rows of the table of places, which is the last."""
    return rows(client, "traffic/", table=-1, **query)


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

    text = page(viewer, "traffic/")
    shown = places(viewer)

    # A day has 780 lines from the US for each day since the first: days 15 to 28, and 1 to 14 before.
    us, before = 780 * sum(range(15, 29)), 780 * sum(range(1, 15))
    assert f"2011-09-27 to {traffic.LAST}" in text
    assert "from 2011-09-13 to 2011-09-26." in text
    assert shown[0] == f"US {us:,} 65.4 % {before:,} +186.7 %"
    assert shown[-1].startswith("unknown ")
    total = sum(traffic.PLACES.values()) * sum(range(15, 29))
    assert f"Lines {total:,} In the same number of days before" in text


def test_a_country_leads_to_its_regions_and_a_region_to_its_cities(viewer):
    traffic.count(14)

    regions = "job=default&level=region&within=US"
    assert regions in links(viewer)
    cities = "job=default&level=city&within=US%2FCA"
    assert cities in links(viewer, level="region", within="US")
    shown = [*places(viewer, level="region", within="US"), *places(viewer, level="city", within="US/CA")]
    names = ["CA", "NY", "no region known", "Mountain View", "Los Angeles", "no city known"]
    assert [re.split(r" \d", row)[0] for row in shown] == names

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
        ({"to": "2011-10-03"}, "2011-09-20", "2011-10-03"),
        ({"to": "2011-10-03", "days": "3"}, "2011-10-01", "2011-10-03"),
        ({"from": "2011-10-10", "to": ""}, "2011-10-10", "2011-10-10"),
    ],
)
def test_a_period_can_be_asked_for(viewer, query, first, last):
    traffic.count(30)

    text = page(viewer, "traffic/", **query)
    html = viewer.get(f"{ROOT}traffic/", {"job": "default", **query}).text

    assert f"{first} to {last}" in text
    assert f'name="from" value="{first}"' in html
    assert f'name="to" value="{last}"' in html
    if query == {"days": "7"}:
        assert "job=default&level=region&within=US&days=7" in links(viewer, **query)
        assert f'href="{ROOT}csv/?job=default&level=country&days=7"' in unescape(html)


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
    named = viewer.get(url("csv", job="default", level="city", within="US/CA"))["Content-Disposition"]
    assert named == 'attachment; filename="traffic-default-US-CA-city-2011-09-27-2011-10-10.csv"'


def test_the_map_has_a_colour_a_title_and_a_link_for_each_country_with_lines(viewer):
    traffic.count(14)

    html = viewer.get(url("traffic", job="default")).text

    shades = re.findall(r'<a class="map-(\d)"[^>]*><title>(\w\w: [^<]*) lines</title>', html)
    assert {*shades} == {
        *(("5", "US: 81,900"), ("4", "DE: 12,600"), ("3", "FR: 8,400"), ("3", "GB: 6,300")),
        *(("3", "JP: 5,250"), ("2", "BR: 4,200"), ("2", "IN: 3,150"), ("2", "NG: 2,100")),
    }
    assert re.search(r'<a class="map-5" data-key="US"[^>]*href="\?job=default&amp;level=region', html)
    assert html.count('<path class="map-0"') == 1
    assert "not on the map: 1,260" in page(viewer, "traffic/")
    assert " style=" not in html


@pytest.mark.parametrize(
    ("counts", "starts"),
    [
        *(([], []), ([0], []), ([1], [1]), ([1, 3], [1, 2]), ([7, 7], [5]), ([1, 100], [1, 2, 5, 10, 20])),
        ([5_000, 100_000], [5_000, 10_000, 20_000, 50_000]),
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


@pytest.fixture
def hours():
    """Two days; the second has lines that were counted by day only, and lines without a time."""
    note_job("default")
    members = {"00/US/200": 100, "13/US/404": 40, "13/DE/200": 30, "13/unknown/4xx": 5, "/FR/": 25}
    before = traffic.LAST - timedelta(1)
    counted.add({f"hourly:{traffic.LAST}": members, f"hourly:{before}": {"23/US/500": 7}})
    counted.add({"days": {str(traffic.LAST): 210, str(before): 7}})


def test_the_newest_day_is_opened_into_its_hours(viewer, hours):
    shown = page(viewer, "hours/")

    assert "Lines 200 Without a time 25 Counted by day only 10" in shown
    assert rows(viewer, "hours/", table=0)[:11][-1].startswith("13:00 75")
    assert len(rows(viewer, "hours/", table=0)) == 24
    assert rows(viewer, "hours/", table=1)[:3] == [
        "200 130 65.0 %",
        "404 40 20.0 %",
        "no status in the line 25 12.5 %",
    ]
    assert rows(viewer, "hours/", table=2) == [
        "US 140 70.0 %",
        "DE 30 15.0 %",
        "FR 25 12.5 %",
        "unknown 5 2.5 %",
    ]


def test_filters_are_combined_and_can_be_removed(viewer, hours):
    query = {"hour": "13", "status": "4xx", "country": "US"}
    html = unescape(viewer.get(url("hours", job="default", **query)).text)

    assert "Lines 40 " in page(viewer, "hours/", **query)
    for each in query:
        rest = "&".join(f"{name}={query[name]}" for name in ("country", "hour", "status") if name != each)
        assert f'href="?job=default&{rest}"' in html
    assert re.search(r"<option selected>13</option>", html)
    assert re.search(r"<option selected>4xx</option>", html)
    assert "No line fits." in page(viewer, "hours/", hour="05")


@pytest.fixture
def requested(hours):
    """What was requested on the second day, most of it by hour and by country; too much for all to be kept."""
    day = traffic.LAST
    served, unserved = (f"values:path:{each}:{day}" for each in ("served", "unserved"))
    counted.add({served: {"/": 90, "/a?<b>": 40, "-": 20, "": 5}, unserved: {"/gone": 45}})
    slices = {"*": 45, "13": 40, "@US": 44, "@DE": 1}
    counted.add({f"{unserved}:{each}": {"404//gone": lines} for each, lines in slices.items()})
    counted.add({f"daily:country:{day}": {"US": 1, "DE": 1}})
    counted.add({f"values:referrer:served:{day}": {"example.org": 7, "-": 203}})


def test_paths_are_listed_and_lead_to_their_lines(viewer, requested):
    assert rows(viewer, "hours/", table=3) == [
        "/ 90 45.0 %",
        "/gone at least 45 22.5 %",
        "/a?<b> 40 20.0 %",
        "no path in the line 20 10.0 %",
    ]
    shown, html = page(viewer, "hours/"), unescape(viewer.get(url("hours", job="default")).text)
    assert "too many different ones to keep all of them apart: 5." in shown
    assert "Lines of these days that were not counted in this way: 10." in shown
    assert 'href="?job=default&path=%2Fgone"' in html
    assert rows(viewer, "hours/", table=3, by="referrer") == [
        "no referring site in the line 203 96.7 %",
        "example.org 7 3.3 %",
    ]
    assert "These lines were not counted in this way" in page(viewer, "hours/", by="agent")


def test_a_path_is_combined_with_an_hour_or_a_country_and_a_status(viewer, requested):
    shown = page(viewer, "hours/", path="/gone")
    assert "Only the path /gone: remove this filter" in shown
    assert "Lines 45 " in shown
    assert rows(viewer, "hours/", table=1, path="/gone") == ["404 45 100.0 %"]
    assert rows(viewer, "hours/", table=2, path="/gone") == ["US 44 97.8 %", "DE 1 2.2 %"]
    assert "Lines 40 " in page(viewer, "hours/", path="/gone", hour="13", status="404")
    assert "Countries are not listed" in page(viewer, "hours/", path="/gone", hour="13")
    assert "Lines by day" in page(viewer, "hours/", path="/gone", country="US")
    assert "Hours are not shown" in page(viewer, "hours/", path="/gone", country="US")
    assert 'id="hour"' not in viewer.get(url("hours", job="default", path="/gone", country="US")).text
    assert "No line fits." in page(viewer, "hours/", path="/gone", status="200")
    assert rows(viewer, "hours/", table=3, hour="13", status="4xx") == ["/gone 40 100.0 %"]


@pytest.mark.parametrize(
    ("name", "query", "of"),
    [
        ("traffic", {"from": "2011-02-30"}, "From is '2011-02-30'"),
        ("traffic", {"from": "0001-01-01", "to": "9999-12-31"}, "3,652,059 days"),
        ("traffic", {"days": "999999"}, "'999999'"),
        ("traffic", {"to": "0001-01-05", "days": "9"}, "9 days before 0001-01-05"),
        ("csv", {"days": "x"}, "'x'"),
        ("csv", {"level": "street"}, "'street'"),
        ("hours", {"hour": "25"}, "'25'"),
        ("hours", {"path": "/", "hour": "13", "country": "US"}, "the hour or the country"),
        ("hours", {"path": "/", "agent": "curl"}, "one of path"),
    ],
)
def test_a_wrong_question_is_reported(viewer, hours, name, query, of):
    response = viewer.get(url(name, job="default", **query))
    assert response.status_code == 400
    assert of in unescape(response.text)
    assert "live.js" not in response.text


def test_a_job_or_an_aggregation_that_is_not_there_is_404(operator):
    note_job("default")
    for name, query in (("dead", OF_PLACES), ("resend", OF_PLACES), ("job", {"job": "x"}), ("job", {})):
        assert operator.get(url(name, **query)).status_code == 404
