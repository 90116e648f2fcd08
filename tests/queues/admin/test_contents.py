"""What pages show of a task: its contents, to those who may see them; its tracebacks; and what cannot be read."""

import io
from html import escape, unescape

import pytest
from django.core.management import call_command

from components.services.queues import Concurrency, TaskQueue, keys, task
from components.services.queues.admin.contents import parts_of
from components.services.queues.facts import to_us
from tests.control_room.pages import text_of
from tests.queues.admin import scene
from tests.queues.admin.scene import HOURLY, NIGHTLY, ROOT, declare_only
from tests.support.queues import STATES, claim, found, hand_in, server_time, to_retry

SECRET, PRIVATE = "token-4711", "traceback-4711"
pytestmark = pytest.mark.usefixtures("redis")


@task(sensitive=True)
def reset_password(link: str) -> None: ...


SENSITIVE = "tests.queues.admin.test_contents.reset_password"


def shown(client, page, **query):
    return text_of(client, ROOT, f"{page}/", alias="default", queue="mail", **query)


def ids_of(client, state, text):
    response = client.get(f"{ROOT}tasks/", {"alias": "default", "queue": "mail", "state": state, "q": text})
    return [info.id for info in response.context["tasks"]]


@pytest.fixture
def one_of_each(monkeypatch):
    """of(name) makes a task of each state that holds SECRET in all that is not to be seen; ids by state."""
    monkeypatch.setattr(scene, "TRACEBACK", f"OSError: {PRIVATE} {SECRET}")
    given = {"result": {"made": SECRET}, "args": [SECRET], "kwargs": {"key": SECRET}}
    return lambda name, **more: scene.one_of_each(name=name, **given, **more)


@task(concurrency=Concurrency(1, str))
def bill(account: str) -> None: ...


def test_a_task_says_why_it_waits(onlooker, viewer):
    [task_id, parked] = scene.ready(name=f"{__name__}.bill", args=["7"], count=2)

    def says(text, client=viewer, id=task_id):
        return f"Why it waits {text}" in shown(client, "task", id=id)

    assert says("No worker serves its queue.")
    consumer = scene.worker("mail", concurrency=1)
    assert says("It waits for its turn.")
    consumer.renew(["mail"], claimed := claim(consumer, 2, ["mail"]))
    consumer.park("api", [each for each in claimed if each.id == parked])
    assert says(
        "There is no room for it under the limit task:tests.queues.admin.test_contents.bill:7.", id=parked
    )
    assert says("It was put off", onlooker, parked)
    hand_in(consumer, *(to_retry(each, seconds=600) for each in claimed if each.id == task_id))
    assert says("It is tried again after builtins.")
    assert says("It is not due yet.", id=scene.delayed()[0])
    TaskQueue().pause("mail")
    assert says("Its queue is paused.", id=scene.ready()[0])


def test_without_the_permission_no_page_shows_what_a_task_holds(onlooker, viewer, one_of_each):
    ids = one_of_each("market.tasks.send")

    for client, is_shown in ((onlooker, False), (viewer, True)):
        for state in STATES:
            assert (SECRET in shown(client, "task", id=ids[state])) == is_shown
            assert (SECRET in shown(client, "tasks", state=state)) == is_shown
            assert ids_of(client, state, SECRET) == ([ids[state]] if is_shown else [])
            assert ids_of(client, state, "market.tasks") == [ids[state]]
    # The class of an error is seen without its traceback.
    response = onlooker.get(f"{ROOT}task/", {"alias": "default", "id": ids["dead"]})
    assert "1. builtins.OSError" in response.text
    assert PRIVATE not in response.text
    # A template of the project's own has nothing to show either.
    assert [error.traceback for error in response.context["task"].errors] == [""]


def test_a_row_shows_the_arguments_and_the_message_of_the_error_shortened(viewer):
    scene.dead(args=[7, "<b>"], kwargs={"to": "Jürgen", "lines": list(range(500))})

    row = shown(viewer, "tasks", state="dead")

    assert '7, "<b>", to="Jürgen", lines=[0, 1, 2,' in row
    assert "498, 499" not in row  # an id may have 499 in it
    assert "<b>no route</b>" in row


@pytest.mark.parametrize(
    ("name", "mark"), [(SENSITIVE, {}), ("market.elsewhere.send", {"sensitive": True})], ids=["now", "then"]
)
def test_a_sensitive_task_shows_nothing_to_anybody(admin_client, one_of_each, name, mark):
    ids = one_of_each(name, **mark)

    for state in STATES:
        page = shown(admin_client, "task", id=ids[state])
        assert SECRET not in page
        assert "sensitive" in page
        assert SECRET not in shown(admin_client, "tasks", state=state)
        assert ids_of(admin_client, state, SECRET) == []
        assert ids_of(admin_client, state, name) == [ids[state]]
    assert found(reset_password.enqueue("here").id).sensitive


def test_an_unreadable_record_is_never_quoted(onlooker, viewer, redis):
    task_id = scene.ready()[0]
    redis.hset(keys.BackendKeys("default").tasks, task_id, f"nonsense {SECRET}")

    for client, is_shown in ((onlooker, False), (viewer, True)):
        page = client.get(f"{ROOT}task/", {"alias": "default", "id": task_id})
        assert page.status_code == 404
        assert (SECRET in unescape(page.text)) == is_shown
        assert (SECRET in shown(client, "tasks")) == is_shown
        assert "Not readable" in shown(client, "tasks")


def test_the_arguments_of_periodic_tasks_need_the_permission_too(onlooker, viewer):
    with declare_only(NIGHTLY):
        hidden, told = shown(onlooker, "periodic"), shown(viewer, "periodic")

    assert "month" not in hidden
    assert '["<b>month</b>"]' in told


OWN = '  File "/srv/shop/tasks.py", line 4, in charge\n    pay(9)\n    ~~~^^^\n'
LIBRARY = '  File "/venv/lib/python3.12/site-packages/pay/api.py", line 70, in pay\n    raise Refused\n'
HEAD, END = "Traceback (most recent call last):\n", "pay.Refused: no\n  second line\n"


@pytest.mark.parametrize(
    ("traceback", "parts"),
    [
        (HEAD + OWN + LIBRARY + LIBRARY + END, [(HEAD + OWN, 0), (LIBRARY * 2, 2), (END, 0)]),
        (HEAD + LIBRARY + OWN + END, [(HEAD, 0), (LIBRARY, 1), (OWN + END, 0)]),
        (HEAD + LIBRARY + END, [(HEAD + LIBRARY + END, 0)]),
        (HEAD + OWN + END, [(HEAD + OWN + END, 0)]),
        ("The task was cancelled.", [("The task was cancelled.", 0)]),
        ("", [("", 0)]),
    ],
)
def test_frames_of_libraries_are_parts_of_their_own(traceback, parts):
    assert parts_of(traceback) == parts
    assert "".join(text for text, _frames in parts) == traceback


def test_the_page_of_a_task_begins_with_the_message_and_folds_libraries(viewer, onlooker, monkeypatch):
    monkeypatch.setattr(scene, "TRACEBACK", HEAD + OWN + LIBRARY + "OSError: no ink\n")
    query = {"alias": "default", "id": scene.dead()}

    html = viewer.get(f"{ROOT}task/", query).text

    assert text_of(viewer, ROOT, "task/", **query).startswith("OSError: no ink Task market.tasks.send")
    assert f"<code>{escape(LIBRARY)}</code></pre>" in html
    assert "1 frame of a library" in html
    assert "components/copy.js" in html
    assert text_of(onlooker, ROOT, "task/", **query).startswith("OSError Task market.tasks.send")


KEYS = keys.QueueKeys("default", "mail")
RECORD = b'1 0 0 0 0 0 - mail\n{"task":"a.b","args":[],"kwargs":{}}'
DEEP = b"[" * 50_000 + b"]" * 50_000
FAIRLY_DEEP = b"[" * 700 + b"]" * 700  # Python reads it, and may not write it again


def lines_of(client, page, **query):
    response = client.get(f"{ROOT}{page}", {"alias": "default", "queue": "mail", **query})
    assert response.status_code == 200
    return response.text


@pytest.mark.parametrize(
    "record",
    [
        b"garbage",
        b"99 written by a later release",
        RECORD.replace(b"[]", DEEP),
        RECORD.replace(b"[]", FAIRLY_DEEP),
        RECORD.replace(b"1 0 0", b"1 -62135596800000000 -62135596800000000"),
    ],
    ids=lambda record: repr(record[:30]),
)
def test_a_record_that_cannot_be_read_fails_no_page(viewer, redis, record):
    ids = scene.one_of_each("mail")
    redis.hset(KEYS.tasks, "odd", record)
    redis.set(KEYS.result("odd"), record + b"\n\n0\n\nnull")
    for state in STATES:
        redis.zadd(getattr(KEYS, state), {"odd": to_us(server_time()) // 1000})

        for query in ({}, {"q": "odd"}):
            page = lines_of(viewer, "tasks/", state=state, **query)
            assert "odd" in page
            assert (ids[state] in page) == (not query)
        assert ids[state] in lines_of(viewer, "tasks/", state=state, q="market")
    assert viewer.get(f"{ROOT}task/", {"alias": "default", "id": "odd"}).status_code in (200, 404)
    assert "mail" in lines_of(viewer, "")


@pytest.mark.parametrize("score", ["inf", "-1e300"])
def test_an_odd_score_or_tick_fails_neither_a_page_nor_the_command(viewer, redis, score):
    ids = scene.one_of_each("mail")
    for state in STATES:
        redis.zadd(getattr(KEYS, state), {"odd": score})
        assert ids[state] in lines_of(viewer, "tasks/", state=state)
    redis.zadd(KEYS.workers, {scene.worker("mail").id: score})
    redis.sadd(KEYS.names, b"\xff\xfe")
    redis.zadd(KEYS.periodic, {HOURLY.name: score})

    assert "mail" in lines_of(viewer, "")
    with declare_only(HOURLY):
        assert "sweep" in lines_of(viewer, "periodic/")
        call_command("queues", "--json", stdout=io.StringIO())
