"""Send again, cancel and delete: one task, those selected, and all; what is asked, done, said and logged."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import urlencode

import pytest
from django.contrib.admin.models import LogEntry

from components.services.queues import TaskQueue
from components.services.queues.admin import selections
from tests.control_room.pages import CONTENT, done, logged, text_of
from tests.queues.admin import scene
from tests.support.queues import places

ROOT = "/admin/components/queue/"
MAIL = {"alias": "default", "queue": "mail"}

pytestmark = pytest.mark.usefixtures("redis")


@pytest.fixture
def client(staff):
    return staff("change_queue", "delete_queue", "view_arguments_queue")


def url(verb, state, *ids, **query):
    return f"{ROOT}{verb}/?{urlencode({**MAIL, 'state': state, **query, 'id': ids}, doseq=True)}"


def test_selected_tasks_are_sent_again_and_no_others_those_that_died_first_before_all(client):
    first, second, third = (scene.dead() for _ in range(3))
    address = url("resend", "dead", third, first)

    asked = text_of(client, "", address)
    assert places("mail") == {"dead": [third, second, first]}
    said = done(client, address)

    assert "Send 2 dead tasks of the queue mail again." in asked
    assert logged() == said
    assert LogEntry.objects.get().object_id == "default/mail"
    assert places("mail")["dead"] == [second]
    done(client, url("resend", "dead", scope="all"))
    assert sorted(places("mail")["ready"]) == sorted([first, third, second])


def test_all_are_sent_again_in_the_order_in_which_they_died(client):
    ids = [scene.dead() for _ in range(3)]

    done(client, url("resend", "dead", scope="all"))

    assert places("mail") == {"ready": ids}


@pytest.mark.parametrize("state", ["dead", "successful", "ready", "delayed"])
def test_selected_tasks_are_deleted_and_no_others(client, state):
    ids = scene.one_of_each("mail")

    said = done(client, url("delete", state, ids[state], ids[state]))

    assert logged() == said
    assert TaskQueue().get(ids.pop(state)) is None
    assert places("mail") == {other: [task_id] for other, task_id in ids.items()}


@pytest.mark.parametrize("listed", ["ready", "delayed", "running"])
def test_a_task_that_waits_is_cancelled_at_once_and_one_that_runs_now_is_asked(client, listed):
    ids = scene.one_of_each("mail")

    waiting = done(client, url("cancel", listed, ids["ready"]))
    running = done(client, url("cancel", listed, ids["running"]))

    assert waiting[0].startswith("Cancelled 1 task")
    assert running[0].startswith("Asked 1 task")
    assert set(places("mail")["dead"]) == {ids["dead"], ids["ready"]}
    assert TaskQueue().get(ids["running"]).is_cancelled


@pytest.mark.parametrize(
    ("verb", "state"), [("resend", "ready"), ("resend", "running"), ("cancel", "dead"), ("delete", "running")]
)
def test_a_verb_that_is_nothing_for_a_state_is_not_there(client, verb, state):
    task_id = scene.one_of_each("mail")[state]
    address = url(verb, state, task_id)

    assert (client.get(address).status_code, client.post(address).status_code) == (404, 404)
    assert places("mail")[state] == [task_id]


def test_a_unique_key_that_is_taken_is_told_and_the_task_stays_dead(client):
    dead, other = scene.dead(unique="a"), scene.dead()
    scene.ready(unique="a")

    sent, stayed = done(client, url("resend", "dead", scope="all"))
    refused = done(client, url("resend", "dead", dead))

    assert sent.startswith("Sent 1 task")
    assert refused == [stayed]
    assert places("mail")["dead"] == [dead]
    assert other in places("mail")["ready"]
    assert logged() == [f"{sent} {stayed}"]  # nothing of what changed nothing


def test_those_that_have_left_the_state_or_are_of_another_queue_are_counted_and_left(client):
    ids = [scene.dead() for _ in range(3)]
    other = scene.dead("news")
    TaskQueue().resend("mail", ids[:1])
    address = url("delete", "dead", *ids, other)

    asked, said = text_of(client, "", address), done(client, address)

    assert said[0].startswith("Deleted 2 tasks")
    assert said[1].startswith("2 tasks of the selection")
    assert said[1] in asked
    assert places("mail") == {"ready": ids[:1]}
    assert places("news") == {"dead": [other]}


@pytest.mark.parametrize(("verb", "state"), [("resend", "dead"), ("delete", "dead"), ("cancel", "ready")])
def test_done_twice_it_happens_and_is_logged_once(client, verb, state):
    task_id = scene.one_of_each("mail")[state]

    first, second = (done(client, url(verb, state, task_id)) for _ in range(2))

    assert logged() == first
    assert f"no longer {state}" in second[0]


def test_nothing_selected_is_nothing_to_do(client):
    task_id = scene.dead()

    assert text_of(client, "", url("delete", "dead")).endswith("No task is selected. Back")
    assert len(done(client, url("delete", "dead"))) == 1
    assert places("mail") == {"dead": [task_id]}
    assert logged() == []


def test_all_of_a_state_means_that_state_of_that_queue(client):
    ids, others = scene.one_of_each("mail"), scene.one_of_each("news")
    scene.ready("mail", count=3)

    assert "Delete all 4 ready tasks of the queue mail." in text_of(
        client, "", url("delete", "ready", scope="all")
    )
    done(client, url("delete", "ready", scope="all"))

    assert places("mail") == {state: [task_id] for state, task_id in ids.items() if state != "ready"}
    assert places("news") == {state: [task_id] for state, task_id in others.items()}


def test_all_of_a_search_means_what_it_finds(client):
    kept = scene.ready(kwargs={"to": "Ann"})
    scene.ready(count=3, kwargs={"to": "Bob"})
    address = url("delete", "ready", scope="all", q="bob")

    assert "all 3 ready tasks" in text_of(client, "", address)
    done(client, address)

    assert places("mail") == {"ready": kept}


def test_one_request_takes_so_many_and_says_what_is_left(client, monkeypatch):
    monkeypatch.setattr(selections, "BOUND", 2)
    scene.ready(count=5)
    address = url("delete", "ready", scope="all")

    asked = text_of(client, "", address)
    said = [done(client, address) for _ in range(3)]

    assert "One request handles 2 of them; 3 will be left" in asked
    assert [each[0].split()[1] for each in said] == ["2", "2", "1"]
    assert [each[1].split()[0] for each in said[:2]] == ["3", "1"]
    assert places("mail") == {}


@pytest.mark.parametrize(
    ("verb", "query", "back"),
    [
        ("resend", {"scope": "task"}, "task/?alias=default&id={id}"),
        ("delete", {"scope": "task"}, "tasks/?alias=default&queue=mail&state=dead"),
        ("delete", {"q": "no route"}, "tasks/?alias=default&queue=mail&state=dead&q=no+route"),
    ],
)
def test_the_page_from_which_it_was_done_comes_back_if_it_is_still_there(client, verb, query, back):
    task_id = scene.dead()

    response = client.post(url(verb, "dead", task_id, **query))

    assert response.url == ROOT + back.format(id=task_id)
    assert (task_id in logged()[0]) == ("scope" in query)


@pytest.mark.parametrize("state", ["ready", "delayed", "running", "dead", "successful"])
def test_a_task_offers_what_can_be_done_to_it(client, state):
    task_id = scene.one_of_each("mail")[state]
    offered = {"ready": {"cancel", "delete"}, "delayed": {"cancel", "delete"}, "running": {"cancel"}}
    offered |= {"dead": {"resend", "delete", "rerun"}, "successful": {"delete", "rerun"}}

    html = client.get(f"{ROOT}task/", {"alias": "default", "id": task_id}).text
    buttons = re.findall(r'<a class="button[^"]*" href="([^"]+/(\w+)/\?[^"]+)"', html)

    assert {verb for _address, verb in buttons} == offered[state]
    for address, _verb in buttons:
        asked = client.get(unescape(address))
        assert task_id in asked.text
        assert 'type="submit"' in CONTENT.search(asked.text)[0]


def test_the_form_of_a_list_leads_to_its_confirmation(client, viewer):
    """What a browser sends: the checked boxes, and where the button leads."""
    task_id = scene.dead()
    query = {**MAIL, "state": "dead", "q": "send"}
    html = client.get(f"{ROOT}tasks/", query).text

    form = html[html.index('data-key="selection"') :]
    fields = dict(re.findall(r'<input type="(?:hidden|checkbox)" name="(\w+)" value="([^"]*)"', form))
    [resend] = re.findall(r'formaction="([^"]+/resend/)"', form)

    assert fields == {**query, "id": task_id}
    assert "Send 1 dead task of the queue mail again." in text_of(client, "", resend, **fields)
    assert "checkbox" not in CONTENT.search(viewer.get(f"{ROOT}tasks/", query).text)[0]


def test_a_page_can_be_selected_as_a_whole_and_does_not_refresh_itself_then(client):
    scene.ready(count=51)

    plain = client.get(f"{ROOT}tasks/", MAIL).text
    selected = client.get(f"{ROOT}tasks/", {**MAIL, "select": "page"}).text

    assert (plain.count(" checked>"), selected.count(" checked>")) == (1, 51)  # the scope, and 50 boxes
    assert ("live.js" in plain, "live.js" in selected) == (True, False)
    assert 'href="?alias=default&amp;queue=mail&amp;offset=50"' in selected  # the next page is not selected
