"""The list of the tasks of all queues: what it shows, its filters, its pages, and what is done with its tasks."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from components.services.queues import NewTask, TaskQueue, all_queues
from components.services.queues.admin import filters
from tests.control_room.pages import done, logged, round_trips, rows_of, words
from tests.queues.admin import scene
from tests.support.queues import places as places_in

ROOT = "/admin/components/queue/"
ALL = {"alias": "default"}

pytestmark = pytest.mark.usefixtures("redis")


def page(client, state="dead", **query):
    response = client.get(f"{ROOT}tasks/", {**ALL, "state": state, **query})
    assert response.status_code == 200
    return response


def found(client, state="dead", **query):
    return [info.id for info in page(client, state, **query).context["tasks"]]


def places(response):
    return [unescape(value) for value in re.findall(r'name="id" value="([^"]+)"', response.text)]


@pytest.mark.parametrize("state", ["ready", "delayed", "running", "dead", "successful"])
def test_the_tasks_in_a_state_of_all_queues_are_listed_with_their_queues(viewer, state):
    ids = [scene.one_of_each(queue)[state] for queue in ("mail", "news")]

    response = page(viewer, state)

    assert {info.id for info in response.context["tasks"]} == set(ids)
    assert f"{ROOT}tasks/?alias=default&amp;queue=news&amp;state={state}" in response.text
    assert f"{state.capitalize()} 2" in words(response)
    assert "live.js" in response.text


def test_the_overview_and_the_list_of_a_queue_lead_there(viewer):
    scene.dead("mail")
    link = f"{ROOT}tasks/?alias=default&amp;state=dead"

    assert f'href="{link.replace("dead", "ready")}"' in viewer.get(ROOT).text
    assert f'href="{link}"' in page(viewer, queue="mail").text
    assert "There is no" not in page(viewer).text


def test_the_queue_is_one_filter_among_others(viewer):
    mail, news = (scene.dead(queue, name=f"shop.tasks.{queue}", args=[9]) for queue in ("mail", "news"))

    assert found(viewer) == [news, mail]
    assert found(viewer, queue="") == [news, mail]
    assert found(viewer, queue="mail") == [mail]
    assert found(viewer, task="news") == [news]
    assert found(viewer, argument="9", error="OSError") == [news, mail]
    assert found(viewer, q=mail) == [mail]
    assert found(viewer, until="2020-01-01T00:00") == []


def test_filters_of_all_queues_find_nothing_out_for_those_who_may_not_see(viewer, onlooker):
    dead = scene.dead(args=[9])

    assert found(viewer, argument="9") == [dead]
    assert found(onlooker, argument="9") == []
    assert found(onlooker, message="route") == []


def test_a_long_list_is_continued_where_it_ended(viewer, monkeypatch):
    monkeypatch.setattr(filters, "WINDOW", 3)
    ids = [scene.ready(queue)[0] for queue in ("mail", "news", "mail", "news", "mail")]

    for query in ({}, {"task": "send"}):
        first = page(viewer, "ready", **query)
        [link] = re.findall(r'href="([^"]*)">Continue from here', first.text)
        second = viewer.get(f"{ROOT}tasks/{unescape(link)}")

        shown = [info.id for response in (first, second) for info in response.context["tasks"]]
        assert sorted(shown) == sorted(ids)
        assert len(second.context["tasks"]) == 2
        assert "Continue from here" not in second.text
    assert "This list has the tasks 1 to 3 of all 5." in words(page(viewer, "ready"))


def test_more_queues_than_are_merged_are_told_of(viewer, monkeypatch):
    for module in (all_queues, __import__("components.services.queues.admin.queues", fromlist=["x"])):
        monkeypatch.setattr(module, "MOST_QUEUES", 2)
    ids = [scene.ready(queue)[0] for queue in ("a", "b", "c")]

    response = page(viewer, "ready")

    assert {info.id for info in response.context["tasks"]} == set(ids[:2])
    assert "This list is of the first 2 queues that have ready tasks, by name; 1 more has some." in words(
        response
    )


def test_an_action_on_selected_tasks_is_carried_out_in_the_queue_of_each(staff):
    client = staff("view_queue", "change_queue")
    mail, news, other = scene.dead("mail"), scene.dead("news"), scene.dead("news")
    chosen = [place for place in places(page(client)) if place.split()[0] != other]
    query = [*ALL.items(), ("state", "dead"), *(("id", place) for place in [*chosen, "gone news"])]

    asked = words(client.get(f"{ROOT}resend/?{urlencode(query)}"))
    said = done(client, f"{ROOT}resend/?{urlencode(query)}")

    assert sorted(chosen) == sorted([f"{mail} mail", f"{news} news"])
    assert "Send 2 dead tasks of 2 queues again." in asked
    assert said == [
        "Sent 2 tasks of 2 queues again.",
        "1 task of the selection is not dead any more.",
    ]
    assert logged() == [" ".join(said)]
    assert [TaskQueue().get(each).state for each in (mail, news, other)] == ["ready", "ready", "dead"]


def test_an_action_on_all_that_were_found_spares_the_others(staff):
    client = staff("view_queue", "delete_queue")
    gone = [scene.dead(queue, name="shop.tasks.send") for queue in ("mail", "news")]
    kept = scene.dead("news", name="shop.tasks.pack")
    query = urlencode({**ALL, "queue": "", "state": "dead", "scope": "all", "task": "send"})

    asked = words(client.get(f"{ROOT}delete/?{query}"))

    assert "Delete all 2 dead tasks of all queues that match “Task: send”." in asked
    assert done(client, f"{ROOT}delete/?{query}") == [
        "Deleted 2 tasks of all queues that match “Task: send”."
    ]
    assert [TaskQueue().get(each) for each in gone] == [None, None]
    assert TaskQueue().get(kept)


def test_an_action_on_all_is_on_all_queues_and_in_bounds(staff, monkeypatch):
    monkeypatch.setattr("components.services.queues.admin.selections.BOUND", 3)
    client = staff("view_queue", "change_queue", "delete_queue")
    ids = [scene.ready(queue, count=2) for queue in ("mail", "news")]
    query = urlencode({**ALL, "state": "ready", "scope": "all"})

    said = done(client, f"{ROOT}cancel/?{query}")

    assert said == [
        "Cancelled 3 tasks of all queues.",
        "1 ready task is left, because one request handles 3. Repeat it.",
    ]
    assert sum(TaskQueue().get(each).state == "dead" for some in ids for each in some) == 3


def failures(client, **query):
    return rows_of(client, ROOT, "failures/", **ALL, **query)


def group(verb, client):
    """The address of a verb for the largest group."""
    query = {**ALL, "state": "dead", "scope": "all", "group": largest(client)}
    return f"{ROOT}{verb}/?{urlencode(query)}"


def largest(client):
    """The key of the largest group of failures of all queues."""
    return client.get(f"{ROOT}failures/", ALL).context["groups"][0][0].latest.group


def test_failures_of_all_queues_are_grouped_with_the_names_of_their_queues(viewer):
    for queue in ("mail", "news", "ads", "polls", "mail"):
        scene.dead(queue)
    scene.dead("mail", name="shop.tasks.pack")

    many, one = failures(viewer)

    assert many.startswith("OSError: <b>no route</b> market.tasks.send ads, mail, news, and 1 more 5 ")
    assert one.startswith("OSError: <b>no route</b> shop.tasks.pack mail 1 ")
    assert "Failures of all queues" in words(viewer.get(f"{ROOT}failures/", ALL))
    for start in (
        f"{ROOT}",
        f"{ROOT}tasks/?alias=default&state=dead",
        f"{ROOT}failures/?alias=default&queue=mail",
    ):
        links = re.findall(r'href="([^"]*/failures/[^"]*)"', viewer.get(start).text)
        asked = [parse_qs(urlsplit(unescape(link)).query) for link in links]
        assert {"alias": ["default"]} in asked, start
    listed = page(viewer, group=largest(viewer))
    assert "Of 6 dead tasks that were looked at, 5 died of" in words(listed)
    assert {info.queue for info in listed.context["tasks"]} == {"mail", "news", "ads", "polls"}


def test_a_group_of_all_queues_is_sent_again_in_the_queue_of_each(staff):
    client = staff("view_queue", "change_queue", "view_arguments_queue")
    wanted = [scene.dead(queue, name="shop.tasks.send") for queue in ("mail", "news", "news")]
    other = scene.dead("news", name="shop.tasks.pack")
    url = group("resend", client)

    asked, said, again = words(client.get(url)), done(client, url), done(client, url)

    died = "died of “OSError: <b>no route</b> in shop.tasks.send”"
    assert f"Send all 3 dead tasks of all queues that {died} again." in asked
    assert said == [f"Sent 3 tasks of all queues that {died} again."]
    assert again == ["There are no dead tasks of all queues in this group."]
    assert [TaskQueue().get(each).state for each in wanted] == ["ready"] * 3
    assert places_in("mail") == {"ready": wanted[:1]}
    assert places_in("news") == {"ready": wanted[1:], "dead": [other]}


def test_a_long_list_of_failures_is_continued_where_it_ended(viewer, monkeypatch):
    monkeypatch.setattr(filters, "WINDOW", 3)
    for queue in ("mail", "news") * 2:
        scene.dead(queue)

    first = viewer.get(f"{ROOT}failures/", ALL)
    [link] = re.findall(r'href="([^"]*)">Continue from here', first.text)

    assert "These are 3 dead tasks, the latest first; 1 earlier one is not counted here." in words(first)
    [rest] = rows_of(viewer, f"{ROOT}failures/", unescape(link))
    assert rest.startswith("OSError: <b>no route</b> market.tasks.send mail 1 ")


def test_no_failure_in_any_queue_is_said(viewer):
    assert "No task is dead." in words(viewer.get(f"{ROOT}failures/", ALL))


def test_an_action_needs_its_permission(viewer, staff):
    dead, operator = scene.dead("mail"), staff("change_queue")
    query = {**ALL, "state": "dead", "scope": "all"}

    for url in (f"{ROOT}delete/?{urlencode(query)}", group("delete", viewer)):
        assert [client.post(url).status_code for client in (viewer, operator)] == [403, 403]
    assert viewer.post(group("resend", viewer)).status_code == 403
    assert "resend/" not in page(viewer).text
    assert TaskQueue().get(dead)


def test_a_list_takes_so_many_round_trips_however_many_queues_there_are(viewer):
    TaskQueue().push_many([NewTask(name="shop.tasks.send", queue=f"q{number:04}") for number in range(1_000)])
    page(viewer, "ready")

    assert round_trips(viewer, f"{ROOT}tasks/", {**ALL, "state": "ready"}) <= 4
    assert (
        round_trips(viewer, f"{ROOT}tasks/", {**ALL, "state": "ready", "task": "send", "after": "1:a b"}) <= 4
    )
