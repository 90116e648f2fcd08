"""What the page says of workers, and what they are asked."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import urlencode

import pytest
from django.contrib.admin.models import LogEntry
from django.utils.html import strip_tags

from components.services.queues import Consumer, TaskQueue, keys
from tests.queues.admin import scene

ROOT = "/admin/components/queue/"

pytestmark = pytest.mark.usefixtures("redis")


def url(order, worker: Consumer | None = None):
    query = {"alias": "default", **({"worker": worker.id} if worker else {})}
    return f"{ROOT}{order}/?{urlencode(query)}"


def words(response):
    return " ".join(unescape(strip_tags(response.text)).split())


def row(client, worker):
    html = client.get(ROOT).text
    [found] = re.findall(rf'<tr data-key="{worker.id}"[^>]*>(.*?)</tr>', html, re.DOTALL)
    return " ".join(unescape(strip_tags(found)).split()), set(re.findall(r'href="[^"]*/(\w+)/\?', found))


def orders():
    return {worker.id: worker.order for worker in TaskQueue().workers()}


def lose(redis, worker):
    redis.zadd(keys.BackendKeys("default").workers, {worker.id: 1_700_000_000_000})


def test_a_worker_is_asked_and_the_page_says_so_until_it_has_heard(operator):
    worker = scene.worker("mail")
    assert "Alive" in row(operator, worker)[0]
    assert row(operator, worker)[1] == {"quiet", "stop"}

    operator.post(url("quiet", worker))
    assert "Asked to take no more tasks" in row(operator, worker)[0]
    assert worker.renew(["mail"]).order == "quiet"

    worker.is_quiet = True
    worker.renew(["mail"])
    assert "Takes no more tasks" in row(operator, worker)[0]
    assert row(operator, worker)[1] == {"stop"}

    operator.post(url("stop", worker))
    assert "Asked to stop" in row(operator, worker)[0]
    assert row(operator, worker)[1] == set()
    assert worker.renew(["mail"]).order == "stop"


@pytest.mark.parametrize(
    ("order", "title", "effect"),
    [
        ("quiet", "Stop giving tasks to the worker %s", "finishes the running ones"),
        ("stop", "Stop the worker %s", "the same time as after a SIGTERM"),
    ],
)
def test_it_is_asked_first_what_will_happen(operator, order, title, effect):
    worker = scene.worker("mail")

    response = operator.get(url(order, worker))

    assert title % worker.id in words(response)
    assert effect in words(response)
    assert orders() == {worker.id: ""}


def test_all_workers_that_live_are_asked_and_pollers_are_not(operator, redis):
    first, second, lost = (scene.worker("mail") for _ in range(3))
    poller = scene.worker("*", kind="poller")
    lose(redis, lost)

    response = operator.post(url("stop"), follow=True)

    assert orders() == {first.id: "stop", second.id: "stop", lost.id: "", poller.id: ""}
    assert "Asked all workers of default (2) to stop." in words(response)


def test_each_request_is_one_log_entry_and_the_alias_has_a_history(operator):
    worker = scene.worker("mail")

    operator.post(url("quiet", worker))
    operator.post(url("stop"))

    entries = LogEntry.objects.order_by("pk")
    assert [(entry.object_id, entry.change_message) for entry in entries] == [
        ("default", f"Asked the worker {worker.id} to take no more tasks."),
        ("default", "Asked all workers of default (1) to stop."),
    ]
    assert operator.get(entries[0].get_admin_url()).url == ROOT
    history = operator.get(f"{ROOT}default/history/")
    assert "to take no more tasks" in words(history)
    assert f'href="{ROOT}default/history/"' in operator.get(ROOT).text


def test_a_worker_asked_to_stop_is_not_asked_to_be_quiet(operator):
    worker = scene.worker("mail")
    operator.post(url("stop", worker))

    for order in ("quiet", "stop"):
        response = operator.post(url(order, worker), follow=True)
        assert f"There is no worker to ask: the worker {worker.id} is gone, or was asked already." in words(
            response
        )

    assert orders() == {worker.id: "stop"}
    assert LogEntry.objects.count() == 1


def test_a_lost_worker_is_called_so_and_cannot_be_asked(operator, redis):
    worker = scene.worker("mail")
    lose(redis, worker)

    said, offered = row(operator, worker)
    operator.post(url("stop", worker))

    assert "Lost" in said
    assert offered == set()
    assert orders() == {worker.id: ""}


def test_a_poller_can_be_stopped_and_has_nothing_to_be_quiet_about(operator):
    poller = scene.worker("*", kind="poller")

    assert row(operator, poller)[1] == {"stop"}
    operator.post(url("quiet", poller))
    assert orders() == {poller.id: ""}
    operator.post(url("stop", poller))
    assert orders() == {poller.id: "stop"}


def test_a_worker_that_is_gone_is_a_404_in_words(operator):
    response = operator.get(f"{ROOT}stop/?alias=default&worker=gone")

    assert response.status_code == 404
    assert "There is no worker 'gone'. It may have ended." in words(response)


def test_without_workers_there_is_nobody_to_ask(operator):
    assert "There is no worker to ask" in words(operator.get(url("stop")))
    assert "Stop all workers" not in words(operator.get(ROOT))


def test_a_quiet_worker_serves_no_queue(viewer):
    scene.ready("mail")
    worker = scene.worker("mail")
    assert "no worker serves them" not in words(viewer.get(ROOT))

    worker.is_quiet = True
    worker.renew(["mail"])

    assert "no worker serves them: mail." in words(viewer.get(ROOT))
