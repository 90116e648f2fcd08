"""The search of the control room: what it finds, for whom, and what it costs."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.test import Client

from components.services.counters import Counter
from components.services.mailboxes import Mailbox
from project.market.tasks import send_sold_email
from tests.control_room.every_page import ADMINS, one_periodic_task, query  # noqa: F401
from tests.control_room.pages import trips, words
from tests.queues.admin import scene
from tests.queues.admin.periodic import HOURLY

ROOT = "/admin/components/overview/find/"
JSON = {"Accept": "application/json"}


@pytest.fixture
def everybody(staff):
    return staff(*(f"view_{model}" for model in ADMINS), "view_user")


def found(client, text):
    """What is found: kind, name and address of each."""
    answer = client.get(ROOT, {"q": text}, headers=JSON)
    assert answer.status_code == 200
    return [(hit["kind"], hit["name"], hit["url"]) for hit in answer.json()["hits"]]


def names(client, text):
    return [(kind, name) for kind, name, _url in found(client, text)]


FOUND = {
    "mai": ("Queue", "mail"),
    "MAIL": ("Queue", "mail"),
    "sweep": ("Periodic task", HOURLY.name),
    "item:4": ("Lock", "item:42"),
    "api": ("Semaphore", "api"),
    "guild": ("Chat", "Lantern Keepers (guild:7)"),
    "keepers": ("Chat", "Lantern Keepers (guild:7)"),
    "jac": ("Mailbox", "jack"),
    "market.it": ("Address book", "market.item"),
    "hit": ("Counter", "hits"),
    "item": ("Cached model", "items"),
    "items:1": ("Cached row", "items:1"),
    "def": ("Log job", "default"),
    "staff": ("User", "staff"),
    "semaph": ("Page", "Semaphores"),
}


def test_a_thing_of_each_kind_is_found_and_its_page_opens(everybody, query):  # noqa: F811
    Counter("hits").update(1)
    User.objects.create_user("staff")

    for text, expected in FOUND.items():
        hits = {(kind, name): url for kind, name, url in found(everybody, text)}
        assert expected in hits
        assert everybody.get(hits[expected]).status_code == 200


def test_tasks_are_found_by_their_id_and_by_the_name_of_what_they_run(everybody, redis):
    task_id, name = scene.dead("mail"), send_sold_email.module_path
    wanted = {"alias": "default", "queue": "mail", "task": name}

    [(kind, found_id, url)] = found(everybody, task_id)

    assert (kind, found_id) == ("Task", task_id)
    assert f"Task {task_id}" in words(everybody.get(url))
    assert found(everybody, "sold_em") == [
        ("Tasks by name", name, f"/admin/components/queue/tasks/?{urlencode(wanted)}")
    ]


def test_nothing_is_found_of_what_one_may_not_view(staff, query):  # noqa: F811
    Counter("hits").update(1)
    for model in set(ADMINS) - {"overview"}:
        some = staff("view_overview", *(f"view_{each}" for each in ADMINS if each != model))
        for text in FOUND:
            urls = [url for _kind, _name, url in found(some, text)]
            assert not [url for url in urls if url.startswith(f"/admin/components/{model}/")], text
    assert ("User", "staff") not in names(some, "staff")


def test_without_the_right_to_the_overview_there_is_no_search(staff, redis):
    for client in (staff(), staff("view_queue")):
        assert client.get(ROOT).status_code == 403
        assert "data-finder" not in client.get("/admin/components/queue/").text
    assert Client().get(ROOT).status_code == 302


def test_a_search_costs_one_round_trip_however_much_there_is(everybody, redis):
    for number in range(200):
        Mailbox(f"box {number}").push("joe", "hello")
    with trips() as made:
        hits = found(everybody, "1")

    assert len(made) == 1
    assert sum(kind == "Mailbox" for kind, _name, _url in hits) == 5


def test_the_exact_name_is_first_and_then_those_that_begin_with_the_text(everybody, redis):
    for name in ("a jack", "jackdaw", "jack", "jackpot"):
        Mailbox(name).push("joe", "hello")

    User.objects.create_user("jackson")
    scene.dead("jack")

    hits = names(everybody, "jack")

    assert hits[:2] == [("Queue", "jack"), ("Mailbox", "jack")]
    assert [name for kind, name in hits if kind == "Mailbox"] == ["jack", "jackdaw", "jackpot", "a jack"]


@pytest.mark.parametrize(
    "text", ["%", "*", "[a", "\\", "a.b", "<b>", "é", "\n", "x" * 3_000, "\0", "{05}", "%s"]
)
def test_any_text_is_looked_for_as_it_is(everybody, redis, text):
    Mailbox("harmless").push("joe", "hello")
    Mailbox("100% <b>é</b>").push("joe", "hello")

    mailboxes = [name for kind, name in names(everybody, text) if kind == "Mailbox"]

    stripped = text.strip()
    assert mailboxes == [name for name in ("100% <b>é</b>",) if stripped and stripped in name]
