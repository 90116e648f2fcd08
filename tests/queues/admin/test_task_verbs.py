"""Send again, cancel, delete and run with other arguments: what is asked, done, said and logged."""

import re
from html import unescape
from urllib.parse import urlencode

import pytest
from django.contrib.admin.models import LogEntry

from components.services.queues import TaskQueue
from components.services.queues.admin import selections
from tests.control_room.pages import CONTENT, done, logged, text_of
from tests.queues.admin import scene
from tests.queues.admin.scene import MAIL, ROOT, of
from tests.support.queues import ECHO, claim, found, ids, places

pytestmark = pytest.mark.usefixtures("redis")


def test_selected_tasks_are_sent_again_and_no_others_those_that_died_first_before_all(manager):
    first, second, third = (scene.dead() for _ in range(3))
    address = of("resend", "dead", third, first)

    assert "Send 2 dead tasks of the queue mail again." in text_of(manager, "", address)
    assert places("mail") == {"dead": [third, second, first]}
    said = done(manager, address)

    assert logged() == said
    assert LogEntry.objects.get().object_id == "default/mail"
    assert places("mail") == {"ready": [first, third], "dead": [second]}
    assert "is still dead" in done(manager, address)[0]
    assert logged() == said
    assert len(done(manager, of("resend", "dead"))) == 1  # nothing is selected
    assert places("mail") == {"ready": [first, third], "dead": [second]}


def test_delayed_tasks_are_run_now_and_no_others(manager):
    [first, second], again = scene.delayed(count=2), scene.retrying()
    address = of("promote", "delayed", first, again)
    assert done(manager, address) == done(manager, address) == ["Made 2 tasks of the queue mail due."]
    assert ids(claim(scene.worker("mail"), 3, ["mail"])) == [first, again]
    assert places("mail")["delayed"] == [second]


@pytest.mark.parametrize("state", ["dead", "successful", "ready", "delayed"])
def test_selected_tasks_are_deleted_and_no_others(manager, state):
    ids = scene.one_of_each("mail")
    address = of("delete", state, ids[state], ids[state])

    said, again = done(manager, address), done(manager, address)

    assert logged() == said
    assert f"no longer {state}" in again[0]
    assert TaskQueue().get(ids.pop(state)) is None
    assert places("mail") == {other: [task_id] for other, task_id in ids.items()}


@pytest.mark.parametrize("listed", ["ready", "delayed", "running"])
def test_a_task_that_waits_is_cancelled_at_once_and_one_that_runs_now_is_asked(manager, listed):
    ids = scene.one_of_each("mail")

    [waiting] = done(manager, of("cancel", listed, ids["ready"]))
    [running] = done(manager, of("cancel", listed, ids["running"]))

    assert waiting.startswith("Cancelled 1 task")
    assert running.startswith("Asked 1 task")
    assert set(places("mail")["dead"]) == {ids["dead"], ids["ready"]}
    assert TaskQueue().get(ids["running"]).is_cancelled


def test_a_unique_key_that_is_taken_is_told_and_the_task_stays_dead(manager):
    dead, other = scene.dead(unique="a"), scene.dead()
    scene.ready(unique="a")

    sent, stayed = done(manager, of("resend", "dead", scope="all"))
    refused = done(manager, of("resend", "dead", dead))

    assert sent.startswith("Sent 1 task")
    assert refused == [stayed]
    assert places("mail")["dead"] == [dead]
    assert other in places("mail")["ready"]
    assert logged() == [f"{sent} {stayed}"]  # nothing of what changed nothing


def test_those_that_have_left_the_state_or_are_of_another_queue_are_counted_and_left(manager):
    ids = [scene.dead() for _ in range(3)]
    other = scene.dead("news")
    TaskQueue().resend("mail", ids[:1])
    address = of("delete", "dead", *ids, other)

    asked, said = text_of(manager, "", address), done(manager, address)

    assert said[0].startswith("Deleted 2 tasks")
    assert said[1].startswith("2 tasks of the selection")
    assert said[1] in asked
    assert places("mail") == {"ready": ids[:1]}
    assert places("news") == {"dead": [other]}


def test_all_of_a_state_means_that_state_of_that_queue_and_what_a_search_finds(manager):
    ids, others = scene.one_of_each("mail"), scene.one_of_each("news")
    scene.ready("mail", count=3, kwargs={"to": "Bob"})

    for asked, count in (({"q": "bob"}, "3 ready tasks"), ({}, "1 ready task")):
        address = of("delete", "ready", scope="all", **asked)
        assert f"all {count}" in text_of(manager, "", address) or f"Delete {count}" in text_of(
            manager, "", address
        )
        done(manager, address)
        assert len(places("mail").get("ready", [])) == bool(asked)

    assert places("mail") == {state: [task_id] for state, task_id in ids.items() if state != "ready"}
    assert places("news") == {state: [task_id] for state, task_id in others.items()}


def test_one_request_takes_so_many_and_says_what_is_left(manager, monkeypatch):
    monkeypatch.setattr(selections, "BOUND", 2)
    scene.ready(count=5)
    address = of("delete", "ready", scope="all")

    asked = text_of(manager, "", address)
    said = [done(manager, address) for _ in range(3)]

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
        ("resend", {"offset": "50"}, "tasks/?alias=default&queue=mail&state=dead&offset=50"),
    ],
)
def test_the_page_from_which_it_was_done_comes_back_if_it_is_still_there(manager, verb, query, back):
    task_id = scene.dead()

    response = manager.post(of(verb, "dead", task_id, **query))

    assert response.url == ROOT + back.format(id=task_id)
    assert (task_id in logged()[0]) == ("scope" in query)


@pytest.mark.parametrize(
    ("state", "verbs"),
    [
        ("ready", "cancel delete"),
        ("delayed", "cancel delete promote"),
        ("running", "cancel"),
        ("dead", "delete resend rerun"),
        ("successful", "delete rerun"),
    ],
)
def test_a_task_offers_what_can_be_done_to_it_and_nothing_else_is_done(manager, state, verbs):
    ids = scene.one_of_each("mail")

    html = manager.get(f"{ROOT}task/", {"alias": "default", "id": ids[state]}).text
    buttons = re.findall(r'<a class="button[^"]*" href="([^"]+/(\w+)/\?[^"]+)"', html)

    assert sorted(verb for _address, verb in buttons) == sorted(verbs.split())
    for address, _verb in buttons:
        asked = manager.get(unescape(address))
        assert ids[state] in asked.text
        assert 'type="submit"' in CONTENT.search(asked.text)[0]
    for verb in {"cancel", "delete", "resend", "promote"}.difference(verbs.split()):
        address = of(verb, state, ids[state])
        assert [manager.get(address).status_code, manager.post(address).status_code] == [404, 404]
    assert places("mail") == {other: [task_id] for other, task_id in ids.items()}


def test_the_form_of_a_list_leads_to_its_confirmation(manager, viewer):
    """What a browser sends: the checked boxes, and where the button leads."""
    task_id = scene.dead()
    query = {**MAIL, "state": "dead", "q": "send"}
    html = manager.get(f"{ROOT}tasks/", query).text

    form = html[html.index('data-key="selection"') :]
    fields = dict(re.findall(r'<input type="(?:hidden|checkbox)" name="(\w+)" value="([^"]*)"', form))
    [resend] = re.findall(r'formaction="([^"]+/resend/)"', form)

    assert fields == {**query, "id": task_id}
    assert "Send 1 dead task of the queue mail again." in text_of(manager, "", resend, **fields)
    assert "checkbox" not in CONTENT.search(viewer.get(f"{ROOT}tasks/", query).text)[0]


def test_a_page_can_be_selected_as_a_whole_and_does_not_refresh_itself_then(manager):
    scene.ready(count=51)

    plain = manager.get(f"{ROOT}tasks/", MAIL).text
    selected = manager.get(f"{ROOT}tasks/", {**MAIL, "select": "page"}).text

    assert (plain.count(" checked>"), selected.count(" checked>")) == (1, 51)  # the scope, and 50 boxes
    assert ("live.js" in plain, "live.js" in selected) == (True, False)
    assert 'href="?alias=default&amp;queue=mail&amp;offset=50"' in selected  # the next page is not selected


def one(task_id):
    return f"{ROOT}rerun/?{urlencode({'alias': 'default', 'id': task_id})}"


def ready():
    return TaskQueue().tasks("mail", "ready")


@pytest.mark.parametrize("make", [scene.dead, scene.successful])
def test_a_task_is_run_again_with_other_arguments_and_says_where_it_came_from(manager, make):
    old = make(name=ECHO, args=[{"sale": 7}], priority=5)

    form = manager.get(one(old)).text
    [said] = done(manager, one(old), args="[9]", kwargs="")

    [new] = ready()
    assert "&quot;sale&quot;: 7" in form
    assert said == f"Ran the task {old} of the queue mail again, as the task {new.id}." == logged()[0]
    assert (new.name, new.args, new.kwargs, new.priority, new.queue) == (ECHO, [9], {}, 5, "mail")
    assert found(old).state in ("dead", "successful")
    assert f"Came from the task {old}" in text_of(manager, ROOT, "task/", alias="default", id=new.id)
    assert manager.get(one(new.id)).status_code == manager.get(one("gone")).status_code == 404


def test_the_same_form_twice_stores_one_task(manager):
    old = scene.dead(name=ECHO)

    for argument in (9, 9, 8):
        done(manager, one(old), args=f"[{argument}]")

    assert [info.args for info in ready()] == [[9], [8]]
    assert len(logged()) == 2


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"args": "[9"}, "This is not JSON"),
        ({"args": "[" * 50_000}, "This is not JSON"),
        ({"args": "9"}, "This must be a list"),
        ({"kwargs": "[9]"}, "This must be an object"),
        ({"args": "[NaN]"}, "JSON has no such number"),
        ({"args": "[1, 2, 3]"}, "too many positional arguments"),
        ({"kwargs": '{"odd": 1}'}, "odd"),
        ({"args": f'["{"x" * 70_000}"]'}, "max_body is 65,536"),
        ({"name": "market.gone.send"}, "No task &#x27;market.gone.send&#x27; can be imported"),
    ],
)
def test_arguments_that_the_task_cannot_take_are_refused_with_the_reason(manager, given, reason):
    old = scene.dead(name=given.pop("name", ECHO))

    response = manager.post(one(old), given)

    assert response.status_code == 200
    assert reason in response.text
    assert ready() == []


def test_without_the_permission_for_arguments_nobody_can_change_them(operator, viewer, manager):
    old = scene.dead(name=ECHO, args=[7])
    sensitive = scene.dead(name=ECHO, sensitive=True)

    for who, url in ((operator, one(old)), (viewer, one(old)), (manager, one(sensitive))):
        assert who.get(url).status_code == who.post(url, {"args": "[9]"}).status_code == 403
    assert "rerun/" not in operator.get(f"{ROOT}task/", {"alias": "default", "id": old}).text
    assert ready() == []
