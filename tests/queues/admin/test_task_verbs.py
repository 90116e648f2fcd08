"""Send again, cancel and delete: one task, those selected, and all; what is asked, done, said and logged."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import urlencode

import pytest
from django.contrib.admin.models import LogEntry
from django.utils.html import strip_tags

from components.services.queues import TaskQueue, keys
from components.services.queues.admin import selections
from tests.queues.admin import scene
from tests.support.queues import places

ROOT = "/admin/components/queue/"
DASH = "\N{EN DASH}"
CONTENT = re.compile(r'<div id="live".*</div>', re.DOTALL)

pytestmark = pytest.mark.usefixtures("redis")


@pytest.fixture
def client(staff):
    return staff("change_queue", "delete_queue", "view_arguments_queue")


@pytest.fixture
def bound(monkeypatch):
    """One request takes two tasks."""
    monkeypatch.setattr(selections, "BOUND", 2)


def url(verb, state, *ids, **query):
    given = {"alias": "default", "queue": "mail", "state": state, **query, "id": ids}
    return f"{ROOT}{verb}/?{urlencode(given, doseq=True)}"


def words(response):
    return " ".join(unescape(strip_tags(response.text)).split())


def asked(client, *args, **query):
    """The confirmation, without the frame around it."""
    response = client.get(url(*args, **query))
    assert response.status_code == 200
    return " ".join(unescape(strip_tags(CONTENT.search(response.text)[0])).split())


def done(client, *args, **query):
    """The messages after the visitor has said yes."""
    response = client.post(url(*args, **query), follow=True)
    assert response.status_code == 200
    return [str(message) for message in response.context["messages"]]


def logged():
    return [entry.change_message for entry in LogEntry.objects.order_by("pk")]


def test_selected_tasks_are_sent_again_and_no_others(client):
    first, second, third = (scene.dead() for _ in range(3))

    question = asked(client, "resend", "dead", first, third)
    assert places("mail") == {"dead": [third, second, first]}
    said = done(client, "resend", "dead", first, third)

    assert "Send 2 dead tasks of the queue mail again." in question
    assert said == ["Sent 2 tasks again of the queue mail."] or said == [
        "Sent 2 tasks of the queue mail again."
    ]
    assert places("mail") == {"dead": [second], "ready": [first, third]}


def test_the_first_task_to_die_is_resent_first(client):
    ids = [scene.dead() for _ in range(3)]

    done(client, "resend", "dead", scope="all")

    assert places("mail") == {"ready": ids}


@pytest.mark.parametrize("state", ["dead", "successful", "ready", "delayed"])
def test_selected_tasks_are_deleted_with_all_that_is_known_of_them(client, redis, state):
    ids = scene.one_of_each("mail")

    assert f"Delete 1 {state} task of the queue mail." in asked(client, "delete", state, ids[state])
    said = done(client, "delete", state, ids[state])

    assert said == ["Deleted 1 task of the queue mail."]
    assert TaskQueue().get(ids[state]) is None
    assert {task_id for found in places("mail").values() for task_id in found} == set(ids.values()) - {
        ids[state]
    }


def test_a_task_that_waits_is_cancelled_at_once_and_one_that_runs_is_asked(client):
    ids = scene.one_of_each("mail")

    for state in ("ready", "delayed", "running"):
        assert f"Cancel 1 {state} task of the queue mail." in asked(client, "cancel", state, ids[state])
    said = [done(client, "cancel", state, ids[state]) for state in ("ready", "delayed", "running")]

    assert said == [
        ["Cancelled 1 task of the queue mail."],
        ["Cancelled 1 task of the queue mail."],
        ["Asked 1 task of the queue mail to end."],
    ]
    assert set(places("mail")["dead"]) == {ids["dead"], ids["ready"], ids["delayed"]}
    info = TaskQueue().get(ids["running"])
    assert info.is_cancelled


def test_a_task_that_has_begun_since_it_was_listed_is_asked_to_end(client):
    task_id = scene.running()

    said = done(client, "cancel", "ready", task_id)

    assert said == ["Asked 1 task of the queue mail to end."]


@pytest.mark.parametrize(
    ("verb", "state"), [("resend", "ready"), ("resend", "running"), ("cancel", "dead"), ("delete", "running")]
)
def test_a_verb_that_is_nothing_for_a_state_is_not_there(client, verb, state):
    task_id = scene.one_of_each("mail")[state]

    for response in (client.get(url(verb, state, task_id)), client.post(url(verb, state, task_id))):
        assert response.status_code == 404
        assert f"does not apply to {state} tasks." in words(response)
    assert places("mail")[state] == [task_id]


def test_a_unique_key_that_is_taken_is_named_and_the_task_stays_dead(client):
    dead, other = scene.dead(unique="a"), scene.dead()
    scene.ready(unique="a")

    said = done(client, "resend", "dead", scope="all")

    assert said == [
        "Sent 1 task of the queue mail again.",
        "1 task stayed dead: another unfinished task has the same unique key.",
    ]
    assert places("mail")["dead"] == [dead]
    assert other in places("mail")["ready"]
    assert logged() == [" ".join(said)]


def test_where_all_are_refused_nothing_is_called_done_or_logged(client):
    dead = scene.dead(unique="a")
    scene.ready(unique="a")

    said = done(client, "resend", "dead", dead)

    assert said == ["1 task stayed dead: another unfinished task has the same unique key."]
    assert logged() == []


def test_a_missing_target_is_reported(client):
    ids = [scene.dead() for _ in range(3)]
    TaskQueue().delete("mail", "dead", ids[:2])

    assert "2 tasks of the selection are not dead any more." in asked(client, "delete", "dead", *ids)
    said = done(client, "delete", "dead", *ids)

    assert said == ["Deleted 1 task of the queue mail.", "2 tasks of the selection are not dead any more."]


@pytest.mark.parametrize(("verb", "state"), [("resend", "dead"), ("delete", "dead"), ("cancel", "ready")])
def test_done_twice_it_happens_and_is_logged_once(client, verb, state):
    task_id = scene.one_of_each("mail")[state]

    first, second = done(client, verb, state, task_id), done(client, verb, state, task_id)

    assert len(first) == 1
    assert "no longer" in second[0]
    assert len(logged()) == 1


def test_nothing_selected_is_nothing_to_do(client):
    scene.dead()

    question, said = asked(client, "delete", "dead"), done(client, "delete", "dead")

    assert question == "No task is selected. Back"
    assert said == ["No task is selected."]
    assert len(places("mail")["dead"]) == 1
    assert logged() == []


def test_an_id_twice_counts_once(client):
    task_id = scene.dead()

    assert done(client, "delete", "dead", task_id, task_id) == ["Deleted 1 task of the queue mail."]


def test_an_id_of_another_queue_is_left_alone(client):
    task_id = scene.dead("news")

    assert done(client, "delete", "dead", task_id) == [f"The task {task_id} is no longer dead."]
    assert places("news") == {"dead": [task_id]}


def test_all_of_a_state_means_that_state_of_that_queue(client):
    ids, others = scene.one_of_each("mail"), scene.one_of_each("news")
    scene.ready("mail", count=3)

    assert "Delete all 4 ready tasks of the queue mail." in asked(client, "delete", "ready", scope="all")
    said = done(client, "delete", "ready", scope="all")

    assert said == ["Deleted 4 tasks of the queue mail."]
    assert places("mail") == {state: [task_id] for state, task_id in ids.items() if state != "ready"}
    assert places("news") == {state: [task_id] for state, task_id in others.items()}


def test_all_of_a_search_means_what_it_finds(client):
    kept = scene.ready(kwargs={"to": "Ann"})
    scene.ready(count=3, kwargs={"to": "Bob"})

    question = asked(client, "delete", "ready", scope="all", q="bob")
    said = done(client, "delete", "ready", scope="all", q="bob")

    assert "Delete all 3 ready tasks of the queue mail that contain “bob”." in question
    assert said == ["Deleted 3 tasks of the queue mail that contain “bob”."]
    assert places("mail") == {"ready": kept}


def test_one_request_takes_so_many_and_says_what_is_left(client, bound):
    ids = scene.ready(count=5)

    question = asked(client, "delete", "ready", scope="all")
    said = [done(client, "delete", "ready", scope="all") for _ in range(3)]

    assert "One request handles 2 of them; 3 will be left, and you can repeat it." in question
    assert said == [
        [
            "Deleted 2 tasks of the queue mail.",
            "3 ready tasks are left, because one request handles 2. Repeat it.",
        ],
        [
            "Deleted 2 tasks of the queue mail.",
            "1 ready task is left, because one request handles 2. Repeat it.",
        ],
        ["Deleted 1 task of the queue mail."],
    ]
    assert places("mail") == {}
    assert TaskQueue().get(ids[0]) is None


def test_more_than_a_script_takes_are_done_in_one_request(client, redis):
    scene.ready(count=1_201)
    redis.config_resetstat()

    assert done(client, "cancel", "ready", scope="all") == ["Cancelled 1,201 tasks of the queue mail."]
    assert TaskQueue().stats("mail").dead == 1_201
    assert redis.info("commandstats")["cmdstat_evalsha"]["calls"] < 10


def test_one_log_entry_for_an_action_of_many_tasks(client):
    scene.ready(count=1_001)

    done(client, "delete", "ready", scope="all")

    [entry] = LogEntry.objects.all()
    assert entry.object_id == "default/mail"
    assert entry.change_message == "Deleted 1,001 tasks of the queue mail."


def test_one_task_is_named_and_its_page_comes_back(client):
    task_id = scene.dead()

    question = asked(client, "resend", "dead", task_id, scope="task")
    response = client.post(url("resend", "dead", task_id, scope="task"))

    assert f"Send the task {task_id} of the queue mail again." in question
    assert response.url == f"{ROOT}task/?{urlencode({'alias': 'default', 'id': task_id})}"
    assert logged() == [f"Sent the task {task_id} of the queue mail again."]


def test_after_a_task_is_deleted_the_list_comes_back(client):
    task_id = scene.dead()

    response = client.post(url("delete", "dead", task_id, scope="task"))

    assert response.url == f"{ROOT}tasks/?alias=default&queue=mail&state=dead"


def test_after_an_action_on_a_search_the_search_comes_back(client):
    task_id = scene.dead()

    response = client.post(url("delete", "dead", task_id, q="no route"))

    assert response.url == f"{ROOT}tasks/?alias=default&queue=mail&state=dead&q=no+route"


def test_the_confirmation_warns_of_what_cannot_be_undone(client):
    task_id = scene.dead()

    assert "This cannot be undone." in asked(client, "delete", "dead", task_id)
    assert "cannot be undone" not in asked(client, "resend", "dead", task_id)


def test_cancelling_says_how_many_the_dead_set_keeps(client):
    scene.ready()

    assert "The latest 10,000 dead tasks of each queue are kept." in asked(
        client, "cancel", "ready", scope="all"
    )


def test_an_entry_that_cannot_be_read_can_be_deleted_and_not_sent(client, redis):
    task_id = scene.dead()
    redis.hset(keys.BackendKeys("default").tasks, task_id, b"nonsense")

    sent, deleted = done(client, "resend", "dead", task_id), done(client, "delete", "dead", task_id)

    assert sent == ["1 task could not be sent: no longer dead, or not readable."]
    assert deleted == ["Deleted 1 task of the queue mail."]
    assert places("mail") == {}


@pytest.mark.parametrize("state", ["ready", "delayed", "running", "dead", "successful"])
def test_a_task_offers_what_can_be_done_to_it(client, state):
    task_id = scene.one_of_each("mail")[state]
    offered = {"ready": {"Cancel", "Delete"}, "delayed": {"Cancel", "Delete"}, "running": {"Cancel"}}
    again = "Run again with other arguments"
    offered |= {"dead": {"Send again", "Delete", again}, "successful": {"Delete", again}}

    html = client.get(f"{ROOT}task/", {"alias": "default", "id": task_id}).text
    buttons = dict(re.findall(r'<a class="button[^"]*" href="([^"]+)">([^<]+)…</a>', html))

    assert set(buttons.values()) == offered[state]
    for address in buttons:
        response = client.get(unescape(address))
        assert response.status_code == 200
        assert f"the task {task_id}" in words(response)
        assert 'type="submit"' in CONTENT.search(response.text)[0]


def test_the_form_of_a_list_leads_to_its_confirmation(client):
    """What a browser sends: the checked boxes, and where the button leads."""
    task_id = scene.dead()
    html = client.get(
        f"{ROOT}tasks/", {"alias": "default", "queue": "mail", "state": "dead", "q": "send"}
    ).text

    form = html[html.index('data-key="selection"') :]
    fields = dict(re.findall(r'<input type="(?:hidden|checkbox)" name="(\w+)" value="([^"]*)"', form))
    [resend] = re.findall(r'formaction="([^"]+/resend/)"', form)

    assert fields == {"alias": "default", "queue": "mail", "state": "dead", "q": "send", "id": task_id}
    assert "Send 1 dead task of the queue mail again." in words(client.get(resend, fields))


def test_without_permission_a_list_has_no_boxes(viewer):
    scene.dead()

    html = viewer.get(f"{ROOT}tasks/", {"alias": "default", "queue": "mail", "state": "dead"}).text

    assert "checkbox" not in CONTENT.search(html)[0]


def test_a_page_can_be_selected_as_a_whole_and_does_not_refresh_itself_then(client):
    scene.ready(count=51)
    query = {"alias": "default", "queue": "mail"}

    plain = client.get(f"{ROOT}tasks/", query).text
    selected = client.get(f"{ROOT}tasks/", {**query, "select": "page"}).text

    assert (plain.count(" checked>"), selected.count(" checked>")) == (1, 51)  # the scope, and 50 boxes
    assert "Select the 50 on this page" in words(client.get(f"{ROOT}tasks/", query))
    assert "live.js" in plain
    assert "live.js" not in selected
    assert 'href="?alias=default&amp;queue=mail&amp;offset=50"' in selected  # the next page is not selected
