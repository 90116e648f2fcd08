"""The hook for Sentry: failed tasks are events with tags, and each task has a scope of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import sentry_sdk
from django.conf import settings
from django.test.utils import override_settings
from redis import Redis
from sentry_sdk.envelope import Envelope
from sentry_sdk.integrations.django import DjangoIntegration
from sentry_sdk.integrations.logging import LoggingIntegration
from sentry_sdk.transport import Transport

from components.services.queues import Consumer, Finished, NewTask, TaskQueue
from components.services.queues.backend import RedisBackend
from components.services.queues.consumer import Parking
from components.services.queues.worker.inline import InlineExecution
from components.services.queues.worker.runs import Run, ServerClock
from tests.fixtures.worker import MakeWorker
from tests.support.queues import options

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

    finished = InlineExecution(backend, clock, Parking(consumer)).run(run)

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
