"""Lists of tasks: filters and groups of failures, how far they look, and what they tell whom."""

import re
from html import unescape
from urllib.parse import urlencode

import pytest
from django.contrib.admin.models import LogEntry
from django.test.utils import override_settings

from components.services.queues import TaskQueue, task
from components.services.queues.admin import filters, lookups, selections
from components.services.queues.failures import Failures, groups
from tests.control_room.pages import done, logged, rows_of, text_of, words
from tests.queues.admin import scene
from tests.queues.admin.scene import MAIL, ROOT, of
from tests.support.queues import places


def listed(client, state="ready", **query):
    response = client.get(f"{ROOT}tasks/", {**MAIL, "state": state, **query})
    assert response.status_code == 200
    return response


pytestmark = pytest.mark.usefixtures("redis")


@task
def charge(sale: int, to: str = "") -> None: ...


CHARGE = f"{__name__}.charge"


def found(client, state="ready", **query):
    return [info.id for info in listed(client, state, **query).context["tasks"]]


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
        *((each, True) for each in ("9", "jürgen", "true", "sale=9", "to=Jürgen", "deep", "url=a=b")),
        *((each, False) for each in ("19", "sale=1", "to=Jack")),
    ],
)
def test_an_argument_is_found_by_its_value_and_its_name(viewer, wanted, is_found):
    scene.ready(name=CHARGE, args=[1900])
    kwargs = {"to": "An Jürgen", "lines": [{"note": "deeply"}], "is_new": True, "url": "?a=b"}
    [wanted_id] = scene.ready(name=CHARGE, args=[9], kwargs=kwargs)

    assert found(viewer, argument=wanted) == ([wanted_id] if is_found else [])


def test_the_time_is_that_of_the_state(viewer):
    ids = scene.one_of_each()
    for state in ("ready", "running", "dead", "successful"):
        assert found(viewer, state, since="2026-01-01T00:00", until="2222-01-01T00:00:00") == [ids[state]]
        assert found(viewer, state, until="2020-01-01T00:00") == []
        assert found(viewer, state, since="2222-01-01T00:00") == []
        with override_settings(TIME_ZONE="Europe/Berlin"):
            assert found(viewer, state, since="2025-10-26T02:30", until="2222-10-27T02:30") == [ids[state]]


def test_text_is_searched_in_ids_names_arguments_and_the_latest_error_whatever_its_case(viewer):
    dead = scene.dead()
    by_argument, by_name = scene.ready(kwargs={"to": "Jürgen"}) + scene.ready(name="market.tasks.Refund")

    assert found(viewer, q="JÜRGEN") == [by_argument]
    assert found(viewer, q="refund") == found(viewer, q=by_name.upper()) == [by_name]
    assert found(viewer, "dead", q="No Route") == [dead]
    assert found(viewer, q="no route") == []
    assert found(viewer, q="  ") == [by_argument, by_name]


def test_filters_combine_and_are_shown_in_the_form(viewer):
    [both] = scene.ready(name=CHARGE, args=[9])
    scene.ready(name=CHARGE, args=[8])
    scene.ready(args=[9])

    response = listed(viewer, task="charge", argument="9", q=both[:8])

    assert [info.id for info in response.context["tasks"]] == [both]
    assert 'name="task" value="charge"' in response.text
    assert 'name="argument" value="9"' in response.text
    assert "live.js" not in response.text


def test_a_filter_that_makes_no_sense_finds_nothing_and_says_why(viewer, remover):
    [task_id] = scene.ready()

    response = listed(viewer, since="yesterday")
    remover.post(of("delete", "ready", scope="all", since="yesterday"))

    assert list(response.context["tasks"]) == []
    assert "Enter a valid date/time." in words(response)
    assert TaskQueue().get(task_id)


@pytest.mark.parametrize("asked", [{"task": "send"}, {"q": "send"}])
def test_a_look_is_bounded_says_so_and_is_continued_where_it_ended(viewer, monkeypatch, asked):
    monkeypatch.setattr(filters, "WINDOW", 3)
    ids = scene.ready(count=5)

    first = listed(viewer, **asked)

    assert [info.id for info in first.context["tasks"]] == ids[:3]
    assert "The other 2 were not searched." in words(first)
    if "task" in asked:
        [link] = re.findall(r'href="([^"]*)">Continue from here', first.text)
        second = viewer.get(f"{ROOT}tasks/{unescape(link)}")
        assert [info.id for info in second.context["tasks"]] == ids[3:]
        assert "Continue from here" not in second.text


def test_an_action_on_all_that_were_found_is_on_those_alone(remover):
    scene.ready(count=2, args=[9])
    kept = scene.ready(args=[8])
    address = of("delete", "ready", scope="all", argument="9", task="send")

    assert "Delete all 2 ready tasks" in words(remover.get(address))
    response = remover.post(address)

    assert response.url.endswith("tasks/?alias=default&queue=mail&state=ready&task=send&argument=9")
    assert [info.id for info in TaskQueue().tasks("mail", "ready")] == kept


@pytest.mark.parametrize(
    "asked", [{"argument": "9"}, {"argument": "sale=9"}, {"message": "route"}, {"q": "route"}]
)
def test_filters_find_nothing_out_for_those_who_may_not_see(onlooker, viewer, staff, asked):
    dead = scene.dead(name=CHARGE, args=[9])

    assert found(viewer, "dead", **asked) == [dead]
    assert found(onlooker, "dead", **asked) == []
    staff("view_queue", "delete_queue").post(of("delete", "dead", scope="all", **asked))
    assert TaskQueue().get(dead)


ALL = {"alias": "default"}


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


def test_a_group_of_those_who_may_see_it_tells_others_nothing(operator, viewer, die):
    die("KeyError: no ink")
    key = key_of("no ink")

    assert len(listed(viewer, "dead", group=key).context["tasks"]) == 1
    assert not listed(operator, "dead", group=key).context["tasks"]
    assert done(operator, of("resend", "dead", scope="all", group=key))[0].startswith("There are no dead")


def test_a_group_is_sent_again_and_no_other_task(manager, die):
    wanted, kept = die("KeyError: 9", 3), die("ValueError: no ink", 2)
    address = of("resend", "dead", scope="all", group=key_of("9"))

    assert "Send all 3 dead tasks of the queue mail that died of" in text_of(manager, "", address)
    said = done(manager, address)
    assert logged() == said
    assert places("mail") == {"ready": wanted, "dead": kept[::-1]}
    assert LogEntry.objects.get().object_id == "default/mail"


def test_one_request_looks_at_so_many_and_the_next_continues(manager, die, monkeypatch):
    monkeypatch.setattr(selections, "BOUND", 2)
    monkeypatch.setattr(filters, "WINDOW", 2)
    die("KeyError: 9")
    kept = die("ValueError: no ink")
    die("KeyError: 9", 2)
    key = key_of("9")

    first = manager.get(f"{ROOT}failures/", MAIL)
    [link] = re.findall(r'href="([^"]*)">Continue from here', first.text)
    assert "2 of 4 dead tasks" in words(first)
    assert len(rows_of(manager, f"{ROOT}failures/", unescape(link))) == 2
    response = manager.post(of("resend", "dead", scope="all", group=key))
    page = manager.get(response.url)

    assert TaskQueue().stats("mail").ready == 2
    assert [group.count for group, *_rest in page.context["groups"]] == [1, 1]
    done(manager, of("resend", "dead", scope="all", group=key, after=page.context["after"]))
    assert TaskQueue().stats("mail").ready == 3
    assert places("mail")["dead"] == kept


def test_only_dead_tasks_have_groups_and_only_groups_are_of_all_queues(manager):
    dead, [task_id] = scene.dead(), scene.ready()
    wrong = [of("delete", "ready", scope="all", group="x")]
    for page in ("tasks", "resend", "delete"):
        wrong.append(f"{ROOT}{page}/?{urlencode({**ALL, 'state': 'dead', 'scope': 'all'})}")

    assert [manager.get(each).status_code for each in wrong] == [404] * 4
    assert [manager.post(each).status_code in (404, 405) for each in wrong] == [True] * 4
    assert places("mail") == {"ready": [task_id], "dead": [dead]}


def test_failures_of_all_queues_are_grouped_with_links_to_them_in_each_queue(viewer, monkeypatch):
    for queue in ("mail", "news", "ads", "polls", "mail"):
        scene.dead(queue)
    scene.dead("mail", name="shop.tasks.pack")

    many, one = rows_of(viewer, ROOT, "failures/", **ALL)
    html = viewer.get(f"{ROOT}failures/", ALL).text
    [link] = re.findall(r'<a href="([^"]*queue=mail[^"]*group=[^"]*)">', html.partition("shop.tasks.pack")[0])

    assert many.startswith("OSError: <b>no route</b> market.tasks.send ads, mail, news, and 1 more 5 ")
    assert one.startswith("OSError: <b>no route</b> shop.tasks.pack mail 1 ")
    assert len(viewer.get(unescape(link)).context["tasks"]) == 2
    monkeypatch.setattr(lookups, "MOST_QUEUES", 2)  # of very many queues the first by name are looked at
    assert [row.partition("send ")[2][:12] for row in rows_of(viewer, ROOT, "failures/", **ALL)][:1] == [
        "ads, mail 3 "
    ]


def test_a_group_of_all_queues_is_sent_again_in_the_queue_of_each(manager):
    wanted = [scene.dead(queue, name="shop.tasks.send") for queue in ("mail", "news", "news")]
    other = scene.dead("news", name="shop.tasks.pack")
    key = manager.get(f"{ROOT}failures/", ALL).context["groups"][0][0].latest.group
    url = f"{ROOT}resend/?{urlencode({**ALL, 'state': 'dead', 'scope': 'all', 'group': key})}"

    assert "Send all 3 dead tasks of all queues that died of" in text_of(manager, "", url)
    said = done(manager, url)
    assert logged() == said
    assert len(done(manager, url)) == len(logged()) == 1
    assert LogEntry.objects.get().object_id == "default"
    assert places("mail") == {"ready": wanted[:1]}
    assert places("news") == {"ready": wanted[1:], "dead": [other]}


def test_failures_that_look_alike_are_one_line_with_messages_for_who_may_see_them(viewer, onlooker, die):
    wanted = die("KeyError: 9", 4)
    die("ValueError: no ink", 2, name="market.tasks.charge")
    die("KeyError: 'other'", sensitive=True)

    keys, values, sensitive = rows(viewer)

    assert keys.startswith("KeyError: 9 market.tasks.send 4 ")
    assert values.startswith("ValueError: no ink market.tasks.charge 2 ")
    assert sensitive.startswith("KeyError market.tasks.send 1 ")
    assert [re.sub(" [0-9:]{8} .*", "", row) for row in rows(onlooker)] == [
        "KeyError market.tasks.send 5",
        "ValueError market.tasks.charge 2",
    ]
    html = viewer.get(f"{ROOT}failures/", MAIL).text
    tasks = viewer.get(unescape(re.findall(r'<a href="([^"]*group=[^"]*)">KeyError: 9', html)[0]))
    assert [info.id for info in tasks.context["tasks"]] == wanted[::-1]
    assert "Of 7 dead tasks that were looked at, 4 died of" in words(tasks)
