"""The search of a list: what it finds, where it looks, and that it says so."""

from __future__ import annotations

from html import unescape
from urllib.parse import urlencode

import pytest
from django.utils.html import strip_tags

from components.services.queues import TaskQueue
from components.services.queues.admin import filters
from tests.queues.admin import scene

ROOT = "/admin/components/queue/tasks/"
DASH = "\N{EN DASH}"

pytestmark = pytest.mark.usefixtures("redis")


@pytest.fixture
def window(monkeypatch):
    """A search looks at three tasks."""
    monkeypatch.setattr(filters, "WINDOW", 3)


def found(client, text, state="ready", **query):
    response = client.get(ROOT, {"alias": "default", "queue": "mail", "state": state, "q": text, **query})
    assert response.status_code == 200
    return [task.id for task in response.context["tasks"]], " ".join(
        unescape(strip_tags(response.text)).split()
    )


def test_ids_names_arguments_and_the_latest_error_are_searched_whatever_their_case(viewer):
    dead = scene.dead()
    by_argument, by_name = scene.ready(kwargs={"to": "Jürgen"}) + scene.ready(name="market.tasks.Refund")

    assert found(viewer, "JÜRGEN")[0] == [by_argument]
    assert found(viewer, "refund")[0] == [by_name]
    assert found(viewer, by_name.upper())[0] == [by_name]
    assert found(viewer, "No Route", "dead")[0] == [dead]
    assert found(viewer, "no route")[0] == []


def test_the_page_says_what_was_searched_and_what_was_not(viewer, window):
    ids = scene.ready(count=5)

    first, said = found(viewer, "send")
    _none, nothing = found(viewer, "nowhere")

    assert first == ids[:3]
    assert "3 of the next 3 ready tasks hold “send”. The other 2 were not searched." in said
    assert "0 of the next 3 ready tasks hold “nowhere”" in nothing
    assert "No task is ready" not in nothing


def test_a_search_of_dead_tasks_covers_the_latest(viewer, window):
    ids = [scene.dead() for _ in range(4)]

    listed, said = found(viewer, "send", "dead")

    assert listed == ids[:0:-1]
    assert "3 of the latest 3 dead tasks hold “send”. The other 1 was not searched." in said


def test_matches_come_in_pages_too(viewer):
    ids = scene.ready(count=101)

    first, second = found(viewer, "send"), found(viewer, "send", offset=50)

    assert (first[0], second[0]) == (ids[:50], ids[50:100])
    assert f"1{DASH}50 of 101 Next" in first[1]
    assert f"Previous 51{DASH}100 of 101 Next" in second[1]


def test_blanks_are_no_search(viewer):
    ids = scene.ready(count=2)

    assert found(viewer, "  ")[0] == ids


def test_the_search_text_is_shown_and_escaped(viewer):
    text = "\"><script>alert('a')</script>"
    scene.ready()

    response = viewer.get(ROOT, {"alias": "default", "queue": "mail", "q": text})

    assert "<script>alert" not in response.text
    assert text in unescape(response.text)


def test_a_search_does_not_refresh_itself_and_the_list_does(viewer):
    scene.ready()

    assert "live.js" in viewer.get(ROOT, {"alias": "default", "queue": "mail"}).text
    assert "live.js" not in viewer.get(ROOT, {"alias": "default", "queue": "mail", "q": "a"}).text


def test_the_list_says_how_far_a_search_will_look(viewer):
    assert "of the next 1,000." in found(viewer, "")[1]
    assert "of the latest 1,000." in found(viewer, "", "dead")[1]


def test_a_paused_queue_of_any_name_can_be_searched(viewer):
    queue = "a/b ü%{}&?#'\"<b>"
    task_id = scene.ready(queue)[0]
    TaskQueue().pause(queue)

    response = viewer.get(f"{ROOT}?{urlencode({'alias': 'default', 'queue': queue, 'q': task_id})}")

    assert [task.id for task in response.context["tasks"]] == [task_id]
