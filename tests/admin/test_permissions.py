"""Who may see and do what, on every URL that the Queues page has: a later one is tested without being named."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.test import Client

from components.admin import QueueAdmin
from components.models import Queue
from components.services.queues import TaskQueue
from tests.admin.scene import dead

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
CHANGING = {"pause", "resume"}


@pytest.fixture
def query(redis):
    return f"?alias=default&queue=mail&id={dead()}"


def test_the_pages_are_the_ones_that_this_test_knows_to_be_looking_or_changing():
    assert set(PAGES) == {"changelist", "tasks", "task", "history", "change", *CHANGING}


@pytest.mark.parametrize("route", ["add/", "default_2Fmail/", "default_2Fmail/delete/"])
def test_stock_pages_that_would_need_a_table_do_not_exist(operator, route):
    assert operator.get(ROOT + route).status_code == 404


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("page", PAGES)
def test_staff_without_permission_get_403(stranger, query, page, method):
    response = getattr(stranger, method)(PAGES[page] + query)

    assert response.status_code == 403


@pytest.mark.parametrize("method", ["get", "post"])
@pytest.mark.parametrize("page", PAGES)
def test_the_anonymous_are_sent_to_the_log_in(db, query, page, method):
    response = getattr(Client(), method)(PAGES[page] + query)

    assert response.status_code == 302
    assert response.url.startswith("/admin/login/?next=")


@pytest.mark.parametrize("page", set(PAGES) - CHANGING)
def test_who_may_view_can_look_and_not_post(viewer, query, page):
    assert viewer.get(PAGES[page] + query, follow=True).status_code == 200
    assert viewer.post(PAGES[page] + query).status_code == 405


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("page", CHANGING)
def test_who_may_only_view_can_change_nothing(viewer, query, page, method):
    response = getattr(viewer, method)(PAGES[page] + query)

    assert response.status_code == 403
    assert not TaskQueue().stats("mail").paused


def test_buttons_are_only_shown_to_those_who_may_press_them(viewer, operator, query):
    for page in ("changelist", "tasks"):
        assert "pause/" in operator.get(PAGES[page] + query).text
        assert "pause/" not in viewer.get(PAGES[page] + query).text


def test_the_menu_shows_queues_to_those_who_may_view_them(viewer, stranger, operator):
    for client, is_shown in ((viewer, True), (operator, True), (stranger, False)):
        assert (f'href="{ROOT}"' in client.get("/admin/").text) is is_shown


@pytest.mark.parametrize("page", CHANGING)
def test_a_change_without_csrf_token_is_refused(operator, query, page):
    operator.handler.enforce_csrf_checks = True

    response = operator.post(PAGES[page] + query)

    assert response.status_code == 403
    assert not TaskQueue().stats("mail").paused
