"""Who may see and do what, on every URL that the Queues page has: a later one is tested without being named."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from django.contrib import admin
from django.test import Client

from components.admin import QueueAdmin
from components.models import Queue
from components.services.queues import TaskQueue
from tests.admin import scene
from tests.admin.periodic import HOURLY, declare_only
from tests.support.queues import places

ROOT = "/admin/components/queue/"
METHODS = ["get", "head", "post", "put", "patch", "delete", "options"]


def every_page():
    patterns = QueueAdmin(Queue, admin.site).get_urls()
    return {
        pattern.name.removeprefix("components_queue_"): ROOT
        + str(pattern.pattern).replace("<path:object_id>", "default_2Fmail")
        for pattern in patterns
    }


PAGES = every_page()
#: The pages that change something, by the permission that they need.
NEEDS = {
    "pause": "change",
    "resume": "change",
    "resend": "change",
    "cancel": "change",
    "quiet": "change",
    "stop": "change",
    "run": "change",
    "delete": "delete",
}
CHANGING = set(NEEDS)
#: A state in which each verb may be done to a task; all others do not care.
STATE = {"resend": "dead", "cancel": "ready", "delete": "dead"}


@pytest.fixture(autouse=True)
def one_periodic_task():
    with declare_only(HOURLY):
        yield


@pytest.fixture
def ids(redis):
    return scene.one_of_each("mail")


@pytest.fixture
def query(ids):
    """of(page) names all that the page may want to know."""

    def of(page):
        state = STATE.get(page, "dead")
        query = {
            "alias": "default",
            "queue": "mail",
            "state": state,
            "id": ids[state],
            "periodic": HOURLY.name,
        }
        return f"?{urlencode(query)}"

    return of


def what_can_change():
    queue = TaskQueue()
    orders = [(worker.id, worker.order) for worker in queue.workers()]
    return places("mail"), places("default"), orders, queue.stats("mail").paused


def test_the_pages_are_the_ones_that_this_test_knows_to_be_looking_or_changing():
    assert set(PAGES) == {"changelist", "tasks", "task", "periodic", "history", "change", *CHANGING}


@pytest.mark.parametrize("route", ["add/", "default_2Fmail/", "default_2Fmail/delete/"])
def test_stock_pages_that_would_need_a_table_do_not_exist(operator, route):
    assert operator.get(ROOT + route).status_code == 404


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("page", PAGES)
def test_staff_without_permission_get_403(stranger, query, page, method):
    response = getattr(stranger, method)(PAGES[page] + query(page))

    assert response.status_code == 403


@pytest.mark.parametrize("method", ["get", "post"])
@pytest.mark.parametrize("page", PAGES)
def test_the_anonymous_are_sent_to_the_log_in(db, query, page, method):
    response = getattr(Client(), method)(PAGES[page] + query(page))

    assert response.status_code == 302
    assert response.url.startswith("/admin/login/?next=")


@pytest.mark.parametrize("page", set(PAGES) - CHANGING)
def test_who_may_view_can_look_and_not_post(viewer, query, page):
    assert viewer.get(PAGES[page] + query(page), follow=True).status_code == 200
    assert viewer.post(PAGES[page] + query(page)).status_code == 405


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("page", CHANGING)
def test_who_may_only_view_can_change_nothing(viewer, query, page, method):
    before = what_can_change()

    response = getattr(viewer, method)(PAGES[page] + query(page))

    assert response.status_code == 403
    assert what_can_change() == before


@pytest.mark.parametrize("page", CHANGING - {"resume"})
def test_each_change_needs_its_permission_and_no_other(operator, remover, query, page):
    allowed, refused = (remover, operator) if NEEDS[page] == "delete" else (operator, remover)
    before = what_can_change()
    assert refused.post(PAGES[page] + query(page)).status_code == 403
    assert what_can_change() == before

    assert allowed.get(PAGES[page] + query(page)).status_code == 200
    assert what_can_change() == before
    assert allowed.post(PAGES[page] + query(page)).status_code == 302

    assert what_can_change() != before


def test_who_may_delete_and_not_look_can_do_neither(staff, query):
    client = staff("delete_queue")

    for page in PAGES:
        assert client.get(PAGES[page] + query(page)).status_code == 403


def test_buttons_are_only_shown_to_those_who_may_press_them(viewer, operator, remover, query):
    scene.worker("mail")
    shown = {
        "changelist": {"pause", "quiet", "stop"},
        "tasks": {"pause", "resend"},
        "task": {"resend"},
    }
    for page, verbs in shown.items():
        for client, expected in ((operator, verbs), (viewer, set())):
            html = client.get(PAGES[page] + query(page)).text
            assert {
                verb for verb in CHANGING if f"{ROOT}{verb}/?" in html or f'{ROOT}{verb}/"' in html
            } == expected
    for page in ("tasks", "task"):
        html = remover.get(PAGES[page] + query(page)).text
        assert f"{ROOT}delete/" in html
        assert f"{ROOT}resend/" not in html


def test_the_menu_shows_queues_to_those_who_may_view_them(viewer, stranger, operator):
    for client, is_shown in ((viewer, True), (operator, True), (stranger, False)):
        assert (f'href="{ROOT}"' in client.get("/admin/").text) is is_shown


@pytest.mark.parametrize("page", CHANGING)
def test_a_change_without_csrf_token_is_refused(staff, query, page):
    client = staff("change_queue", "delete_queue")
    client.handler.enforce_csrf_checks = True
    before = what_can_change()

    response = client.post(PAGES[page] + query(page))

    assert response.status_code == 403
    assert what_can_change() == before
