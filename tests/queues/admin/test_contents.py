"""Who sees the arguments, results and tracebacks of tasks: a permission of its own, and of sensitive tasks nobody."""

from __future__ import annotations

from html import unescape

import pytest

from components.services.queues import NewTask, TaskQueue, keys, task
from tests.queues.admin import scene
from tests.queues.admin.periodic import NIGHTLY, declare_only
from tests.support.queues import found

ROOT = "/admin/components/queue/"
SECRET, PRIVATE = "token-4711", "traceback-4711"

pytestmark = pytest.mark.usefixtures("redis")


@task(sensitive=True)
def reset_password(link: str) -> None: ...


SENSITIVE = "tests.queues.admin.test_contents.reset_password"
STATES = ["ready", "delayed", "running", "dead", "successful"]


@pytest.fixture
def one_of_each(monkeypatch):
    """of(name) makes a task of each state that holds SECRET in all that is not to be seen; ids by state."""
    monkeypatch.setattr(scene, "TRACEBACK", f"OSError: {PRIVATE} {SECRET}")

    def of(name, **more):
        given = {"name": name, "args": [SECRET], "kwargs": {"key": SECRET}, **more}
        return {
            "running": scene.running(**given),
            "dead": scene.dead(**given),
            "successful": scene.successful(result={"made": SECRET}, **given),
            "delayed": scene.ready(delay=3600, **given)[0],
            "ready": scene.ready(**given)[0],
        }

    return of


def text_of(client, page, **query):
    response = client.get(f"{ROOT}{page}/", {"alias": "default", "queue": "mail", **query})
    assert response.status_code == 200
    return unescape(response.text)


def listed(client, state, text):
    response = client.get(f"{ROOT}tasks/", {"alias": "default", "queue": "mail", "state": state, "q": text})
    return [info.id for info in response.context["tasks"]]


@pytest.mark.parametrize("state", STATES)
def test_without_the_permission_no_page_shows_what_a_task_holds(onlooker, viewer, one_of_each, state):
    ids = one_of_each("market.tasks.send")

    for client, is_shown in ((onlooker, False), (viewer, True)):
        page = text_of(client, "task", id=ids[state])
        assert (SECRET in page) == is_shown
        assert (SECRET in text_of(client, "tasks", state=state)) == is_shown
        assert listed(client, state, SECRET) == ([ids[state]] if is_shown else [])
        assert listed(client, state, "market.tasks") == [ids[state]]


def test_the_class_of_an_error_is_seen_without_its_traceback(onlooker, one_of_each):
    ids = one_of_each("market.tasks.send")

    response = onlooker.get(f"{ROOT}task/", {"alias": "default", "id": ids["dead"]})

    page = unescape(response.text)
    assert "1. builtins.OSError" in page
    assert PRIVATE not in page
    # A template of the project's own has nothing to show either.
    assert [error.traceback for error in response.context["task"].errors] == [""]
    assert "builtins.OSError" in text_of(onlooker, "tasks", state="dead")


def test_a_row_shows_the_arguments_and_the_message_of_the_error(onlooker, viewer):
    scene.dead(args=[7, "<b>"], kwargs={"to": "Jürgen", "lines": list(range(500))})

    shown, hidden = text_of(viewer, "tasks", state="dead"), text_of(onlooker, "tasks", state="dead")

    assert '7, "<b>", to="Jürgen", lines=[0, 1, 2,' in shown
    assert "499" not in shown
    assert "<b>no route</b>" in shown
    assert "Jürgen" not in hidden
    assert "no route" not in hidden


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize(
    ("name", "mark"), [(SENSITIVE, {}), ("market.elsewhere.send", {"sensitive": True})], ids=["now", "then"]
)
def test_a_task_that_is_declared_as_sensitive_or_was_shows_nothing_to_anybody(
    admin_client, one_of_each, state, name, mark
):
    ids = one_of_each(name, **mark)

    page = text_of(admin_client, "task", id=ids[state])
    assert SECRET not in page
    assert "sensitive" in page
    assert SECRET not in text_of(admin_client, "tasks", state=state)
    assert listed(admin_client, state, SECRET) == []
    assert listed(admin_client, state, name) == [ids[state]]


def test_an_unreadable_record_is_never_quoted(onlooker, viewer, redis):
    task_id = scene.ready()[0]
    redis.hset(keys.BackendKeys("default").tasks, task_id, f"nonsense {SECRET}")

    for client, is_shown in ((onlooker, False), (viewer, True)):
        page = client.get(f"{ROOT}task/", {"alias": "default", "id": task_id})
        assert page.status_code == 404
        assert (SECRET in unescape(page.text)) == is_shown
        assert (SECRET in text_of(client, "tasks")) == is_shown
        assert "Not readable" in text_of(client, "tasks")


def test_the_arguments_of_periodic_tasks_need_the_permission_too(onlooker, viewer):
    with declare_only(NIGHTLY):
        hidden, shown = text_of(onlooker, "periodic"), text_of(viewer, "periodic")

    assert "month" not in hidden
    assert '["<b>month</b>"]' in shown


def test_a_sensitive_task_is_pushed_with_the_mark():
    [info] = TaskQueue().push_many([NewTask(name="market.tasks.send", sensitive=True)])
    assert info is not None

    assert found(reset_password.enqueue("here").id).sensitive
    assert found(info.id).sensitive
    assert not found(scene.ready()[0]).sensitive
