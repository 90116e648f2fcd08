"""What the Logs page shows and does: jobs, workers, rejected lines, dead chunks."""

from __future__ import annotations

import re

import pytest
from django.contrib.admin.models import LogEntry

from components.services.logs import Aggregation, dead_chunks, look_at, note_job
from components.services.logs.keys import JobKeys
from tests.control_room.pages import addresses, done, logged, rows_of, text_of, trips, words
from tests.logs.admin import traffic
from tests.support.logs import append, stream

ROOT = "/admin/components/logjob/"
DASH = "\N{EN DASH}"
OF_PLACES = {"job": "default", "aggregation": "places"}

url = addresses(ROOT)

pytestmark = pytest.mark.usefixtures("redis")


@pytest.fixture
def viewer(staff):
    return staff("view_logjob")


@pytest.fixture
def operator(staff):
    return staff("view_logjob", "resend_logjob", "discard_logjob", "remove_logjob")


def page(client, name="", /, **query):
    return text_of(client, ROOT, name, **query)


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

    text = page(viewer, "job/", job="default")
    workers = rows_of(viewer, ROOT, "job/", job="default")

    told = r"Chunks 5 Age .* Lines copied in total 60 .* Lines left out because they exceed a chunk 3 .*"
    told += r"Lines a second 4,200,000 Lag .+? Waiting chunks 1 Held by workers 2 Dead 2 Lease 30 s"
    assert re.search(told, text)
    assert "Lines so far 1,010 Rejected 10" in text
    assert "starts one" not in text + page(viewer)
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
    text = page(operator, "dead/", **OF_PLACES)

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


def test_a_page_costs_as_many_round_trips_however_much_is_in_a_job(viewer, redis):
    traffic.busy(redis)
    with trips() as few:
        viewer.get(url("job", job="default"))
    for number in range(6, 12):
        append(stream(), number)
        Aggregation("places").consumer().claim(1)

    with trips() as many:
        viewer.get(url("job", job="default"))

    assert len(many) == len(few) == 5
