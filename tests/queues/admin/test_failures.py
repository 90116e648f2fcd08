"""Dead tasks by their error: what the page counts, who sees the messages, and actions on a group."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import urlencode

import pytest
from django.contrib.admin.models import LogEntry

from components.services.queues import TaskQueue
from components.services.queues.admin import filters, lookups, selections
from components.services.queues.failures import Failures, groups
from tests.control_room.pages import done, logged, round_trips, rows_of, text_of
from tests.queues.admin import scene
from tests.support.queues import places

ROOT = "/admin/components/queue/"
MAIL = {"alias": "default", "queue": "mail"}
ALL = {"alias": "default"}

pytestmark = pytest.mark.usefixtures("redis")


@pytest.fixture
def client(staff):
    return staff("change_queue", "delete_queue", "view_arguments_queue")


@pytest.fixture
def die(monkeypatch):
    """die("KeyError: 9", 3) lets three tasks die of that."""

    def died(last_line, count=1, **task):
        monkeypatch.setattr(scene, "TRACEBACK", f"Traceback (most recent call last):\n{last_line}\n")
        monkeypatch.setattr(scene, "KIND", f"builtins.{last_line.partition(':')[0]}")
        return [scene.dead("mail", **task) for _ in range(count)]

    return died


def rows(client, **query):
    return rows_of(client, ROOT, "failures/", **MAIL, **query)


def key_of(wanted):
    """The key of the group whose latest message is *wanted*."""
    found = groups(Failures("default", "mail").look(most=100).found)
    [key] = [group.latest.group for group in found if group.latest.error.message == wanted]
    return key


def address(verb, **query):
    return f"{ROOT}{verb}/?{urlencode({**MAIL, 'state': 'dead', 'scope': 'all', **query})}"


def test_failures_that_look_alike_are_one_line(viewer, die):
    die("KeyError: 9", 4)
    die("ValueError: no ink", 2, name="market.tasks.charge")

    keys, values = rows(viewer)

    assert keys.startswith("KeyError: 9 market.tasks.send 4 ")
    assert values.startswith("ValueError: no ink market.tasks.charge 2 ")


def test_a_line_leads_to_its_tasks_and_they_to_all_others(viewer, die):
    wanted = die("KeyError: 9", 2)
    die("ValueError: no ink")

    html = viewer.get(f"{ROOT}failures/", MAIL).text
    [link] = re.findall(r'<a href="([^"]*group=[^"]*)">KeyError', html)
    response = viewer.get(unescape(link))

    assert [info.id for info in response.context["tasks"]] == wanted[::-1]
    assert "Of 3 dead tasks that were looked at, 2 died of “KeyError: 9 in market.tasks.send”." in text_of(
        viewer, "", unescape(link)
    )
    assert "failures/" in viewer.get(ROOT).text


def test_the_messages_are_seen_by_those_who_may_see_them(onlooker, viewer, die):
    die("KeyError: 'secret'")
    die("KeyError: 9 secret 9")
    die("KeyError: 'other'", sensitive=True)

    [hidden] = rows(onlooker)

    assert hidden.startswith("KeyError market.tasks.send 3 ")
    assert len(rows(viewer)) == 3
    assert "other" not in text_of(viewer, ROOT, "failures/", **MAIL)


def test_a_group_of_those_who_may_see_it_tells_others_nothing(staff, viewer, die):
    die("KeyError: no ink")
    key, operator = key_of("no ink"), staff("change_queue")

    hidden = text_of(operator, ROOT, "tasks/", **MAIL, state="dead", group=key)

    assert "None of 1 dead tasks that were looked at died of this error." in hidden
    assert "1 died of" in text_of(viewer, ROOT, "tasks/", **MAIL, state="dead", group=key)
    assert done(operator, address("resend", group=key))[0].startswith("There are no dead tasks")


def test_a_group_is_sent_again_and_no_other_task(client, die):
    wanted, kept = die("KeyError: 9", 3), die("ValueError: no ink", 2)

    key = key_of("9")
    asked = text_of(client, "", address("resend", group=key))
    said = done(client, address("resend", group=key))

    assert (
        "Send all 3 dead tasks of the queue mail that died of “KeyError: 9 in market.tasks.send” again."
        in asked
    )
    assert said == ["Sent 3 tasks of the queue mail that died of “KeyError: 9 in market.tasks.send” again."]
    assert places("mail") == {"ready": wanted, "dead": kept[::-1]}
    assert logged() == said
    assert LogEntry.objects.get().object_id == "default/mail"


def test_one_request_looks_at_so_many_and_the_next_continues(client, die, monkeypatch):
    monkeypatch.setattr(selections, "BOUND", 2)
    monkeypatch.setattr(filters, "WINDOW", 2)
    die("KeyError: 9")
    kept = die("ValueError: no ink")
    die("KeyError: 9", 2)
    url = address("resend", group=key_of("9"))

    asked, response = text_of(client, "", url), client.post(url)
    page = client.get(response.url)

    assert "One request looks at 2 dead tasks for them. The next page continues from there." in asked
    assert TaskQueue().stats("mail").ready == 2
    assert [group.count for group, *_rest in page.context["groups"]] == [1, 1]
    assert done(client, address("resend", group=key_of("9"), after=page.context["after"]))[0].startswith(
        "Sent 1 task"
    )
    assert places("mail")["dead"] == kept


def test_the_page_says_what_it_has_not_counted_and_continues(viewer, die, monkeypatch):
    monkeypatch.setattr(filters, "WINDOW", 2)
    die("KeyError: 9")
    die("ValueError: no ink", 2)

    first = viewer.get(f"{ROOT}failures/", MAIL)
    [link] = re.findall(r'href="([^"]*)">Continue from here', first.text)

    assert "These are 2 dead tasks, the latest first; 1 earlier one is not counted here." in text_of(
        viewer, ROOT, "failures/", **MAIL
    )
    [row] = rows_of(viewer, f"{ROOT}failures/", unescape(link))
    assert row.startswith("KeyError: 9")


def test_only_dead_tasks_have_groups(client):
    [task_id] = scene.ready()

    assert client.post(address("delete", state="ready", group="x")).status_code == 404
    assert client.get(f"{ROOT}tasks/", {**MAIL, "state": "ready", "group": "x"}).status_code == 404
    assert TaskQueue().get(task_id)


def test_failures_of_all_queues_are_grouped_with_links_to_them_in_each_queue(viewer):
    for queue in ("mail", "news", "ads", "polls", "mail"):
        scene.dead(queue)
    scene.dead("mail", name="shop.tasks.pack")

    many, one = rows_of(viewer, ROOT, "failures/", **ALL)
    html = viewer.get(f"{ROOT}failures/", ALL).text
    [link] = re.findall(r'<a href="([^"]*queue=mail[^"]*group=[^"]*)">', html.partition("shop.tasks.pack")[0])

    assert many.startswith("OSError: <b>no route</b> market.tasks.send ads, mail, news, and 1 more 5 ")
    assert one.startswith("OSError: <b>no route</b> shop.tasks.pack mail 1 ")
    assert len(viewer.get(unescape(link)).context["tasks"]) == 2
    for start in (ROOT, f"{ROOT}failures/?alias=default&queue=mail"):
        assert 'failures/?alias=default"' in viewer.get(start).text


def test_a_group_of_all_queues_is_sent_again_in_the_queue_of_each(client):
    wanted = [scene.dead(queue, name="shop.tasks.send") for queue in ("mail", "news", "news")]
    other = scene.dead("news", name="shop.tasks.pack")
    key = client.get(f"{ROOT}failures/", ALL).context["groups"][0][0].latest.group
    url = f"{ROOT}resend/?{urlencode({**ALL, 'state': 'dead', 'scope': 'all', 'group': key})}"

    asked, said, again = text_of(client, "", url), done(client, url), done(client, url)

    assert "Send all 3 dead tasks of all queues that died of “OSError: <b>no route</b> in shop" in asked
    assert (len(said), len(again)) == (1, 1)
    assert logged() == said
    assert LogEntry.objects.get().object_id == "default"
    assert places("mail") == {"ready": wanted[:1]}
    assert places("news") == {"ready": wanted[1:], "dead": [other]}


def test_of_very_many_queues_the_first_by_name_are_looked_at(viewer, monkeypatch):
    monkeypatch.setattr(lookups, "MOST_QUEUES", 2)
    for queue in ("c", "b", "a"):
        scene.dead(queue)

    [row] = rows_of(viewer, ROOT, "failures/", **ALL)

    assert row.startswith("OSError: <b>no route</b> market.tasks.send a, b 2 ")


@pytest.mark.parametrize("page", ["tasks/", "resend/", "delete/"])
def test_only_groups_are_of_all_queues(client, page):
    task_id = scene.dead()
    url = f"{ROOT}{page}?{urlencode({**ALL, 'state': 'dead', 'scope': 'all'})}"

    assert client.get(url).status_code == 404
    assert client.post(url).status_code in (404, 405)
    assert places("mail") == {"dead": [task_id]}


def test_the_page_takes_so_many_round_trips_however_many_queues_there_are(viewer, die):
    die("KeyError: 9", 3)
    for number in range(30):
        scene.dead(f"q{number}")
    query = {**MAIL, "after": "1:x mail"}
    viewer.get(f"{ROOT}failures/", query)

    assert round_trips(viewer, f"{ROOT}failures/", query) <= 4
    assert round_trips(viewer, f"{ROOT}failures/", ALL) <= 5
