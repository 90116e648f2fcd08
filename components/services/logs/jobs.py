"""
Jobs: the name under which producers and aggregations of logs find each other, and its keys, all in one slot.

A chunk is a few megabytes of whole lines, compressed, in a string of its own, and a descriptor of it in a stream. One
script writes both, notes how far its file is copied, and counts the bytes in flight: so a producer that dies leaves
neither half a chunk nor one that is copied twice.
"""

from __future__ import annotations

from components.exceptions import InvalidLimit
from components.kit.values import check_name
from components.services.logs import keys

#: The job of who names none.
DEFAULT_JOB = "default"


def totals_of(aggregation: str) -> str:
    """The table that counts all lines of an aggregation, those that it counted, and those of each reason."""
    return f"totals:{aggregation}"


class Keys:
    """The keys of one job, for each script."""

    def __init__(self, job: str) -> None:
        check_name("log job", job)
        self.job = job
        self.stream, self.chunk = keys.log_stream(job), keys.log_chunk(job, "")
        self.state, self.room = keys.log_state(job), keys.log_room(job)
        self.files, self.heads, self.seen = keys.log_files(job), keys.log_heads(job), keys.log_seen(job)
        self.aggregations, self.dead = keys.log_aggregations(job), keys.log_dead(job)
        counted = keys.log_counted(job)
        self.recognise = [self.files, self.heads, self.seen]
        self.append = [self.stream, self.chunk, self.files, self.state, self.room, self.seen]
        self.forget = [self.files, self.seen]
        self.finish = [self.files, self.state]
        self.join = [self.stream, self.aggregations, self.state]
        self.beat = self.release = [self.stream, self.aggregations]
        self.resend = [self.stream, self.aggregations, self.dead]
        self._counting = [self.stream, self.chunk, counted, self.aggregations, self.state, self.room]
        self.leave = [*self._counting, self.dead]

    def claim(self, consumer: str) -> list[str]:
        return [self.stream, self.aggregations, self.dead, keys.log_call(self.job, consumer)]

    def flush(self, consumer: str) -> list[str]:
        return [*self._counting, keys.log_flushed(self.job, consumer), keys.log_table(self.job, "")]


def check_bytes(what: str, number: object, least: int) -> int:
    """*number*, if it is one of bytes, from *least* on. Raises InvalidLimit."""
    if isinstance(number, bool) or not isinstance(number, int) or number < least:
        raise InvalidLimit(
            f"The {what} is {number!r}; it must be a whole number of bytes, from {least:,} on."
        )
    return number
