"""The filters of a list: what each finds, that they combine, and that they tell nothing that may not be seen."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import urlencode

import pytest

from components.services.queues import TaskQueue, task
from components.services.queues.admin import filters
from tests.control_room.pages import round_trips, words
from tests.queues.admin import scene

ROOT = "/admin/components/queue/"
MAIL = {"alias": "default", "queue": "mail"}

pytestmark = pytest.mark.usefixtures("redis")


@task
def charge(sale: int, to: str = "") -> None: ...


CHARGE = f"{__name__}.charge"


def page(client, state="ready", **query):
    response = client.get(f"{ROOT}tasks/", {**MAIL, "state": state, **query})
    assert response.status_code == 200
    return response


def found(client, state="ready", **query):
    return [info.id for info in page(client, state, **query).context["tasks"]]


def test_a_task_is_found_by_its_path_or_the_end_of_it(viewer):
    [send] = scene.ready(name="market.tasks.send")
    [other] = scene.ready(name="market.tasks.resend")

    for wanted in ("send", "tasks.send", "market.tasks.send", " send "):
        assert found(viewer, task=wanted) == [send]
    assert found(viewer, task="resend") == [other]
    assert found(viewer, task="sen") == []


def test_an_error_is_found_by_its_class_and_a_part_of_its_message(viewer):
    dead = scene.dead()
    scene.ready()

    for asked in ({"error": "OSError"}, {"error": "builtins.OSError"}, {"message": "NO ROUTE"}):
        assert found(viewer, "dead", **asked) == [dead]
    assert found(viewer, "dead", error="Error") == []
    assert found(viewer, "dead", error="OSError", message="other") == []
    assert found(viewer, "ready", error="OSError") == []


@pytest.mark.parametrize(
    ("wanted", "is_found"),
    [
        ("9", True),
        ("19", False),
        ("jürgen", True),
        ("true", True),
        ("sale=9", True),
        ("sale=1", False),
        ("to=Jürgen", True),
        ("to=Jack", False),
        ("deep", True),
        ("url=a=b", True),
    ],
)
def test_an_argument_is_found_by_its_value_and_its_name(viewer, wanted, is_found):
    scene.ready(name=CHARGE, args=[1900])
    kwargs = {"to": "An Jürgen", "lines": [{"note": "deeply"}], "is_new": True, "url": "?a=b"}
    [wanted_id] = scene.ready(name=CHARGE, args=[9], kwargs=kwargs)

    assert found(viewer, argument=wanted) == ([wanted_id] if is_found else [])


@pytest.mark.parametrize(
    ("state", "is_in"), [("ready", True), ("running", True), ("dead", True), ("successful", True)]
)
def test_the_time_is_that_of_the_state(viewer, state, is_in):
    task_id = scene.one_of_each()[state]

    assert found(viewer, state, since="2026-01-01T00:00", until="2222-01-01T00:00:00") == [task_id]
    assert found(viewer, state, until="2020-01-01T00:00") == []
    assert found(viewer, state, since="2222-01-01T00:00") == []


def test_text_is_searched_in_ids_names_arguments_and_the_latest_error_whatever_its_case(viewer):
    dead = scene.dead()
    by_argument, by_name = scene.ready(kwargs={"to": "Jürgen"}) + scene.ready(name="market.tasks.Refund")

    assert found(viewer, q="JÜRGEN") == [by_argument]
    assert found(viewer, q="refund") == found(viewer, q=by_name.upper()) == [by_name]
    assert found(viewer, "dead", q="No Route") == [dead]
    assert found(viewer, q="no route") == []
    assert found(viewer, q="  ") == [by_argument, by_name]


def test_a_search_says_how_much_it_looked_at_and_shows_its_text_as_text(viewer, monkeypatch):
    monkeypatch.setattr(filters, "WINDOW", 3)
    evil = "\"><script>alert('a')</script>"
    ids = scene.ready(count=5)

    response, nothing = page(viewer, q="send"), page(viewer, q=evil)

    assert [info.id for info in response.context["tasks"]] == ids[:3]
    assert "3 of the next 3 ready tasks hold “send”. The other 2 were not searched." in words(response)
    assert "<script>alert" not in nothing.text
    assert evil in unescape(nothing.text)


def test_filters_combine_and_are_shown_in_the_form(viewer):
    [both] = scene.ready(name=CHARGE, args=[9])
    scene.ready(name=CHARGE, args=[8])
    scene.ready(args=[9])

    response = page(viewer, task="charge", argument="9", q=both[:8])

    assert [info.id for info in response.context["tasks"]] == [both]
    assert 'name="task" value="charge"' in response.text
    assert 'name="argument" value="9"' in response.text
    assert "Of 3 ready tasks that were looked at, 1 matches." in words(response)
    assert "live.js" not in response.text


def test_a_filter_that_makes_no_sense_finds_nothing_and_says_why(viewer, staff):
    [task_id] = scene.ready()
    client = staff("delete_queue", "view_queue")

    response = page(viewer, since="yesterday")
    client.post(
        f"{ROOT}delete/?{urlencode({**MAIL, 'state': 'ready', 'scope': 'all', 'since': 'yesterday'})}"
    )

    assert list(response.context["tasks"]) == []
    assert "Enter a valid date/time." in words(response)
    assert TaskQueue().get(task_id)


def test_a_look_is_continued_where_it_ended(viewer, monkeypatch):
    monkeypatch.setattr(filters, "WINDOW", 3)
    ids = scene.ready(count=5)

    first = page(viewer, task="send")
    [link] = re.findall(r'href="([^"]*)">Continue from here', first.text)
    second = viewer.get(f"{ROOT}tasks/{unescape(link)}")

    assert [info.id for info in first.context["tasks"]] == ids[:3]
    assert [info.id for info in second.context["tasks"]] == ids[3:]
    assert "Of 3 ready tasks that were looked at, 3 match. The other 2 were not searched." in words(first)
    assert "Continue from here" not in second.text


def test_an_action_on_all_that_were_found_is_on_those_alone(staff):
    client = staff("view_queue", "delete_queue", "view_arguments_queue")
    scene.ready(count=2, args=[9])
    kept = scene.ready(args=[8])
    query = {**MAIL, "state": "ready", "scope": "all", "argument": "9", "task": "send"}

    asked = words(client.get(f"{ROOT}delete/", query))
    response = client.post(f"{ROOT}delete/?{urlencode(query)}")

    assert "Delete all 2 ready tasks of the queue mail that match “Task: send, Argument: 9”." in asked
    assert response.url.endswith("tasks/?alias=default&queue=mail&state=ready&task=send&argument=9")
    assert [info.id for info in TaskQueue().tasks("mail", "ready")] == kept


@pytest.mark.parametrize(
    "asked", [{"argument": "9"}, {"argument": "sale=9"}, {"message": "route"}, {"q": "route"}]
)
def test_filters_find_nothing_out_for_those_who_may_not_see(onlooker, viewer, staff, asked):
    dead = scene.dead(name=CHARGE, args=[9])
    remover = staff("view_queue", "delete_queue")

    assert found(viewer, "dead", **asked) == [dead]
    assert found(onlooker, "dead", **asked) == []
    remover.post(f"{ROOT}delete/?{urlencode({**MAIL, 'state': 'dead', 'scope': 'all', **asked})}")
    assert TaskQueue().get(dead)
    assert 'name="argument"' not in page(onlooker, "dead").text


def test_a_list_with_filters_takes_so_many_round_trips_however_long_it_is(viewer):
    query = {**MAIL, "state": "ready", "argument": "9", "since": "2026-01-01T00:00", "after": "1:x"}
    scene.ready(count=2_000)
    page(viewer)

    assert round_trips(viewer, f"{ROOT}tasks/", query) <= 5
