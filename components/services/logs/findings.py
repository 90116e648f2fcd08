"""What is wrong with the counting of logs in a running site, for `manage.py doctor`."""

from __future__ import annotations

from collections.abc import Iterator

from django.core.checks import CheckMessage, Error, Warning

from components.services.logs.jobs import AggregationStatus, list_jobs, look_at


def examine() -> Iterator[CheckMessage]:
    """Yield what is wrong with the aggregations of all jobs. Raises RedisUnavailable."""
    for job in list_jobs():
        for aggregation in look_at(job).aggregations:
            yield from _of(job, aggregation)


def _of(job: str, aggregation: AggregationStatus) -> Iterator[CheckMessage]:
    name = f"the aggregation {aggregation.name!r} of the job {job!r}"
    live = [worker for worker in aggregation.workers if worker.record]
    if (aggregation.waiting or aggregation.claimed) and not live:
        yield Error(
            f"Chunks of logs wait for {name}, the oldest for {aggregation.lag or 0:.0f} s, and no worker runs.",
            hint=f"Run `manage.py aggregatelogs --job {job}`.",
            id="components.E131",
        )
    elif aggregation.is_late:
        yield Warning(
            f"The workers of {name} are late: the oldest chunk came {aggregation.lag:.0f} s ago.",
            hint=f"Run more of them: `manage.py aggregatelogs --job {job}`.",
            id="components.W132",
        )
    if aggregation.dead:
        yield Warning(
            f"Chunks of logs that {name} could not count were given up ({aggregation.dead:,}).",
            hint="The page Logs of the admin shows them, and sends them again.",
            id="components.W133",
        )
