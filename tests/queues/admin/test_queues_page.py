"""What the Queues page shows and does, with real tasks in every state."""

from __future__ import annotations

import re
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from html import escape
from types import SimpleNamespace
from urllib.parse import urlencode

import pytest
from django.contrib.admin.models import LogEntry
from django.test import override_settings

from components.services.queues import Consumer, Progress, TaskQueue, keys, task
from components.services.queues.admin.queues import _Durations
from tests.control_room.pages import logged, round_trips, words
from tests.queues.admin import scene
from tests.support.queues import claim, push_many

ROOT = "/admin/components/queue/"
STATES = ["ready", "delayed", "running", "dead", "successful"]
DASH = "\N{EN DASH}"
AWKWARD = "a/b ü%{}&?#'\"<script>alert(1)</script>"

pytestmark = pytest.mark.usefixtures("redis")


def page(client, name="", /, **query):
    """The page as text: without tags, and with white space as a reader sees it."""
    response = client.get(f"{ROOT}{name}", query)
    assert response.status_code == 200
    return words(response)


def test_starts_that_were_cut_off_are_counted_where_there_are_any(viewer):
    push_many(2)
    consumer = Consumer()
    begun = claim(consumer, 2)
    assert "Cut off" not in page(viewer)

    consumer.release(begun, begun=begun)

    assert "Cut off: 2" in page(viewer)


def test_the_overview_counts_each_state_and_links_to_its_tasks(viewer):
    scene.one_of_each("mail")
    scene.ready("mail", count=2)

    html = viewer.get(ROOT).text

    for state, count in zip(STATES, [3, 1, 1, 1, 1], strict=True):
        query = {"alias": "default", "queue": "mail", "state": state}
        link = escape(f"{ROOT}tasks/?{urlencode(query)}")
        if state == "dead":  # by their error
            link = escape(f"{ROOT}failures/?{urlencode({'alias': 'default', 'queue': 'mail'})}")
        assert f'href="{link}"' in html
        assert f'aria-label="{count} {state} in mail"' in html


def test_the_overview_says_how_long_the_oldest_waits_and_what_is_due_next(viewer, redis):
    scene.delayed("news")
    task_id = scene.ready("mail")[0]
    seconds, _microseconds = redis.time()
    redis.zadd(keys.QueueKeys("default", "mail").ready, {task_id: (seconds - 7500) * 1000})

    text = page(viewer)

    assert "2 h 5 min" in text
    assert re.search("in (1 h|59 min)", text)


@pytest.mark.parametrize("state", STATES)
def test_the_list_of_a_state_has_its_tasks_and_only_those(viewer, state):
    ids = scene.one_of_each("mail")

    text = page(viewer, "tasks/", alias="default", queue="mail", state=state)

    assert [found for found, task_id in ids.items() if task_id in text] == [state]
    assert f"1{DASH}1 of 1" in text


def test_a_task_shows_all_that_is_known_of_it(viewer):
    task_id = scene.successful(
        "mail", args=[{"sale": 7}], kwargs={"to": "Jürgen"}, priority=-5, result={"sent": True}
    )

    text = page(viewer, "task/", alias="default", id=task_id)

    for known in ("market.tasks.send", task_id, "Successful", "mail", "-5", '"sale": 7', '"to": "Jürgen"'):
        assert known in text
    assert '{ "sent": true }' in text
    assert text.index("Enqueued") < text.index("Started") < text.index("Finished")


@task(max_attempts=12)
def patient() -> None: ...


@task
def plain() -> None: ...


def test_attempts_are_shown_with_the_most_there_can_be_where_it_is_known(viewer):
    shown = {}
    for name in (f"{__name__}.patient", f"{__name__}.plain", "market.tasks.not_loaded", "os.path", "no"):
        task_id = scene.dead("mail", name=name)
        shown[name.split(".")[-1]] = page(viewer, "task/", alias="default", id=task_id)

    assert "Attempts 1 of 12 " in shown["patient"]
    assert "Attempts 1 of 1 " in shown["plain"]
    for unknown in ("not_loaded", "path", "no"):
        assert "Attempts 1 " in shown[unknown]
        assert "Attempts 1 of" not in shown[unknown]


def test_a_task_that_is_to_be_tried_again_says_when(viewer):
    task_id = scene.retrying("mail")

    text = page(viewer, "task/", alias="default", id=task_id)
    listed = page(viewer, "tasks/", alias="default", queue="mail", state="delayed")

    assert "Delayed, to try again" in text
    assert re.search("Next attempt.* in (1 h|59 min)", text)
    assert "builtins.ValueError" in text
    assert "to try again" in listed


def test_progress_is_shown_with_words_beside_it(viewer):
    task_id = scene.running("mail", progress=Progress(1250, 5000.0, "rows <b>read</b>"))

    html = viewer.get(ROOT + "task/", {"alias": "default", "id": task_id}).text

    assert '<progress aria-label="Progress" max="100" value="25.0"></progress>' in html
    said = "1,250 of 5,000 (25 %): rows <b>read</b>"
    assert said in page(viewer, "task/", alias="default", id=task_id)
    assert said in page(viewer, "tasks/", alias="default", queue="mail", state="running")


@override_settings(LANGUAGE_CODE="de")
def test_a_bar_is_as_long_in_a_language_with_commas(viewer):
    task_id = scene.running("mail", progress=Progress(1, 3))

    assert 'value="33.3"' in viewer.get(ROOT + "task/", {"alias": "default", "id": task_id}).text


def test_a_task_that_was_asked_to_end_says_so_and_a_cancelled_one_too(viewer):
    running, waiting = scene.running("mail"), scene.ready("mail")[0]
    TaskQueue().cancel("mail", [running, waiting])

    assert "Running, asked to end" in page(viewer, "task/", alias="default", id=running)
    assert "Asked to end" in page(viewer, "tasks/", alias="default", queue="mail", state="running")
    assert "Dead, cancelled" in page(viewer, "task/", alias="default", id=waiting)
    assert "TaskCancelled" in page(viewer, "tasks/", alias="default", queue="mail", state="dead")


def test_durations_are_told_of_all_runs_that_have_ended():
    began = datetime(2026, 1, 1, tzinfo=UTC)
    runs = [
        SimpleNamespace(
            state="successful", last_attempted_at=began, finished_at=began + timedelta(seconds=seconds)
        )
        for seconds in range(40, 0, -1)
    ]
    waiting = SimpleNamespace(state="ready", last_attempted_at=None, finished_at=None)

    assert _Durations.of([*runs, waiting]) == _Durations(40, 20.5, 38.0, 40.0)
    assert _Durations.of([waiting]) is None


def test_nothing_that_a_task_brings_is_taken_for_html(viewer):
    evil = "</pre><script>alert(1)</script>"
    task_id = scene.dead(AWKWARD, args=[evil], kwargs={evil: evil})
    query = {"alias": "default", "queue": AWKWARD, "state": "dead", "id": task_id}

    for name in ("", "tasks/", "task/"):
        assert "<script>alert" not in viewer.get(ROOT + name, query).text


@pytest.mark.parametrize("queue", [AWKWARD, "..", "  ", "%2e%2e%2f"])
def test_a_queue_of_any_name_can_be_listed_paused_and_looked_up(operator, queue):
    scene.ready(queue)
    query = {"alias": "default", "queue": queue}

    listed = page(operator, "tasks/", **query)
    posted = operator.post(f"{ROOT}pause/?{urlencode(query)}", follow=True)
    from_the_log = operator.get(LogEntry.objects.get().get_admin_url(), follow=True)

    assert "send" in listed
    assert "Active" in listed
    assert TaskQueue().stats(queue).paused
    assert "Paused Resume…" in words(posted)
    assert from_the_log.request["PATH_INFO"] == f"{ROOT}tasks/"
    assert "Paused Resume…" in words(from_the_log)


def test_pausing_and_resuming_are_logged_with_who_and_what(operator):
    scene.ready("mail", count=3)

    for verb, is_paused in (("pause", True), ("resume", False)):
        response = operator.post(f"{ROOT}{verb}/?alias=default&queue=mail", follow=True)
        assert TaskQueue().stats("mail").paused is is_paused
        assert f"{verb.capitalize()}d the queue mail (3 ready, 0 delayed)." in words(response)

    assert {(entry.object_id, entry.user.username) for entry in LogEntry.objects.all()} == {
        ("default/mail", "staff ('change_queue',)")
    }
    history = page(operator, "default_2Fmail/history/")
    assert [said.split()[0] for said in logged() if said in history] == ["Paused", "Resumed"]


@pytest.mark.parametrize(("verb", "said"), [("pause", "is paused already"), ("resume", "is not paused")])
def test_a_change_that_is_made_already_says_so_and_is_not_logged(operator, verb, said):
    scene.ready("mail")
    if verb == "pause":
        TaskQueue().pause("mail")
    where = f"{ROOT}{verb}/?alias=default&queue=mail"

    asked, posted = operator.get(where), operator.post(where, follow=True)

    assert f"The queue mail {said}." in words(asked)
    assert "<form method" not in asked.text.split('id="live"')[1]
    assert f"The queue mail {said}." in words(posted)
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize(
    ("name", "query", "most"),
    [
        ("", "", 3),
        ("tasks/", "?alias=default&queue=mail", 3),
        ("tasks/", "?alias=default&queue=mail&state=dead", 3),
        ("tasks/", "?alias=default&queue=mail&q=send", 5),
        ("task/", "?alias=default&id={ready}", 2),
        ("delete/", "?alias=default&queue=mail&scope=all", 1),
        ("delete/", "?alias=default&queue=mail&id={ready}", 2),
        ("stop/", "?alias=default", 3),
    ],
)
def test_a_page_takes_so_many_round_trips_and_no_more_with_more_tasks(staff, name, query, most):
    client, ids = staff("change_queue", "delete_queue"), scene.one_of_each("mail")
    scene.worker("mail")
    address = ROOT + name + query.format(**ids)
    client.get(address)  # once for the server to know the scripts

    few = round_trips(client, address)
    scene.ready("mail", count=2000)

    assert few <= most
    assert round_trips(client, address) <= most


def test_a_nonce_of_the_project_is_on_all_that_the_page_loads(viewer, settings):
    [engine] = deepcopy(settings.TEMPLATES)
    engine["OPTIONS"]["context_processors"].append("tests.control_room.urls.nonce")
    settings.TEMPLATES = [engine]

    html = viewer.get(ROOT).text

    ours = re.findall(r"<(?:link|script)[^>]*/components/[^>]*>", html)
    assert len(ours) == 4
    assert all('nonce="abc"' in tag for tag in ours)
