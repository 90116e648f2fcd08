"""The Queues page: the list of queues, what it shows and does with real tasks in every state, and its workers."""

import re
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from html import escape, unescape
from types import SimpleNamespace
from urllib.parse import urlencode

import pytest
from django.contrib.admin.models import LogEntry
from django.test import override_settings
from django.utils.html import strip_tags

from components.services.queues import Consumer, NewTask, Progress, TaskQueue, keys, task
from components.services.queues.admin.queues import _durations
from tests.control_room.pages import addresses, done, logged, round_trips, rows_of, text_of
from tests.queues.admin import scene
from tests.queues.admin.scene import ROOT
from tests.support.queues import claim

STATES = ["ready", "delayed", "running", "dead", "successful"]

pytestmark = pytest.mark.usefixtures("redis")


def test_the_overview_counts_each_state_and_links_to_its_tasks(viewer, redis):
    scene.one_of_each("mail")
    task_id, _other = scene.ready("mail", count=2)
    seconds, _microseconds = redis.time()
    redis.zadd(keys.QueueKeys("default", "mail").ready, {task_id: (seconds - 7500) * 1000})

    html = viewer.get(ROOT).text

    assert re.search("2 h 5 min.*in (1 h|59 min)", text_of(viewer, ROOT))
    assert "Cut off" not in text_of(viewer, ROOT)
    for state, count in zip(STATES, [3, 1, 1, 1, 1], strict=True):
        query = {"alias": "default", "queue": "mail", "state": state}
        link = escape(f"{ROOT}tasks/?{urlencode(query)}")
        if state == "dead":  # by their error
            link = escape(f"{ROOT}failures/?{urlencode({'alias': 'default', 'queue': 'mail'})}")
        assert f'href="{link}"' in html
        assert f'aria-label="{count} {state} in mail"' in html
    consumer = Consumer()
    begun = claim(consumer, 2, ["mail"])
    consumer.release(begun, begun=begun)
    assert "Cut off: 2" in text_of(viewer, ROOT)


def test_a_task_shows_all_that_is_known_of_it(viewer):
    task_id = scene.successful(
        "mail", args=[{"sale": 7}], kwargs={"to": "Jürgen"}, priority=-5, result={"sent": True}
    )
    failed = scene.retrying("mail")

    text = text_of(viewer, ROOT, "task/", alias="default", id=task_id)
    again = text_of(viewer, ROOT, "task/", alias="default", id=failed)

    for known in ("market.tasks.send", "Successful", "mail", "-5", '"sale": 7', '"to": "Jürgen"'):
        assert known in text
    assert '{ "sent": true }' in text
    assert text.index("Enqueued") < text.index("Started") < text.index("Finished")
    assert "Delayed, to try again" in again
    assert re.search("Next attempt.* in (1 h|59 min)", again)
    assert "builtins.ValueError" in again


@task(max_attempts=12)
def patient() -> None: ...


@task
def plain() -> None: ...


def test_attempts_are_shown_with_the_most_there_can_be_where_it_is_known(viewer):
    shown = {}
    for name in (f"{__name__}.patient", f"{__name__}.plain", "market.tasks.not_loaded", "os.path", "no"):
        task_id = scene.dead("mail", name=name)
        text = text_of(viewer, ROOT, "task/", alias="default", id=task_id)
        shown[name.split(".")[-1]] = re.search(r"Attempts (1(?: of \d+)?) ", text)[1]

    assert shown == {"patient": "1 of 12", "plain": "1 of 1", "not_loaded": "1", "path": "1", "no": "1"}


def test_progress_is_shown_with_words_beside_it(viewer):
    task_id = scene.running("mail", progress=Progress(1250, 5000.0, "rows <b>read</b>"))

    said = "1,250 of 5,000 (25 %): rows <b>read</b>"
    assert said in text_of(viewer, ROOT, "task/", alias="default", id=task_id)
    assert said in text_of(viewer, ROOT, "tasks/", alias="default", queue="mail", state="running")
    for language in ("en", "de"):  # the bar is as long in a language with commas
        with override_settings(LANGUAGE_CODE=language):
            html = viewer.get(ROOT + "task/", {"alias": "default", "id": task_id}).text
        assert re.search(r'<progress aria-label="\w+" max="100" value="25.0"></progress>', html)


def test_pausing_and_resuming_are_logged_with_who_and_what_if_they_change_anything(operator):
    scene.ready("mail", count=3)

    for verb, is_paused in (("pause", True), ("resume", False)):
        where = f"{ROOT}{verb}/?alias=default&queue=mail"
        assert '<form method="post"' in operator.get(where).text
        done(operator, where)
        assert TaskQueue().stats("mail").paused is is_paused
        assert '<form method="post"' not in operator.get(where).text.split('id="live"')[1]
        assert re.search("is paused already|is not paused", done(operator, where)[0])

    assert {(entry.object_id, entry.user.username) for entry in LogEntry.objects.all()} == {
        ("default/mail", "staff ('change_queue',)")
    }
    history = text_of(operator, ROOT, "default_2Fmail/history/")
    assert [said.split()[0] for said in logged() if said in history] == ["Paused", "Resumed"]


def test_durations_are_told_of_all_runs_that_have_ended():
    began = datetime(2026, 1, 1, tzinfo=UTC)
    runs = [
        SimpleNamespace(
            state="successful", last_attempted_at=began, finished_at=began + timedelta(seconds=seconds)
        )
        for seconds in range(40, 0, -1)
    ]
    waiting = SimpleNamespace(state="ready", last_attempted_at=None, finished_at=None)

    assert list((_durations([*runs, waiting]) or {}).values()) == [40, 20.5, 38.0, 40.0]
    assert _durations([waiting]) is None


def test_a_page_takes_so_many_round_trips_and_no_more_with_more_tasks(manager):
    ids = scene.one_of_each("mail")
    scene.worker("mail")
    most = {
        "": 4,
        "tasks/?alias=default&queue=mail": 4,
        "tasks/?alias=default&queue=mail&state=dead": 4,
        "tasks/?alias=default&queue=mail&q=send": 6,
        "tasks/?alias=default&queue=mail&argument=9&since=2026-01-01T00:00&after=1:x": 6,
        "failures/?alias=default&queue=mail&after=1:x%20mail": 5,
        "failures/?alias=default": 6,
        f"task/?alias=default&id={ids['ready']}": 6,
        "delete/?alias=default&queue=mail&scope=all": 2,
        f"delete/?alias=default&queue=mail&id={ids['ready']}": 3,
        "stop/?alias=default": 4,
    }
    for page in most:
        manager.get(ROOT + page)  # once for the server to know the scripts
    scene.ready("mail", count=2000)

    found = {page: round_trips(manager, ROOT + page) for page in most}

    assert {page: number for page, number in found.items() if number > most[page]} == {}


def test_a_nonce_of_the_project_is_on_all_that_the_page_loads(viewer, settings):
    [engine] = deepcopy(settings.TEMPLATES)
    engine["OPTIONS"]["context_processors"].append("tests.control_room.urls.nonce")
    settings.TEMPLATES = [engine]

    html = viewer.get(ROOT).text

    ours = re.findall(r"<(?:link|script)[^>]*/components/[^>]*>", html)
    assert len(ours) == 3
    assert all('nonce="abc"' in tag for tag in ours)


def names(client, **query):
    return [row.split()[0] for row in rows_of(client, ROOT, **query)]


@pytest.fixture
def queues():
    scene.ready("bulk", count=3)
    scene.ready("api", count=1)
    scene.delayed("mail", count=2)
    scene.dead("mail")
    scene.successful("api")


def test_queues_are_sorted_by_any_column_both_ways(viewer, queues):
    for sort, first in (
        *(("", "api bulk mail"), ("-name", "mail bulk api"), ("odd", "api bulk mail")),
        *(("-ready", "bulk api mail"), ("ready", "mail api bulk"), ("-running", "api bulk mail")),
        *(("-dead", "mail"), ("due", "mail"), ("-successful", "api")),
    ):
        assert names(viewer, sort=sort)[: len(first.split())] == first.split(), sort
    assert names(viewer, q="AI") == ["mail"]


def test_many_queues_come_in_pages_and_all_are_counted(viewer):
    TaskQueue().push_many([NewTask(name="a.b", queue=f"queue-{number:03}") for number in range(120)])

    first = text_of(viewer, ROOT, sort="-name")

    assert len(names(viewer)) == 50
    assert names(viewer, offset=100, sort="-name")[-1] == "queue-000"
    assert "Queues 120 Ready 120 " in first
    assert first.count(" no worker ") == 50
    assert 'href="?sort=-name&amp;offset=50&amp;alias=default"' in viewer.get(ROOT, {"sort": "-name"}).text
    assert len(viewer.get(ROOT).content) < 200_000


def test_each_alias_has_pages_of_its_own(viewer, settings):
    backend = {"BACKEND": "components.tasks.RedisBackend", "QUEUES": []}
    settings.TASKS = {"default": backend, "bulk": backend}
    for alias in settings.TASKS:
        new = [NewTask(name="a.b", queue=f"{alias}-{number:02}") for number in range(60)]
        TaskQueue(alias).push_many(new)

    html = viewer.get(ROOT, {"alias": "bulk", "offset": "50"}).text

    assert [name in html for name in ("bulk-59", "default-59", "default-00")] == [True, False, True]


url = addresses(ROOT)


def ask(client, order, worker=None):
    return done(client, url(order, alias="default", **({"worker": worker.id} if worker else {})))


def row(client, worker):
    """What the page says of the worker, and what it offers."""
    html = client.get(f"{ROOT}workers/").text
    [found] = re.findall(rf'<tr data-key="{worker.id}"[^>]*>(.*?)</tr>', html, re.DOTALL)
    return " ".join(unescape(strip_tags(found)).split()), set(re.findall(r'href="[^"]*/(\w+)/\?', found))


def lose(redis):
    worker = scene.worker("mail")
    redis.zadd(keys.BackendKeys("default").workers, {worker.id: 1_700_000_000_000})
    return worker


def orders():
    return {worker.id: worker.order for worker in TaskQueue().workers()}


def test_a_worker_is_asked_and_the_page_says_so_until_it_has_heard(operator):
    worker = scene.worker("mail", "news", concurrency=8)
    said, offered = row(operator, worker)
    assert "mail, news 0 of 8 Alive" in said
    assert offered == {"quiet", "stop"}

    for order, asked, left in (
        ("quiet", "Asked to take no more", {"stop"}),
        ("stop", "Asked to stop", set()),
    ):
        ask(operator, order, worker)
        said, offered = row(operator, worker)
        assert asked in said
        assert worker.renew(["mail"]).order == order
        worker.is_quiet = True
        worker.renew(["mail"])
        assert row(operator, worker)[1] == left
    assert [entry.object_id for entry in LogEntry.objects.all()] == ["default"] * 2


@pytest.mark.parametrize(("order", "is_asked"), [("stop", True), ("quiet", False)])
def test_all_workers_that_live_are_asked_and_pollers_are_not(operator, redis, order, is_asked):
    first, second = (scene.worker("mail") for _ in range(2))
    poller = scene.worker("*", kind="poller")
    lost = lose(redis)

    assert "2 of 2 will be asked" in text_of(operator, "", url(order, alias="default"))
    assert orders() == dict.fromkeys([first.id, second.id, lost.id, poller.id], "")
    ask(operator, order)
    assert orders() == {first.id: order, second.id: order, lost.id: "", poller.id: ""}
    ask(operator, order, poller)
    assert (orders()[poller.id] == order) == is_asked
    assert row(operator, poller)[1] == (set() if is_asked else {"stop"})


def test_workers_are_shown_with_what_they_run_lost_ones_first_and_are_found_by_id(viewer, redis):
    idle, busy = scene.worker("news"), scene.worker("mail", concurrency=2)
    [task_id] = scene.ready("mail")
    claim(busy, 1, ["mail"])
    lost = lose(redis)

    shown = rows_of(viewer, ROOT, "workers/")

    assert shown[0].startswith(lost.id)
    of_busy, of_idle = (next(row for row in shown if row.startswith(each.id)) for each in (busy, idle))
    assert " of 2 send " in of_busy
    assert f"id={task_id}" in viewer.get(f"{ROOT}workers/").text
    assert "send" not in of_idle
    assert [row.split()[0] for row in rows_of(viewer, ROOT, "workers/", q=busy.id)] == [busy.id]


def test_who_was_asked_to_stop_or_is_lost_is_asked_nothing(operator, redis):
    stopping = scene.worker("mail")
    lost = lose(redis)
    ask(operator, "stop", stopping)
    before = orders()

    assert "Lost" in row(operator, lost)[0]
    assert row(operator, lost)[1] == set()
    for order in ("quiet", "stop"):
        for worker in (stopping, lost):
            assert worker.id in ask(operator, order, worker)[0]
    assert orders() == before
    assert len(logged()) == 1
