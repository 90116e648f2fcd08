"""Run a task again with other arguments: what is checked, stored once, and said."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from components.services.queues import TaskQueue
from tests.control_room.pages import done, logged, text_of
from tests.queues.admin import scene
from tests.support.queues import ECHO, found

ROOT = "/admin/components/queue/"

pytestmark = pytest.mark.usefixtures("redis")


@pytest.fixture
def client(staff):
    return staff("change_queue", "view_arguments_queue")


def one(task_id):
    return f"{ROOT}rerun/?{urlencode({'alias': 'default', 'id': task_id})}"


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

    for who, url in ((operator, one(old)), (viewer, one(old)), (client, one(sensitive))):
        assert who.get(url).status_code == who.post(url, {"args": "[9]"}).status_code == 403
    assert "rerun/" not in operator.get(f"{ROOT}task/", {"alias": "default", "id": old}).text
    assert "rerun/" in client.get(f"{ROOT}task/", {"alias": "default", "id": old}).text
    assert ready() == []


@pytest.mark.parametrize(
    "make", [scene.running, lambda **task: scene.ready(**task)[0], lambda **task: "gone"]
)
def test_only_tasks_that_have_ended_are_run_again(client, make):
    assert client.get(one(make(name=ECHO))).status_code == 404
