"""
Loaders: who claims rows, and what becomes of what he claimed.

A claim has a token. A row is stored only if its claim still has that token, so a loader that was stopped, or whose
query took longer than its lease, is refused once another has claimed the row, or somebody has invalidated it. A
loader that dies leaves claims whose leases end: then the rows are due again. A call whose reply was lost is sent
again under the same number, and names the same rows.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from components.exceptions import RedisUnavailable
from components.kit.at_once import at_once
from components.kit.buckets import BUCKETS
from components.kit.client import AnyRedis, get_client
from components.kit.scripts import ASYNCHRONOUS, Call, Script, all_well
from components.kit.stored import text_of
from components.kit.together import outcomes_together
from components.kit.values import check_seconds
from components.services.rows.core import LEASE, Keys, by_bucket, micro, parts, send
from components.services.rows.records import Claim, Claims
from components.services.rows.shapes import Shape

_claim = Script("rows/claim")
_begin = Script("rows/begin")
_store = Script("rows/store")
_fail = Script("rows/fail")
_release = Script("rows/release")

#: Rows that a daemon loads at once, as a rule: fewer are slower, of more the first wait for the last.
AT_A_TIME = 500
_FIRST_RETRY, _LONGEST_RETRY = 1.0, 300.0  # seconds after a failure, which double each time
_LONGEST_ERROR = 300  # characters that are kept of one
_MOST = 2_000  # rows of one bucket in a claim, below what Lua can unpack


class Stored(NamedTuple):
    """What is to be stored of a row, by Shape.encode() or Shape.deleted."""

    is_there: bool
    body: str


class Loader:
    """One that loads rows of all caches, for *lease* seconds each. Every method raises RedisUnavailable."""

    def __init__(self, *, lease: float = LEASE) -> None:
        self.id = secrets.token_hex(8)
        self.lease = check_seconds("lease", lease)
        self._number = 0

    def claim(self, limit: int = AT_A_TIME) -> Claims:
        """
        Claim rows that are due, about *limit* of them, of all buckets alike, in one round trip to each node.

        Raises RedisUnavailable if no node answers; what some could not be asked for is in the `error` of the claims.
        """
        token, number = self._next_token(), min(_MOST, -(-limit // len(BUCKETS)))
        args = [token, number, micro(self.lease)]
        calls = [(Keys(tag).claim(self.id), args) for tag in BUCKETS]
        answers, error = at_once(_settled(get_client(), _claim, calls))
        claims, pauses = [], []
        for tag, answered in zip(BUCKETS, answers, strict=True):
            if answered is None:
                continue
            now, next_at, *members = answered
            if next_at:
                pauses.append(max(0, int(next_at) - int(now)) / 1e6)
            if members:
                claims.append(Claim(tag, token, int(now), tuple(text_of(each) for each in members)))
        return Claims(tuple(claims), min(pauses, default=None), error)

    def store(self, claims: Iterable[Claim], rows: Mapping[str, Stored]) -> set[str]:
        """
        Store the *rows*, by their members, in one round trip to each node. Return those that were not stored: others
        have claimed them since, or their node is away. Raises RedisUnavailable if all nodes are.
        """
        return at_once(store(get_client(), claims, rows, lease=self.lease))

    def fail(self, claims: Iterable[Claim], errors: Mapping[str, str]) -> None:
        """Note why these rows could not be loaded. Each is due again after a second, or after twice the last time."""
        at_once(fail(get_client(), claims, errors))

    def release(self, claims: Iterable[Claim], members: Collection[str], *, pause: float = 0) -> None:
        """Give these rows back, for no fault of theirs: they are due in *pause* seconds."""
        at_once(release(get_client(), claims, members, pause))

    def _next_token(self) -> str:
        self._number += 1
        return f"{self.id}-{self._number}"


async def _settled(
    client: AnyRedis, script: Script, calls: Sequence[Call]
) -> tuple[list[Any], RedisUnavailable | None]:
    """
    Return the answers to *calls*, None in place of those of nodes that are away, and why these have not answered.

    Raises what send() raises where no node answers, or one answers with an error of another kind.
    """
    if len(calls) <= 1:
        return await send(client, script, calls), None
    if isinstance(client, ASYNCHRONOUS):
        found = await outcomes_together(script, calls)
    else:
        found = await script.aoutcomes(client, calls)
    away = [each for each in found if isinstance(each, RedisUnavailable)]
    if len(away) == len(found):
        raise away[0]
    answers = all_well([None if isinstance(each, RedisUnavailable) else each for each in found])
    return answers, next(iter(away), None)


async def begin(
    client: AnyRedis, members: Sequence[str], token: str, shape: Shape, max_age: float | None, lease: float
) -> tuple[list[Claim], set[str]]:
    """Claim rows that a reader missed: what he is to load, and what others are loading."""
    groups = by_bucket(members)
    oldest = "" if max_age is None else micro(max_age)
    args = [token, micro(lease), shape.fingerprint, oldest]
    calls = [(Keys(tag).begin, [*args, *group]) for tag, group in groups.items()]
    claims, waiting = [], set[str]()
    answers = await send(client, _begin, calls)
    for (tag, group), (since, *said) in zip(groups.items(), answers, strict=True):
        outcomes = list(zip(group, said, strict=True))
        waiting |= {member for member, what in outcomes if what == b"wait"}
        if mine := tuple(member for member, what in outcomes if what == b"load"):
            claims.append(Claim(tag, token, int(since), mine))
    return claims, waiting


def claims_of(members: Sequence[str], token: str) -> list[Claim]:
    """What begin() may have claimed under that token, for who has not heard its answer."""
    return [Claim(tag, token, 0, tuple(group)) for tag, group in by_bucket(members).items()]


async def store(
    client: AnyRedis,
    claims: Iterable[Claim],
    rows: Mapping[str, Stored],
    *,
    lease: float,
    good: float | None = None,
) -> set[str]:
    """Loader.store(); with *good*, also rows that are on no schedule: they are good for so many seconds."""
    calls: list[tuple[list[str], list[Any]]] = []
    sent: list[list[str]] = []
    for claim in claims:
        for some in parts(member for member in claim.members if member in rows):
            args: list[Any] = [claim.token, claim.since, micro(lease), "" if good is None else micro(good)]
            for member in some:
                args += (member, int(rows[member].is_there), rows[member].body)
            calls.append((Keys(claim.tag).store, args))
            sent.append(some)
    answers, _error = await _settled(client, _store, calls)
    return {
        member
        for members, stored in zip(sent, answers, strict=True)
        for member, is_stored in zip(members, stored or [0] * len(members), strict=True)
        if not is_stored
    }


async def fail(client: AnyRedis, claims: Iterable[Claim], errors: Mapping[str, str]) -> None:
    """Loader.fail()."""
    calls = []
    for claim in claims:
        args: list[Any] = [claim.token, micro(_FIRST_RETRY), micro(_LONGEST_RETRY)]
        for member in claim.members:
            if member in errors:
                args += (member, _printable(errors[member]))
        if len(args) > 3:
            calls.append((Keys(claim.tag).fail, args))
    await _settled(client, _fail, calls)


async def release(
    client: AnyRedis, claims: Iterable[Claim], members: Collection[str], pause: float = 0
) -> None:
    """Loader.release()."""
    wanted = set(members)
    calls = [
        (Keys(claim.tag).release, [claim.token, micro(pause), *mine])
        for claim in claims
        if (mine := [member for member in claim.members if member in wanted])
    ]
    await _settled(client, _release, calls)


def _printable(error: str) -> str:
    """What of an error can be sent and shown."""
    return error[:_LONGEST_ERROR].encode("utf-8", "backslashreplace").decode()
