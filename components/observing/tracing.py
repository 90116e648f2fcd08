"""
Spans of OpenTelemetry for tasks, and for waits for locks and semaphores. It needs the extra "opentelemetry".

    COMPONENTS = {
        "ENQUEUE_MIDDLEWARE": ["components.observing.tracing.enqueue"],
        "RUN_MIDDLEWARE": ["components.observing.tracing.run"],
        "ON_WAIT": ["components.observing.tracing.wait"],
    }

The context travels in the metadata of the task, in the fields of the propagators that OpenTelemetry is configured
with; by default these are traceparent, tracestate and baggage. Names and attributes follow the conventions of
OpenTelemetry for messaging.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from components.exceptions import ExtraNotInstalled
from components.kit.at_exit import at_sudden_end
from components.services.queues import NewTask, TaskRun

try:
    from opentelemetry import context, propagate, trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ImportError as error:
    raise ExtraNotInstalled(
        "Tracing needs opentelemetry-api. Install it: pip install 'django-redis-components[opentelemetry]'."
    ) from error

#: The entry of the metadata by which a run finds the span of the attempt before it.
_PREVIOUS = "traceparent.previous"
#: The most bytes of the context in a task's metadata, names included. What does not fit, such as large baggage, is
#: left out.
_MOST_CONTEXT = 2_048

#: Milliseconds for which a process that ends suddenly waits until its spans are exported.
_PATIENCE = 2_000

_tracer = trace.get_tracer("components")
_trace_context = TraceContextTextMapPropagator()


def _export() -> None:
    """Export the spans that the SDK still holds. The API alone, without an SDK, holds none."""
    if flush := getattr(trace.get_tracer_provider(), "force_flush", None):
        flush(_PATIENCE)


at_sudden_end(_export)


def enqueue(tasks: list[NewTask], call_next: Callable[[Iterable[NewTask]], Any]) -> Any:
    """
    Record the enqueueing as a PRODUCER span, whose context the tasks take along.

    Tasks that are enqueued together have one span. Ticks of periodic tasks have none, because each worker pushes each
    tick: their runs begin traces of their own.
    """
    if any(task.tick for task in tasks):
        return call_next(tasks)
    queues, names = {task.queue for task in tasks}, {task.name for task in tasks}
    attributes: dict[str, Any] = _attributes("send", queues.pop() if len(queues) == 1 else "")
    if len(names) == 1:
        attributes["code.function.name"] = names.pop()
    if len(tasks) == 1:
        attributes["messaging.message.id"] = tasks[0].id
    else:
        attributes["messaging.batch.message_count"] = len(tasks)
    with _span(attributes, trace.SpanKind.PRODUCER):
        carried = _carried()
        return call_next([replace(task, metadata={**task.metadata, **carried}) for task in tasks])


def run(run: TaskRun, call_next: Callable[[], Any]) -> Any:
    """
    Record the run as a CONSUMER span, which continues the trace of whoever enqueued the task.

    The span of a further attempt has a link to that of the attempt before, if that has failed. An attempt whose
    worker died leaves no span and no link.
    """
    task = run.task
    attributes: dict[str, Any] = {
        **_attributes("process", task.queue),
        "messaging.message.id": task.id,
        "messaging.client.id": run.worker_id,
        "code.function.name": task.name,
        "components.task.attempt": run.attempt,
    }
    token = context.attach(propagate.extract(run.metadata, context.Context()))
    try:
        with _span(attributes, trace.SpanKind.CONSUMER, _links(run.metadata)) as span:
            here: dict[str, str] = {}
            _trace_context.inject(here, trace.set_span_in_context(span, context.Context()))
            if here:
                run.metadata[_PREVIOUS] = here["traceparent"]
            return call_next()
    finally:
        context.detach(token)


def wait(kind: str, name: str, seconds: float, is_granted: bool) -> None:
    """Record a wait for a lock or a semaphore as a span, which has just ended."""
    ended = time.time_ns()
    span = _tracer.start_span(
        f"wait for {kind}",
        start_time=ended - round(seconds * 1e9),
        attributes={f"components.{kind}.name": name, f"components.{kind}.granted": is_granted},
    )
    span.end(ended)


def _attributes(operation: str, queue: str) -> dict[str, Any]:
    named = {"messaging.destination.name": queue} if queue else {}
    return {
        "messaging.system": "redis",
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
        **named,
    }


@contextmanager
def _span(
    attributes: Mapping[str, Any], kind: trace.SpanKind, links: Iterable[trace.Link] = ()
) -> Iterator[trace.Span]:
    """A span that is called after its operation and its queue, and records whatever is raised."""
    words = attributes["messaging.operation.name"], attributes.get("messaging.destination.name", "")
    with _tracer.start_as_current_span(
        " ".join(filter(None, words)),
        kind=kind,
        attributes=attributes,
        links=[*links],
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        try:
            yield span
        except BaseException as error:  # a task may raise SystemExit as well
            span.set_attribute("error.type", f"{type(error).__module__}.{type(error).__qualname__}")
            span.set_status(trace.StatusCode.ERROR)
            with suppress(Exception):  # the str() of a task's error may raise anything
                span.set_status(trace.StatusCode.ERROR, f"{type(error).__name__}: {error}")
                span.record_exception(error)
            raise


def _carried() -> dict[str, str]:
    """Return the fields of the current context, from the first on, that fit."""
    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    left, carried = _MOST_CONTEXT, dict[str, str]()
    for name, value in carrier.items():
        left -= len(f"{name}{value}".encode("ascii", "backslashreplace"))
        if left >= 0:
            carried[name] = value
    return carried


def _links(metadata: Mapping[str, str]) -> list[trace.Link]:
    before = _trace_context.extract({"traceparent": metadata.get(_PREVIOUS, "")}, context.Context())
    span = trace.get_current_span(before).get_span_context()
    return [trace.Link(span)] if span.is_valid else []
