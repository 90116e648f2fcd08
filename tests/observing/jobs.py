"""Tasks that write to the log, make spans, and fail."""

import asyncio
import logging

import sentry_sdk
from opentelemetry import baggage

from components.kit.compat import task
from components.observing import tracing

logger = logging.getLogger("site")


@task
def tell() -> None:
    logger.info("at work", extra={"item": 7})


@task
async def atell() -> None:
    logger.info("at work", extra={"item": 7})


#: What tasks have found in the baggage of OpenTelemetry.
baggages: list[object] = []


@task
def spanned() -> None:
    with tracing._tracer.start_as_current_span("work"):
        baggages.append(baggage.get_baggage("tenant"))


@task
async def aspanned() -> None:
    with tracing._tracer.start_as_current_span("work"):
        baggages.append(baggage.get_baggage("tenant"))
    await asyncio.sleep(0)


@task
def stumble(number: int = 0) -> None:
    sentry_sdk.add_breadcrumb(message=f"crumb {number}")
    sentry_sdk.set_tag("of", number)
    raise ArithmeticError(number)


@task
async def astumble(number: int = 0) -> None:
    await asyncio.sleep(0)
    stumble.func(number)


@task
def complain() -> None:
    logger.error("not well")


class Silent(Exception):
    """An error that cannot be shown."""

    def __str__(self) -> str:
        raise RuntimeError


@task
def fail_silently() -> None:
    raise Silent
