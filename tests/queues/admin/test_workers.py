"""What the page says of workers, and what they are asked."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.contrib.admin.models import LogEntry
from django.utils.html import strip_tags

from components.services.queues import TaskQueue, keys
from tests.control_room.pages import addresses, done, logged, text_of
from tests.queues.admin import scene

ROOT = "/admin/components/queue/"
url = addresses(ROOT)

pytestmark = pytest.mark.usefixtures("redis")


def ask(client, order, worker=None):
    return done(client, url(order, alias="default", **({"worker": worker.id} if worker else {})))


def row(client, worker):
    html = client.get(ROOT).text
    [found] = re.findall(rf'<tr data-key="{worker.id}"[^>]*>(.*?)</tr>', html, re.DOTALL)
    return " ".join(unescape(strip_tags(found)).split()), set(re.findall(r'href="[^"]*/(\w+)/\?', found))


def orders():
    return {worker.id: worker.order for worker in TaskQueue().workers()}


def lose(redis, worker):
    redis.zadd(keys.BackendKeys("default").workers, {worker.id: 1_700_000_000_000})


def test_a_worker_is_asked_and_the_page_says_so_until_it_has_heard(operator):
    worker = scene.worker("mail", "news", concurrency=8)
    said, offered = row(operator, worker)
    assert "mail, news 0 of 8 Alive" in said
    assert offered == {"quiet", "stop"}

    ask(operator, "quiet", worker)
    assert "Asked to take no more tasks" in row(operator, worker)[0]
    assert worker.renew(["mail"]).order == "quiet"

    worker.is_quiet = True
    worker.renew(["mail"])
    assert "Takes no more tasks" in row(operator, worker)[0]
    assert row(operator, worker)[1] == {"stop"}

    ask(operator, "stop", worker)
    assert "Asked to stop" in row(operator, worker)[0]
    assert row(operator, worker)[1] == set()
    assert worker.renew(["mail"]).order == "stop"


@pytest.mark.parametrize(("order", "is_asked"), [("stop", True), ("quiet", False)])
def test_all_workers_that_live_are_asked_and_pollers_are_not(operator, redis, order, is_asked):
    first, second, lost = (scene.worker("mail") for _ in range(3))
    poller = scene.worker("*", kind="poller")
    lose(redis, lost)
    url_of_all = url(order, alias="default")

    assert "2 of 2 will be asked" in text_of(operator, "", url_of_all)
    assert orders() == dict.fromkeys([first.id, second.id, lost.id, poller.id], "")
    ask(operator, order)
    assert orders() == {first.id: order, second.id: order, lost.id: "", poller.id: ""}
    ask(operator, order, poller)
    assert (orders()[poller.id] == order) == is_asked
    assert row(operator, poller)[1] == (set() if is_asked else {"stop"})


def test_each_request_is_one_log_entry_and_the_alias_has_a_history(operator):
    worker = scene.worker("mail")

    said = [*ask(operator, "quiet", worker), *ask(operator, "stop")]

    assert logged() == said
    assert {entry.object_id for entry in LogEntry.objects.all()} == {"default"}
    assert operator.get(LogEntry.objects.all()[0].get_admin_url()).url == ROOT
    assert said[0] in text_of(operator, f"{ROOT}default/history/")
    assert f'href="{ROOT}default/history/"' in operator.get(ROOT).text


def test_who_was_asked_to_stop_or_is_lost_is_asked_nothing(operator, redis):
    stopping, lost = scene.worker("mail"), scene.worker("mail")
    ask(operator, "stop", stopping)
    lose(redis, lost)
    before = orders()

    assert "Lost" in row(operator, lost)[0]
    assert row(operator, lost)[1] == set()
    for order in ("quiet", "stop"):
        for worker in (stopping, lost):
            assert worker.id in ask(operator, order, worker)[0]
    assert orders() == before
    assert len(logged()) == 1
    assert operator.get(url("stop", alias="default", worker="gone")).status_code == 404


def test_a_quiet_worker_serves_no_queue(viewer):
    for queue in ("mail", "news", "rest"):
        scene.ready(queue)
    TaskQueue().pause("rest")
    worker, _other = scene.worker("mail"), scene.worker("news")
    assert "no worker serves them" not in text_of(viewer, ROOT)

    worker.is_quiet = True
    worker.renew(["mail"])

    assert "no worker serves them: mail." in text_of(viewer, ROOT)
