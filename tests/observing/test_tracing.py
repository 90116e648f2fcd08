"""Spans of OpenTelemetry, which continue the trace of whoever enqueued a task; and records of logs, which name it."""

import asyncio
import io
import json
import logging
import logging.config
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import sentry_sdk
from django.conf import settings
from django.test.utils import override_settings
from opentelemetry import baggage, context
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from redis import Redis
from sentry_sdk.envelope import Envelope
from sentry_sdk.integrations.django import DjangoIntegration
from sentry_sdk.integrations.logging import LoggingIntegration
from sentry_sdk.transport import Transport

from components.checks import check_paths
from components.exceptions import ExtraNotInstalled, SemaphoreFull
from components.observing import tracing
from components.observing.records import JsonFormatter
from components.services.locks import alock, lock
from components.services.queues import Consumer, Finished, NewTask, TaskQueue
from components.services.queues.backend import RedisBackend
from components.services.queues.keys import QueueKeys
from components.services.queues.worker.inline import InlineExecution, run_ready
from components.services.queues.worker.runs import Run, ServerClock
from components.services.semaphores import Semaphore
from tests import tasks
from tests.fixtures.worker import MakeWorker
from tests.observing import jobs
from tests.support.queues import LONG_AGO, options

TRACING = "components.observing.tracing"


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., list[ReadableSpan]]]:
    """spans(name): those that have ended, in the order in which they began; all, or those of that name."""
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(tracing, "_tracer", provider.get_tracer("components"))
    jobs.baggages.clear()
    given = {
        "ENQUEUE_MIDDLEWARE": [f"{TRACING}.enqueue"],
        "RUN_MIDDLEWARE": [f"{TRACING}.run"],
        "ON_WAIT": [f"{TRACING}.wait"],
    }

    def ended(name: str = "") -> list[ReadableSpan]:
        found = sorted(exporter.get_finished_spans(), key=lambda span: span.start_time or 0)
        return [span for span in found if name in ("", span.name)]

    with override_settings(COMPONENTS={**settings.COMPONENTS, **given}):
        yield ended


Spans = Callable[..., list[ReadableSpan]]


def parent_of(span: ReadableSpan) -> int | None:
    return span.parent.span_id if span.parent else None


@pytest.mark.parametrize("name", ["spanned", "aspanned"])
@pytest.mark.parametrize("delay", [None, timedelta(hours=1)])
def test_a_task_continues_the_trace_of_its_enqueuer(
    redis: Redis, make_worker: MakeWorker, spans: Spans, name: str, delay: timedelta | None
) -> None:
    with tracing._tracer.start_as_current_span("request"):
        result = getattr(jobs, name).using(run_after=delay).enqueue()
    if delay:
        redis.zadd(QueueKeys("default", "default").delayed, {result.id: LONG_AGO})
    make_worker(burst=True).run()

    request, send, process, work = spans()
    assert [span.name for span in (request, send, process, work)] == [
        "request", "send default", "process default", "work",
    ]  # fmt: skip
    assert len({span.context.trace_id for span in spans()}) == 1
    assert [parent_of(span) for span in spans()] == [
        None, request.context.span_id, send.context.span_id, process.context.span_id,
    ]  # fmt: skip
    assert (send.kind, process.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    common = {
        "messaging.system": "redis",
        "messaging.destination.name": "default",
        "messaging.message.id": result.id,
        "code.function.name": f"tests.observing.jobs.{name}",
    }
    operations = {"messaging.operation.name": "send", "messaging.operation.type": "send"}
    assert send.attributes == common | operations
    ran = dict(process.attributes or {})
    assert ran.pop("messaging.client.id")
    operations = {"messaging.operation.name": "process", "messaging.operation.type": "process"}
    assert ran == common | operations | {"components.task.attempt": 1}
    assert not process.links
    assert process.status.status_code is StatusCode.UNSET


def test_tasks_that_are_enqueued_together_have_one_span(backend: RedisBackend, spans: Spans) -> None:
    backend.enqueue_many(jobs.spanned, [((), {})] * 3)
    run_ready(backend)

    [send] = spans("send default")
    assert (send.attributes or {})["messaging.batch.message_count"] == 3
    assert [parent_of(span) for span in spans("process default")] == [send.context.span_id] * 3


def test_a_further_attempt_links_to_the_one_before(backend: RedisBackend, spans: Spans) -> None:
    with options(max_attempts=2, backoff=0):
        result = tasks.fail.enqueue("no")
        run_ready(backend)
        TaskQueue().resend("default", [result.id])
        run_ready(backend, limit=1)

    [send] = spans("send default")
    first, second, third = spans("process default")
    assert [[link.context.span_id for link in span.links] for span in (first, second, third)] == [
        [], [first.context.span_id], [second.context.span_id],
    ]  # fmt: skip
    for span in (first, second, third):
        assert parent_of(span) == send.context.span_id
        assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "ValueError: no")
        assert (span.attributes or {})["error.type"] == "builtins.ValueError"
        [event] = span.events
        assert (event.name, (event.attributes or {})["exception.message"]) == ("exception", "no")
    assert [(span.attributes or {})["components.task.attempt"] for span in (first, second, third)] == [
        1,
        2,
        1,
    ]


@pytest.mark.parametrize("task", [tasks.leave, jobs.fail_silently])
def test_whatever_a_task_raises_ends_its_span(backend: RedisBackend, spans: Spans, task: Any) -> None:
    task.enqueue()
    with options():
        run_ready(backend)

    [process] = spans("process default")
    assert process.status.status_code is StatusCode.ERROR


def test_a_tick_begins_a_trace_when_it_runs(backend: RedisBackend, spans: Spans) -> None:
    new = replace(backend.new_task(tasks.echo, (), {}), tick=("name", datetime(2020, 1, 1, tzinfo=UTC)))
    with tracing._tracer.start_as_current_span("worker"):
        backend.store(tasks.echo, [new])
        run_ready(backend)

    process, worker = sorted(spans(), key=lambda span: span.name)
    assert (process.name, worker.name) == ("process default", "worker")
    assert process.parent is None


@pytest.mark.parametrize(("tenant", "arrives"), [("north", "north"), ("n" * 3_000, None)])
def test_baggage_travels_along_if_it_is_small(
    backend: RedisBackend, spans: Spans, tenant: str, arrives: str | None
) -> None:
    token = context.attach(baggage.set_baggage("tenant", tenant))
    try:
        jobs.spanned.enqueue()
    finally:
        context.detach(token)
    run_ready(backend)

    assert jobs.baggages == [arrives]
    [send], [process] = spans("send default"), spans("process default")
    assert parent_of(process) == send.context.span_id


def test_a_wait_for_a_lock_is_a_span(redis: Redis, spans: Spans) -> None:
    with lock("item:42", timeout=10):
        assert not spans(), "it was granted at once"
        with tracing._tracer.start_as_current_span("task"):
            assert not lock("item:42").acquire(blocking=False)
            assert not lock("item:42").acquire(blocking_timeout=0.05)
            assert not asyncio.run(_await_lock("item:42"))

    waits, [task] = spans("wait for lock"), spans("task")
    for span in waits:
        assert dict(span.attributes or {}) == {
            "components.lock.name": "item:42",
            "components.lock.granted": False,
        }
        assert parent_of(span) == task.context.span_id
        assert (span.end_time or 0) - (span.start_time or 0) > 0.04e9
    assert len(waits) == 2


async def _await_lock(name: str) -> bool:
    return bool(await alock(name).acquire(blocking_timeout=0.05))


def test_a_wait_for_a_semaphore_is_a_span(redis: Redis, spans: Spans) -> None:
    semaphore = Semaphore("api", limit=1)
    with semaphore.acquire():
        assert not spans()
        with pytest.raises(SemaphoreFull):
            semaphore.acquire(wait=0.05)
    Semaphore("short", limit=1, lease=0.1).acquire()
    Semaphore("short", limit=1).acquire(wait=20)

    span, granted = spans()
    assert (granted.attributes or {})["components.semaphore.granted"] is True
    assert span.name == "wait for semaphore"
    assert dict(span.attributes or {}) == {
        "components.semaphore.name": "api",
        "components.semaphore.granted": False,
    }


def test_an_error_of_what_is_told_of_waits_is_logged(redis: Redis, caplog: pytest.LogCaptureFixture) -> None:
    given = {**settings.COMPONENTS, "ON_WAIT": ["builtins.len"]}
    with lock("item:42", timeout=10), override_settings(COMPONENTS=given):
        assert not lock("item:42").acquire(blocking_timeout=0.05)

    assert "failed after a wait for the lock 'item:42'" in caplog.text


def test_without_the_package_the_check_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    monkeypatch.delitem(sys.modules, TRACING)

    with override_settings(COMPONENTS={"RUN_MIDDLEWARE": [f"{TRACING}.run"]}):
        [message] = check_paths()
    assert "pip install 'django-redis-components[opentelemetry]'" in str(message.msg)
    with pytest.raises(ExtraNotInstalled):
        import_module(TRACING)


JOBS = "tests.observing.jobs"
Events = list[dict[str, Any]]


class Kept(Transport):
    """Keeps events in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.events: Events = []

    def capture_envelope(self, envelope: Envelope) -> None:
        if (event := envelope.get_event()) is not None:
            self.events.append(dict(event))


@pytest.fixture(scope="module")
def sentry() -> Iterator[Kept]:
    """Sentry as a site sets it up, until the tests of this module are over."""
    kept = Kept()
    sentry_sdk.init(
        dsn="https://key@sentry.invalid/1",
        transport=kept,
        integrations=[DjangoIntegration(), LoggingIntegration()],
        auto_enabling_integrations=False,
    )
    yield kept
    sentry_sdk.get_client().close(timeout=0)
    sentry_sdk.get_global_scope().set_client(None)


@pytest.fixture
def events(redis: Redis, sentry: Kept) -> Iterator[Events]:
    sentry.events.clear()
    given = {**settings.COMPONENTS, "RUN_MIDDLEWARE": ["components.observing.sentry.run"]}
    with override_settings(COMPONENTS=given):
        yield sentry.events


def push(*names: str, queue: str = "default") -> list[str]:
    new = [
        NewTask(name=f"{JOBS}.{name}", args=[number] if "stumble" in name else [], queue=queue)
        for number, name in enumerate(names)
    ]
    return [info.id for info in TaskQueue().push_many(new) if info]


@pytest.mark.parametrize("name", ["stumble", "astumble"])
def test_a_failed_task_is_an_event_that_names_it(events: Events, make_worker: MakeWorker, name: str) -> None:
    [task_id] = push(name, queue="mail")
    with options():
        make_worker("mail", burst=True).run()

    [event] = events
    assert event["tags"] == {
        "task": f"{JOBS}.{name}",
        "task_id": task_id,
        "queue": "mail",
        "attempt": 1,
        "of": 0,
    }
    assert event["transaction"] == f"{JOBS}.{name}"
    assert event["exception"]["values"][-1]["type"] == "ArithmeticError"


def test_an_attempt_that_is_not_the_last_is_no_event(events: Events, make_worker: MakeWorker) -> None:
    push("stumble")
    with options(max_attempts=2, backoff=0):
        make_worker(burst=True).run()

    [event] = events
    assert event["tags"]["attempt"] == 2


def test_the_hook_does_not_report_a_cancelled_task(events: Events, backend: RedisBackend) -> None:
    push("stumble")
    consumer, clock = Consumer(), ServerClock()
    step = consumer.advance(consumer.request({"default": 1}, 1))
    clock.set(step.now)
    run = Run(step.claimed[0], consumer, clock)
    run.cancel()

    finished = InlineExecution(backend, clock).run(run)

    assert isinstance(finished, Finished)
    assert finished.outcome == "dead"
    assert not [
        event for event in events if "task_id" in event.get("tags", {})
    ]  # Django logs an error of its own


def test_nothing_of_one_task_is_in_the_events_of_another(events: Events, make_worker: MakeWorker) -> None:
    ids = push(*["stumble", "astumble"] * 10, "complain")
    with options():
        make_worker(burst=True, concurrency=2).run()

    found = {event["tags"]["task_id"]: event for event in events}
    assert len(events) == len(ids) == 21
    for number, task_id in enumerate(ids[:-1]):
        assert found[task_id]["tags"]["of"] == number
        crumbs = [crumb["message"] for crumb in found[task_id]["breadcrumbs"]["values"]]
        assert [crumb for crumb in crumbs if crumb.startswith("crumb")] == [f"crumb {number}"]
    complaint = found[ids[-1]]
    assert complaint["logentry"]["message"] == "not well"
    assert "of" not in complaint["tags"]


BEGIN = """
import os
import django
django.setup()
from components.workers.reexec import flush
"""
SPAN = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter
trace.set_tracer_provider(TracerProvider())
trace.get_tracer_provider().add_span_processor(
    BatchSpanProcessor(ConsoleSpanExporter(), schedule_delay_millis=3_600_000)
)
from components.observing import tracing
with tracing._tracer.start_as_current_span("the last one"):
    pass
"""
EVENT = """
import sentry_sdk
from sentry_sdk.transport import Transport
class Slow(Transport):
    kept = []
    def capture_envelope(self, envelope):
        self.kept.append(envelope.get_event()["message"])
    def flush(self, timeout, callback=None):
        print(*self.kept)
sentry_sdk.init(dsn="https://key@sentry.invalid/1", transport=Slow())
from components.observing import sentry
sentry_sdk.capture_message("the last one")
"""
END = """
flush()
os._exit(3)
"""


@pytest.mark.slow
@pytest.mark.parametrize("left", [SPAN, EVENT], ids=["span", "event"])
def test_what_is_not_exported_yet_is_exported_at_a_sudden_end(left: str) -> None:
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    command = [sys.executable, "-c", BEGIN + left + END]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)

    assert done.returncode == 3, done.stderr
    assert "the last one" in done.stdout


PAGE = Path(__file__).parents[2] / "docs" / "observing.md"


@pytest.fixture
def lines() -> Iterator[list[dict[str, Any]]]:
    """What is logged with the LOGGING of the documentation; filled in when the test has called read()."""
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    [example] = re.findall(r"^LOGGING = \{.*?^\}", PAGE.read_text("utf-8"), re.M | re.S)
    scope: dict[str, Any] = {}
    exec(example, scope)
    output = io.StringIO()
    logging.config.dictConfig(scope["LOGGING"])
    [handler] = [each for each in root.handlers if each not in before]
    handler.setStream(output)

    class Lines(list[dict[str, Any]]):
        def read(self) -> list[dict[str, Any]]:
            return [json.loads(line) for line in output.getvalue().splitlines()]

    yield Lines()
    root.handlers[:], root.level = before, level


@pytest.mark.parametrize("name", ["tell", "atell"])
def test_the_records_of_a_task_name_it(redis: Redis, make_worker: MakeWorker, lines: Any, name: str) -> None:
    [task_id] = push(name)

    logging.getLogger("site").info("before")
    make_worker(burst=True).run()

    told = {line["message"]: line for line in lines.read()}
    assert (told["before"]["task"], told["before"]["task_id"]) == ("", "")
    assert (told["at work"]["task"], told["at work"]["task_id"]) == (f"{JOBS}.{name}", task_id)
    assert told["at work"]["item"] == 7
    [ended] = [line for line in told.values() if line["logger"] == "components.done"]
    assert (ended["task"], ended["task_id"], ended["level"]) == (f"{JOBS}.{name}", task_id, "INFO")


def test_a_line_is_json_whatever_is_in_the_record() -> None:
    try:
        raise ValueError("line\nfeed")
    except ValueError as error:
        info = (ValueError, error, error.__traceback__)
    record = logging.LogRecord("site", logging.ERROR, "file", 1, "%s\n%s", ("ä", object), info)
    record.item = {1, 2}

    line = JsonFormatter().format(record)

    assert "\n" not in line
    read = json.loads(line)
    assert read["message"] == "ä\n<class 'object'>"
    assert read["item"] == "{1, 2}"
    assert read["exception"].endswith("ValueError: line\nfeed")
    assert read["time"].endswith("+00:00")
    assert not {"args", "msg", "exc_info"} & read.keys()
