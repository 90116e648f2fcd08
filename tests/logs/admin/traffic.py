"""Logs as they are copied, counted and rejected: a job with workers, dead chunks, rejected lines and traffic."""

from datetime import date, timedelta

from redis import Redis

from components.services.logs import Aggregation, Consumer, Sample, WorkerRecord, note_job
from components.services.logs.traffic.tables import hourly
from tests.support import traffic
from tests.support.logs import append, joined, let_leases_pass, stream

LAST = date(2011, 10, 10)
JUNK = "\\x00\\xff<script>alert(1)</script> \u202eleft"
PLACES = {
    **{"US/CA/Mountain View": 400, "US/CA/Los Angeles": 200, "US/NY/New York": 150, "US/CA": 20, "US": 10},
    **{"DE/BE/Berlin": 120, "FR": 80, "GB/ENG/London": 60, "JP/13/Tokyo": 50, "BR": 40, "IN": 30, "NG": 20},
    **{"=1+1/%2F/<b>": 7, "unknown": 5},
}
ANSWERS = [("US", "200"), ("US", "404"), ("DE", "4xx"), ("SG", "403"), ("unknown", "")]


def count(days: int = 30, *, job: str = "default", last: date = LAST) -> None:
    """Traffic of so many days, a little more each day."""
    note_job(job)
    of_days = {
        last - timedelta(number): {place: lines * (days - number) for place, lines in PLACES.items()}
        for number in range(days)
    }
    traffic.count(of_days, job=job)


def count_hours(*, job: str = "default", last: date = LAST) -> None:
    """Traffic of the last day by hour, country and status."""
    members = {f"{hour:02}/{'/'.join(answer)}": 10 + hour for hour in range(24) for answer in ANSWERS}
    traffic.add({hourly(last): members}, job=job)


def give_up(redis: Redis, aggregation: Aggregation, count: int) -> None:
    """So many chunks are dead."""
    aggregation.consumer().claim(count)
    let_leases_pass(redis, aggregation)
    aggregation.consumer().claim(count)


def busy(redis: Redis, *, job: str = "default", dead: int = 2) -> tuple[Consumer, Consumer]:
    """A job with a worker at work, and a silent one, each of which holds a chunk; dead ones; and one that waits."""
    to = stream(job=job)
    for number in range(dead):
        append(to, number)
    aggregation = joined("places", job=job, tries=1)
    if dead:
        give_up(redis, aggregation, dead)
    for number in range(dead, dead + 4):
        append(to, number)
    living, silent = aggregation.consumer(), aggregation.consumer()
    counted, _held = living.claim(2)
    silent.claim(1)
    totals = {"lines": 1_010, "counted": 1_000, "format": 7, "date": 3}
    living.flush([counted], {"totals:places": totals})
    junk = Sample("format", "a.log", 12, 480, JUNK)
    living.sample([junk, Sample("date", "logs/b.log.gz", 3, 96, "1.2.3.4 2011-02-30")])
    done = (1_000_000, 30, 4_200_000.4)
    living.tell(WorkerRecord("node-1", 7, "2026-01-01T12:00:00+00:00", *done, "book", "city", "numba"))
    note_job(job)
    return living, silent
