"""Run again with other arguments: one task, or a group; what is checked, stored once, and said."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from components.services.queues import TaskQueue
from components.services.queues.admin import rerun
from components.services.queues.failures import Failures
from tests.control_room.pages import done, logged, text_of
from tests.queues.admin import scene
from tests.support.queues import ECHO, found, places

ROOT = "/admin/components/queue/"

pytestmark = pytest.mark.usefixtures("redis")


@pytest.fixture
def client(staff):
    return staff("change_queue", "view_arguments_queue")


def one(task_id):
    return f"{ROOT}rerun/?{urlencode({'alias': 'default', 'id': task_id})}"


def group(**more):
    key = Failures("default", "mail").look(most=10).found[0].group
    query = {"alias": "default", "queue": "mail", "state": "dead", "scope": "all", "group": key, **more}
    return f"{ROOT}rerun/?{urlencode(query)}"


def ready():
    return TaskQueue().tasks("mail", "ready")


@pytest.mark.parametrize("make", [scene.dead, scene.successful])
def test_a_task_is_run_again_with_other_arguments_and_says_where_it_came_from(client, make):
    old = make(name=ECHO, args=[{"sale": 7}], priority=5)

    form = client.get(one(old)).text
    [said] = done(client, one(old), args="[9]", kwargs="")

    [new] = ready()
    assert "&quot;sale&quot;: 7" in form
    assert said == f"Ran the task {old} of the queue mail again, as the task {new.id}." == logged()[0]
    assert (new.name, new.args, new.kwargs, new.priority, new.queue) == (ECHO, [9], {}, 5, "mail")
    assert found(old).state in ("dead", "successful")
    assert f"Came from the task {old}" in text_of(client, ROOT, "task/", alias="default", id=new.id)


def test_the_same_form_twice_stores_one_task(client):
    old = scene.dead(name=ECHO)

    first, second = (done(client, one(old), args="[9]") for _ in range(2))
    done(client, one(old), args="[8]")

    assert second == [
        f"The task {old} was run again with these arguments before, as the task {ready()[0].id}."
    ]
    assert [info.args for info in ready()] == [[9], [8]]
    assert len(logged()) == 2
    assert first != second


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
    ],
)
def test_arguments_that_the_task_cannot_take_are_refused_with_the_reason(client, given, reason):
    old = scene.dead(name=ECHO)

    response = client.post(one(old), given)

    assert response.status_code == 200
    assert reason in response.text
    assert ready() == []


def test_a_task_that_cannot_be_imported_is_refused_with_the_reason(client):
    response = client.post(one(scene.dead(name="market.gone.send")), {"args": "[]"})

    assert "No task &#x27;market.gone.send&#x27; can be imported" in response.text
    assert ready() == []


def test_without_the_permission_for_arguments_nobody_can_change_them(operator, viewer, client):
    old = scene.dead(name=ECHO, args=[7])
    sensitive = scene.dead(name=ECHO, sensitive=True)

    for who, url in ((operator, one(old)), (operator, group()), (viewer, one(old)), (client, one(sensitive))):
        assert who.get(url).status_code == who.post(url, {"args": "[9]"}).status_code == 403
    assert "rerun/" not in operator.get(f"{ROOT}task/", {"alias": "default", "id": old}).text
    assert "rerun/" in client.get(f"{ROOT}task/", {"alias": "default", "id": old}).text
    assert ready() == []


@pytest.mark.parametrize(
    "make", [scene.running, lambda **task: scene.ready(**task)[0], lambda **task: "gone"]
)
def test_only_tasks_that_have_ended_are_run_again(client, make):
    assert client.get(one(make(name=ECHO))).status_code == 404


def test_the_tasks_of_a_group_get_the_argument_and_are_replaced(client):
    by_name = scene.dead(name=ECHO, kwargs={"value": 1})
    by_number = scene.dead(name=ECHO, args=[1])
    other = scene.dead(name="market.tasks.send", args=[1])
    url = group(group=Failures("default", "mail").look(most=10).found[-1].group)

    first = done(client, url, argument="value", value='"new"')
    second = done(client, url, argument="1", value="2")

    assert first[0] == (
        f"Ran 1 task of the queue mail that died of “OSError: <b>no route</b> in {ECHO}” again with another argument."
    )
    assert first[1:] == [
        "1 task stayed as they were.",
        f"The first reason: The task {by_number} has no argument 'value'.",
    ]
    assert second[0].startswith("Ran 1 task")
    assert [(info.args, info.kwargs) for info in ready()] == [([], {"value": "new"}), ([2], {})]
    assert [info.metadata[rerun.ORIGIN] for info in ready()] == [by_name, by_number]
    assert places("mail")["dead"] == [other]
    assert len(logged()) == 2


def test_a_group_that_was_stored_and_not_deleted_is_stored_once(client, monkeypatch):
    """The process was killed, or the answer was lost, between the two."""
    scene.dead(name=ECHO, args=[1])
    url = group()
    with monkeypatch.context() as patch:
        patch.setattr(TaskQueue, "delete", lambda self, queue, state, ids: 0)
        done(client, url, argument="1", value="2")
    assert len(places("mail")["dead"]) == 1

    done(client, url, argument="1", value="2")

    assert [info.args for info in ready()] == [[2]]
    assert places("mail").keys() == {"ready"}


def test_one_request_replaces_so_many_of_a_group(client, monkeypatch):
    monkeypatch.setattr(rerun, "MOST", 2)
    for _ in range(3):
        scene.dead(name=ECHO, args=[1])
    url = group()

    asked = text_of(client, "", url)
    done(client, url, argument="1", value="2")

    assert "One request replaces 2 of them. Repeat it." in asked
    assert len(places("mail")["dead"]) == 1
    assert done(client, url, argument="1", value="2")[0].startswith("Ran 1 task")


def test_a_group_whose_task_cannot_be_imported_stays(client):
    scene.dead(name="market.gone.send", args=[1])

    [said] = done(client, group(), argument="1", value="2")

    assert said.startswith("The task cannot be imported: No task 'market.gone.send'")
    assert logged() == []


def test_a_group_that_is_gone_says_so(client):
    scene.dead(name=ECHO, args=[1])
    url = group()
    TaskQueue().delete("mail", "dead", TaskQueue().ids("mail", "dead", limit=9))

    assert "There are no dead tasks of the queue mail in this group." in text_of(client, "", url)
    assert done(client, url) == ["There are no dead tasks of the queue mail in this group."]
