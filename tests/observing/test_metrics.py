"""What /metrics says of each service, and what gathering it costs."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.db import connections
from django.test import Client, override_settings
from prometheus_client.parser import text_string_to_metric_families
from redis import Redis
from redis.connection import AbstractConnection

import components
from components.kit.keyspace import bucket
from components.observing.exposition import expose, gather
from components.services.chat import Chat
from components.services.counters import flush, forget, tally
from components.services.locks import lock
from components.services.logs import note_job
from components.services.logs import report as logs_report
from components.services.mailboxes import Mailbox
from components.services.queues import Consumer, TaskQueue
from components.services.queues.worker.runs import Run, ServerClock
from components.services.rows import RowCache, Shape
from components.services.semaphores import Semaphore
from components.testing import redis_at
from tests.fixtures.worker import NOTE, MakeWorker, push
from tests.support.logs import append, stream
from tests.support.masters import forget_clients, masters
from tests.support.queues import ECHO, claim, failed, hand_in, options, push_many, succeeded

METRICS = override_settings(COMPONENTS={"METRICS": True, "METRICS_TOKEN": "secret"})


@pytest.fixture(autouse=True)
def _new_process() -> Iterator[None]:
    forget()
    logs_report._known_to_gauges.clear()
    yield
    forget()


@contextmanager
def round_trips(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Yield how often this process has sent something, by the place it was sent to."""
    sent, send = Counter[str](), AbstractConnection.send_packed_command

    def count(connection: Any, *args: Any, **options: Any) -> Any:
        sent[f"{getattr(connection, 'path', '')}{getattr(connection, 'port', '')}"] += 1
        return send(connection, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(AbstractConnection, "send_packed_command", count)
        yield sent


def test_queues_say_how_much_waits_and_for_how_long_and_who_works(redis: Redis) -> None:
    push_many(3, queue="mail")
    TaskQueue().push(ECHO, queue="mail", delay=60)
    consumer = Consumer()
    good, bad = claim(consumer, 2, ["mail"])
    hand_in(consumer, succeeded(good), failed(bad))
    TaskQueue().pause("mail")
    worker = Consumer(concurrency=4)
    worker.renew(["default"], [])
    time.sleep(0.01)

    found = Samples.gather()
    worker.leave()

    of_worker = {"alias": "default", "kind": worker.kind}
    assert (found.of("workers", **of_worker), found.of("worker_slots", **of_worker)) == (1, 4)
    assert Samples.gather().of("workers", **of_worker) == 0

    at = {"alias": "default", "queue": "mail"}
    states = {
        state: found.of("queue_tasks", state=state, **at)
        for state in ("ready", "delayed", "running", "dead", "successful")
    }
    assert states == {"ready": 1, "delayed": 1, "running": 0, "dead": 1, "successful": 1}
    assert 0 < (found.of("queue_oldest_seconds", **at) or 0) < 60
    assert found.of("queue_paused", **at) == 1


@METRICS
def test_tasks_say_how_long_they_waited_and_ran_and_how_they_ended(
    redis: Redis, make_worker: MakeWorker
) -> None:
    push(NOTE, 1)
    push("tests.tasks.fail", queue="mail")
    with options(max_attempts=2, backoff=0):
        assert make_worker("default", "mail", burst=True).run() == 0

    found = Samples.gather()

    assert found.of("tasks_enqueued_total", queue="mail") == 1
    ends = {
        (queue, outcome): found.of("tasks_ended_total", queue=queue, outcome=outcome)
        for queue in ("default", "mail")
        for outcome in ("successful", "retried", "failed")
    }
    assert {end: count for end, count in ends.items() if count} == {
        ("default", "successful"): 1,
        ("mail", "retried"): 1,
        ("mail", "failed"): 1,
    }
    assert found.of("task_runs_total", task=NOTE, outcome="successful") == 1
    assert found.of("task_runs_total", task="tests.tasks.fail", outcome="failed") == 1
    for histogram in ("task_run_seconds", "task_wait_seconds"):
        assert found.of(f"{histogram}_count", task=NOTE) == 1
        assert found.of(f"{histogram}_bucket", task=NOTE, le="+Inf") == 1
        assert found.of(f"{histogram}_count", task="tests.tasks.fail") == 2
        assert 0 < (found.of(f"{histogram}_sum", task=NOTE) or 0) < 60


@METRICS
def test_a_wait_begins_when_the_task_can_run(redis: Redis) -> None:
    task_id = TaskQueue().push(ECHO)
    redis.zadd(
        "components:queues:{default}:ready:default", {task_id: 201 * 2**43 + time.time_ns() // 10**6 - 5_000}
    )
    [claimed] = claim(Consumer(), 1)
    run = Run(claimed, Consumer(), ServerClock())
    run.name, run.started_at = ECHO, time.monotonic()

    run.tallied(succeeded(claimed), 0.5)

    assert 5 <= (Samples.gather().of("task_wait_seconds_sum", task=ECHO) or 0) < 60


@METRICS
def test_locks_permits_chats_and_mailboxes_say_what_was_done(redis: Redis) -> None:
    with lock("shop"):
        assert not lock("shop", blocking_timeout=0.05).acquire()
        found = Samples.gather()
    with Semaphore("shop", limit=1).acquire():
        Chat.create("joe", id="one").send("joe", "hello")
        Mailbox("one").push("joe", "hello")

    assert found.of("locks_held") == 1
    assert found.of("locks_acquired_total") == 1
    assert found.of("locks_waited_total") == 1
    assert found.of("lock_wait_seconds_count") == 1
    assert 0.05 <= (found.of("lock_wait_seconds_sum") or 0) < 60
    found = Samples.gather()
    assert (found.of("permits_acquired_total"), found.of("locks_held")) == (1, 0)
    assert (found.of("chat_sent_total"), found.of("mailbox_pushed_total")) == (1, 1)
    assert found.of("mailbox_acknowledged_total") == 0


@METRICS
def test_rows_say_how_late_they_are(redis: Redis) -> None:
    cache = RowCache("items", Shape([("stock", "integer")]))
    cache.schedule_many({1: 60, 2: 60})
    tag = bucket("items:1")
    redis.zadd(f"components:rows:{{{tag}}}:schedule", {"items:1": (time.time() - 100) * 1e6})
    cache.get_many([1])

    found = Samples.gather()

    assert found.of("rows_scheduled", name="items") == 2
    assert found.of("rows_failing", name="items") == 0
    assert 99 < (found.of("rows_late_seconds") or 0) < 200
    assert found.of("rows_missed_total", name="items") == 1


def test_logs_say_how_far_behind_they_are(redis: Redis) -> None:
    append(stream(job="access"), 0)
    note_job("access")
    time.sleep(0.01)

    found = Samples.gather()

    assert found.of("logs_chunks", job="access") == 1
    assert 0 < (found.of("logs_lag_seconds", job="access") or 0) < 60
    assert (found.of("logs_lines_total", job="access") or 0) >= 1
    assert found.of("logs_dead_chunks", job="access") == 0


def test_gathering_is_one_round_trip_however_much_there_is(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        push_many(2, queue=f"queue-{number}")
        Consumer().renew(["default"], [])
        append(stream(job=f"job-{number}"), 0)
        note_job(f"job-{number}")
    gather()  # opens the connection, and learns the names of the jobs
    redis.script_flush()

    with round_trips(monkeypatch) as sent:
        found = gather()

    assert list(sent.values()) == [1]
    assert not found.missing


@pytest.mark.slow
def test_on_a_cluster_it_is_one_round_trip_to_each_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    with (
        masters(tmp_path, request.config.getoption("--redis-server")) as nodes,
        redis_at(nodes.urls, CLIENT_CLASS="components.cache.ClusterClient", SOCKET_TIMEOUT=1.0),
    ):
        for number in range(5):
            push_many(2, queue=f"queue-{number}")
            append(stream(job=f"job-{number}"), 0)
        note_job("job-1")
        gather()
        with round_trips(monkeypatch) as sent:
            whole = gather()
        nodes[0].kill()
        partly = gather()
        forget_clients()

    assert sent == {str(node.port): 1 for node in nodes}
    assert not whole.missing
    up, *_ = partly.found["redis"]
    assert {labels["node"]: value for labels, value in up.samples} == {
        node.name: number > 0 for number, node in enumerate(nodes)
    }
    assert {"rows", "locks"} <= partly.missing.keys()  # they are on all nodes


def test_what_cannot_be_read_is_named_and_the_rest_is_shown(redis: Redis) -> None:
    push_many(1)
    redis.set(f"components:rows:{{{bucket('a')}}}:schedule", "something else")

    found = Samples.gather()

    assert found.of("figures_missing", part="rows") == 1
    assert found.of("figures_missing", part="queues") is None
    assert found.of("queue_tasks", alias="default", queue="default", state="ready") == 1


def test_an_outage_of_redis_is_a_figure(redis: Redis) -> None:
    with redis_at("unix:///nowhere"):
        gathered, text = gather(), expose("")[0].decode()

    assert {"queues", "rows", "sums"} <= gathered.missing.keys()
    assert 'components_redis_up{node="/nowhere"} 0.0' in text
    assert 'components_figures_missing{part="locks"} 1.0' in text


@METRICS
@pytest.mark.urls("components.observing.urls")
def test_metrics_want_the_token(redis: Redis) -> None:
    tally("chat:sent", 3)
    client = Client()

    refused = [client.get("/metrics"), client.get("/metrics", headers={"Authorization": "Bearer wrong"})]
    answer = client.get("/metrics", headers={"Authorization": "Bearer secret"})

    assert [each.status_code for each in refused] == [403, 403]
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("text/plain")
    assert "no-store" in answer["Cache-Control"]
    assert b"# TYPE components_task_run_seconds histogram" in answer.content
    wanted = {"Authorization": "Bearer secret", "Accept": "application/openmetrics-text; version=1.0.0"}
    assert client.get("/metrics", headers=wanted).content.endswith(b"# EOF\n")
    assert client.post("/metrics").status_code == 405


@pytest.mark.urls("components.observing.urls")
@pytest.mark.django_db
def test_staff_who_may_view_counters_read_metrics_without_a_token(
    redis: Redis, client: Client, admin_client: Client, django_user_model: Any
) -> None:
    client.force_login(django_user_model.objects.create_user("joe", is_staff=True))

    assert client.get("/metrics").status_code == 403
    assert admin_client.get("/metrics", headers={"Authorization": "Bearer "}).status_code == 200


@pytest.fixture
def _atomic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connections.settings["default"], "ATOMIC_REQUESTS", True)


@pytest.mark.usefixtures("_atomic")
@pytest.mark.urls("components.observing.urls")
def test_health_asks_nothing() -> None:
    answer = Client().get("/healthz")

    assert (answer.status_code, answer.content) == (200, b"ok\n")
    assert "no-store" in answer["Cache-Control"]
    assert Client().post("/healthz").status_code == 405


@pytest.mark.django_db
@pytest.mark.urls("components.observing.urls")
def test_ready_is_what_reaches_the_database_and_redis(redis: Redis) -> None:
    answer = Client().get("/readyz")

    assert (answer.status_code, answer.json()) == (200, {"database": "ok", "redis": "ok"})


@pytest.mark.django_db
@pytest.mark.urls("components.observing.urls")
def test_without_redis_it_is_not_ready_and_says_no_more_than_that() -> None:
    with redis_at("unix:///nowhere"):
        answer, without = Client().get("/readyz"), Client().get("/readyz?without=redis")

    assert (answer.status_code, answer.json()) == (503, {"database": "ok", "redis": "unavailable"})
    assert (without.status_code, without.json()) == (200, {"database": "ok"})


@pytest.mark.usefixtures("_atomic")
@pytest.mark.urls("components.observing.urls")
def test_without_the_database_it_is_not_ready(redis: Redis) -> None:
    # Tests without the mark django_db may not use it: that is an error as any other.
    answer = Client().get("/readyz")

    assert (answer.status_code, answer.json()) == (503, {"database": "unavailable", "redis": "ok"})


def test_nothing_is_mounted_by_itself() -> None:
    with override_settings(ROOT_URLCONF="components.urls"):
        assert Client().get("/metrics").status_code == 404


DASHBOARD = json.loads((Path(components.__file__).parent / "observing" / "grafana.json").read_text("utf-8"))
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
CHARTS = [panel for panel in PANELS if panel["type"] != "row"]
EXPRESSIONS = [target["expr"] for panel in CHARTS for target in panel["targets"]]

#: What it has to show.
SUBJECTS = (
    "queue_tasks", "queue_oldest_seconds", "tasks_ended_total", "task_run_seconds", "task_wait_seconds",
    "task_runs_total", "workers", "locks_waited_total", "lock_wait_seconds", "chat_sent_total", "rows_late_seconds",
    "logs_lag_seconds", "redis_memory_bytes",
)  # fmt: skip


def test_it_asks_only_for_figures_that_there_are_with_labels_that_they_have(redis: Redis) -> None:
    text = expose("")[0].decode()
    declared = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
    there = {*declared, *(f"{name}_bucket" for name, kind in declared.items() if kind == "histogram")}

    asked = {name for each in EXPRESSIONS for name in re.findall(r"\bcomponents_\w+", each)}

    assert asked - there == set()
    figures = {name.removesuffix("_bucket") for name in asked}
    for subject in SUBJECTS:
        assert f"components_{subject}" in figures


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_is_balanced_and_rates_are_of_counters(expression: str) -> None:
    for opening, closing in ("()", "[]", "{}"):
        assert expression.count(opening) == expression.count(closing)
    for name in re.findall(r"rate\((components_\w+)", expression):
        assert name.endswith(("_total", "_bucket"))
    for name in re.findall(r"(components_\w+_(?:total|bucket))(?!\w)", expression):
        assert re.search(rf"rate\({name}(\{{[^}}]*\}})?\[\$__rate_interval\]\)", expression)


class Samples(dict[tuple[str, frozenset[tuple[str, str]]], float]):
    """The figures of one gathering."""

    @classmethod
    def gather(cls) -> Samples:
        flush()
        text = expose("text/plain")[0].decode()
        return cls(
            {
                (sample.name, frozenset(sample.labels.items())): sample.value
                for family in text_string_to_metric_families(text)
                for sample in family.samples
            }
        )

    def of(self, name: str, /, **labels: Any) -> float | None:
        return self.get((f"components_{name}", frozenset(labels.items())))

    @property
    def names(self) -> set[str]:
        return {name for name, _labels in self}
