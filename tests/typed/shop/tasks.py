"""Tasks keep the parameters and the result of their function."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, assert_type

from components.services.queues import cron, periodic, task


@task
def double(number: int, *, times: int = 2) -> str:
    return str(number) * times


@task(queue_name="mail", max_attempts=12, timeout=60, unique=True, concurrency=3)
def send(pk: int) -> None: ...


@task
async def fetch(url: str) -> bytes:
    return url.encode()


@task(priority=5)
async def fetch_soon(url: str) -> bytes:
    return url.encode()


@task(takes_context=True)
def attempt(context: Any, name: str) -> int:
    return int(context.attempt)


@task(takes_context=True, lease=60)
async def attempt_later(context: Any, name: str) -> int:
    return int(context.attempt)


@periodic(cron("0 3 * * *"))
@task(unique=True)
def clean_up(days: int = 30) -> float:
    return days / 2


def use() -> None:
    assert_type(double.enqueue(1).return_value, str)
    assert_type(double.enqueue(1, times=3).return_value, str)
    assert_type(double.using(priority=1, run_after=timedelta(hours=1)).enqueue(1).return_value, str)
    assert_type(double.call(1), str)
    assert_type(double.get_result("id").return_value, str)
    assert_type(send.enqueue(pk=1).return_value, None)
    assert_type(fetch.enqueue("https://example.com").return_value, bytes)
    assert_type(fetch_soon.enqueue("https://example.com").return_value, bytes)
    assert_type(attempt.enqueue("a").return_value, int)
    assert_type(attempt_later.enqueue("a").return_value, int)
    assert_type(clean_up.enqueue().return_value, float)
    result = double.enqueue(1)
    assert_type(result.id, str)
    assert_type(result.finished_at, datetime | None)
    assert_type(result.is_finished, bool)
    result.refresh()

    double.enqueue("s")  # refused
    double.enqueue()  # refused
    double.enqueue(1, 2)  # refused
    double.enqueue(1, time=2)  # refused
    double.call("s")  # refused
    double.enqueue(1).return_value + 1  # refused
    double.using(priority=1).enqueue("s")  # refused
    double.using(delay=1)  # refused
    send.enqueue("s")  # refused
    fetch.enqueue(1)  # refused
    fetch_soon.enqueue(1)  # refused
    attempt.enqueue(1)  # refused
    attempt_later.enqueue(None, "a")  # refused
    clean_up.enqueue("a month")  # refused


async def wait() -> None:
    assert_type((await double.aenqueue(1)).return_value, str)
    assert_type((await double.aget_result("id")).return_value, str)
    assert_type(await fetch.acall("https://example.com"), bytes)

    await double.aenqueue("s")  # refused
    await fetch.acall(1)  # refused


@task(max_attempt=3)  # refused
def misspelled() -> None: ...


@task(timeout="1 minute")  # refused
def mistyped() -> None: ...


@task(takes_context=True)  # refused
def without_context() -> None: ...
