"""
The verdict: all that is in Redis at the end is held against what was written into the files.

Each table has each member and count that it should, there is no other table; each line was copied once; and nothing
is left in flight, held, or given up. The rejected lines that are shown are some that should be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from redis import Redis

from components.services.logs import PLACES, Aggregation
from components.services.logs.keys import JobKeys
from tests.chaos.visits import plan
from tests.chaos.visits.logs import JUNK

_SHOWN = 5  # of the members of a table that differ
_KEPT = 100  # rejected lines
#: How each of those is shown that are not counted, and why it is not.
_REJECTED = {(line.strip(b"\r\n").decode(errors="backslashreplace"), why) for line, why in JUNK.items()}
Tables: TypeAlias = Mapping[str, Mapping[str, int]]


class Verdict:
    """What is wrong, by what is in Redis."""

    def __init__(self, client: Redis, tables: Tables, *, lines: int, raw: int) -> None:
        self._client = client
        self.complaints = [
            *_differences(tables, self._tables()),
            *self._copied(lines, raw),
            *self._left(),
            *self._shown(),
        ]

    def _tables(self) -> Tables:
        prefix = JobKeys(plan.JOB).counts("").encode()
        names: Any = self._client.keys(prefix + b"*")
        found: dict[str, dict[str, int]] = {}
        for name in names:
            counts: Any = self._client.hgetall(name)
            table = name.removeprefix(prefix).decode()
            found[table] = {member.decode(): int(count) for member, count in counts.items()}
        return found

    def _copied(self, lines: int, raw: int) -> Iterator[str]:
        for field, expected in (("lines", lines), ("raw", raw), ("bytes", 0), ("chunks", 0)):
            found: Any = self._client.hget(JobKeys(plan.JOB).state, field)
            if int(found or 0) != expected:
                yield f"{field} is {int(found or 0):,} instead of {expected:,}."

    def _left(self) -> Iterator[str]:
        if chunks := self._client.keys(JobKeys(plan.JOB).chunk("*")):
            yield f"{len(chunks)} chunks are left."
        if entries := self._client.xlen(JobKeys(plan.JOB).stream):
            yield f"{entries} descriptors are left."
        if counted := self._client.hlen(JobKeys(plan.JOB).counted):
            yield f"{counted} chunks are noted to be counted by some."
        if dead := self._client.zcard(JobKeys(plan.JOB).dead):
            yield f"{dead} chunks are given up."
        groups: Any = self._client.xinfo_groups(JobKeys(plan.JOB).stream)
        for group in groups:
            if group["pending"]:
                yield f"{group['pending']} chunks are held in {group['name'].decode()}."

    def _shown(self) -> Iterator[str]:
        """Of the lines that were rejected."""
        for name in (PLACES, plan.EVENTS):
            samples = [sample for sample, _at in Aggregation(name, job=plan.JOB).samples(1_000)]
            if len(samples) != _KEPT:
                yield f"{len(samples)} rejected lines are shown of {name}, instead of {_KEPT}."
            for sample in samples:
                if (sample.head, sample.reason) not in _REJECTED:
                    yield f"{sample.head!r} is shown of {name}, rejected for its {sample.reason}."


def _differences(expected: Tables, found: Tables) -> Iterator[str]:
    for table in sorted(expected.keys() | found.keys()):
        should, does = expected.get(table, {}), found.get(table, {})
        wrong = sorted(each for each in should.keys() | does.keys() if should.get(each) != does.get(each))
        for member in wrong[:_SHOWN]:
            yield f"{table}: {member!r} is {does.get(member)} instead of {should.get(member)}."
        if len(wrong) > _SHOWN:
            yield f"{table}: {len(wrong) - _SHOWN} more are wrong."
