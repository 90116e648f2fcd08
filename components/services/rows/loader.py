"""
Loader: claims rows that are due, and stores the loaded ones.

A claim has a token. A row is stored only if its claim still has that token. A loader that was stopped, or whose query
took longer than its lease, is therefore refused once another loader has claimed the row or a write has invalidated
it. A loader that dies leaves claims whose leases end, and then the rows are due again. Each stored load began after
the previous one was stored, and no load that began before an invalidation is stored after it. All instants are
microseconds of the server's clock.
"""

import secrets
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

from components.exceptions import RedisUnavailable, RowNotSerializable, RowTooLarge
from components.kit.client import AnyRedis, get_client
from components.kit.decoding import text_of
from components.kit.keyspace import BUCKETS, by_bucket, parts
from components.kit.readings import Ask, answers_to
from components.kit.scripts import Call, Script, all_well
from components.kit.sync_async import at_once
from components.kit.validation import check_seconds
from components.services.rows.keys import DaemonKeys, RowKeys
from components.services.rows.members import AT_ONCE, LEASE, micro, name_and_key
from components.services.rows.shape import Shape

BEGIN = Script("rows/begin")
CLAIM = Script("rows/claim")
FAIL = Script("rows/fail")
RELEASE = Script("rows/release")
STORE = Script("rows/store")

#: Rows that a daemon loads at once by default. Fewer are slower; with more, the first rows wait for the last.
AT_A_TIME = 500
_FIRST_RETRY, _LONGEST_RETRY = 1.0, 300.0  # seconds after a failure, which double each time
_AGAIN = 0.5  # seconds after which a node that did not answer is asked again
_LONGEST_ERROR = 300  # characters of an error that are stored
_MOST = 2_000  # rows of one bucket in a claim, below what Lua can unpack


@dataclass(frozen=True)
class Claim:
    """Rows that one loader has claimed with one call, all of one bucket."""

    tag: str
    token: str
    #: The microsecond of the claim.
    since: int
    members: tuple[str, ...]


@dataclass(frozen=True)
class Claims:
    """The claims that a daemon has made at once."""

    claims: tuple[Claim, ...]
    #: Seconds until another row is due; 0 if one is due now, None if the schedule is empty.
    pause: float | None
    #: The error of cluster nodes whose rows could not be claimed; None if there was none.
    error: RedisUnavailable | None = None

    def __len__(self) -> int:
        return sum(len(claim.members) for claim in self.claims)


class Stored(NamedTuple):
    """The text to store for a row: Shape.encode() of it, or Shape.deleted."""

    is_there: bool
    body: str


def to_store(
    shape: Shape, members: Iterable[str], values: Mapping[str, Sequence[Any]]
) -> tuple[dict[str, Stored], dict[str, Exception]]:
    """
    Return what to store of these members, and the errors of the others. *values* are those of existing rows, by key.
    """
    rows, errors = dict[str, Stored](), dict[str, Exception]()
    for each in members:
        key = name_and_key(each)[1]
        is_there = key in values
        try:
            rows[each] = Stored(is_there, shape.encode(each, values[key]) if is_there else shape.deleted)
        except (RowNotSerializable, RowTooLarge) as error:
            errors[each] = error
    return rows, errors


@dataclass
class Loaded:
    """The values of the existing rows by key, and the errors of rows that could not be loaded."""

    values: dict[str, Sequence[Any]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)


class Loader:
    """Claims and stores rows of all caches, with a lease of *lease* seconds. Every method raises RedisUnavailable."""

    def __init__(self, *, lease: float = LEASE) -> None:
        self.id = secrets.token_hex(8)
        self.lease = check_seconds("lease", lease)
        self._number = 0
        #: The time of this process's clock at which the first row of each bucket is due.
        self._due: dict[str, float] = {}

    def look(self, tags: Sequence[str] = BUCKETS) -> None:
        """Note when rows of these buckets are due. It takes one command for each, where a claim takes ten."""
        keys = [RowKeys(tag).schedule for tag in tags]
        heads = [Ask.of("zrange", key, 0, 0, withscores=True) for key in keys]
        at, *found = answers_to([Ask(keys[0], lambda pipe: pipe.time()), *heads])
        now = at[0] * 1_000_000 + at[1] if isinstance(at, tuple) else 0
        for tag, head in zip(tags, found, strict=True):
            # If the node does not answer, the claim says so.
            self._note(tag, inf if head == [] else head[0][1] - now if isinstance(head, list) and now else 0)

    def _note(self, tag: str, microseconds: float) -> None:
        self._due[tag] = time.monotonic() + microseconds / 1e6

    def due(self) -> list[str]:
        """Return the buckets in which rows are due, by the latest look or claim."""
        return [tag for tag, at in self._due.items() if at <= time.monotonic()]

    @property
    def pause(self) -> float:
        """The seconds until a row is due, by the latest look or claim."""
        return max(0.0, min(self._due.values(), default=0.0) - time.monotonic())

    def claim(self, limit: int = AT_A_TIME, tags: Sequence[str] = BUCKETS) -> Claims:
        """
        Claim about *limit* rows that are due, from all buckets alike, in one round trip to each node. Raises
        RedisUnavailable if no node answers. If some nodes do not answer, their error is in *error* of the claims.
        """
        self._number += 1
        token = f"{self.id}-{self._number}"
        some, lease = min(_MOST, -(-limit // len(tags))), micro(self.lease)
        calls = [CLAIM.call(DaemonKeys(tag, self.id), token=token, limit=some, lease=lease) for tag in tags]
        answers, error = at_once(_settled(get_client(), CLAIM, calls))
        claims, pauses = [], []
        for tag, answered in zip(tags, answers, strict=True):
            if answered is None:
                self._note(tag, micro(_AGAIN))
                continue
            now, next_at, *members = answered
            self._note(tag, int(next_at) - int(now) if next_at else inf)
            if next_at:
                pauses.append(max(0, int(next_at) - int(now)) / 1e6)
            if members:
                claims.append(Claim(tag, token, int(now), tuple(text_of(each) for each in members)))
        return Claims(tuple(claims), min(pauses, default=None), error)

    def store(self, claims: Iterable[Claim], rows: Mapping[str, Stored]) -> set[str]:
        """
        Store *rows*, given by member, in one round trip to each node. Return the members that were not stored,
        because another loader has claimed them since, or because their node does not answer.
        """
        return at_once(store(get_client(), claims, rows, lease=self.lease))

    def fail(self, claims: Iterable[Claim], errors: Mapping[str, str]) -> None:
        """
        Record the *errors*, given by member, of rows that could not be loaded. A row is due again after a second.
        Each further failure doubles this time, up to 300 seconds.
        """
        times = {"first": micro(_FIRST_RETRY), "longest": micro(_LONGEST_RETRY)}
        calls = []
        for claim in claims:
            failed: list[str] = []
            for each in claim.members:
                if each in errors:
                    error = errors[each][:_LONGEST_ERROR]
                    failed += (each, error.encode("utf-8", "backslashreplace").decode())
            if failed:
                calls.append(FAIL.call(RowKeys(claim.tag), token=claim.token, failed=failed, **times))
        at_once(_settled(get_client(), FAIL, calls))

    def release(self, claims: Iterable[Claim], members: Collection[str], *, pause: float = 0) -> None:
        """Give these rows back without recording a failure. They are due in *pause* seconds."""
        at_once(release(get_client(), claims, members, pause))


async def begin(
    client: AnyRedis, members: Sequence[str], token: str, shape: Shape, max_age: float | None, lease: float
) -> tuple[list[Claim], set[str]]:
    """Claim rows that a reader missed. Return the claims, and the members that somebody else is loading."""
    asked = {
        "token": token,
        "lease": micro(lease),
        "shape": shape.fingerprint,
        "oldest": "" if max_age is None else micro(max_age),
    }
    groups = by_bucket(members)
    calls = [BEGIN.call(RowKeys(tag), members=group, **asked) for tag, group in groups.items()]
    claims, waiting = [], set[str]()
    answers = await BEGIN.amany(client, calls)
    for (tag, group), (since, *said) in zip(groups.items(), answers, strict=True):
        outcomes = list(zip(group, said, strict=True))
        waiting |= {member for member, what in outcomes if what == b"wait"}
        if mine := tuple(member for member, what in outcomes if what == b"load"):
            claims.append(Claim(tag, token, int(since), mine))
    return claims, waiting


def claims_of(members: Sequence[str], token: str) -> list[Claim]:
    """Return the claims that begin() may have made under that token, for a caller that got no answer."""
    return [Claim(tag, token, 0, tuple(group)) for tag, group in by_bucket(members).items()]


async def store(
    client: AnyRedis,
    claims: Iterable[Claim],
    rows: Mapping[str, Stored],
    *,
    lease: float,
    good: float | None = None,
) -> set[str]:
    """
    Store rows, as Loader.store() does; with *good*, also rows that are not on the schedule, for so many seconds.
    """
    times = {"grace": micro(lease), "good": "" if good is None else micro(good)}
    calls: list[Call] = []
    sent: list[list[str]] = []
    for claim in claims:
        for some in parts((member for member in claim.members if member in rows), AT_ONCE):
            loaded: list[Any] = []
            for member in some:
                loaded += (member, int(rows[member].is_there), rows[member].body)
            keys = RowKeys(claim.tag)
            calls.append(STORE.call(keys, token=claim.token, loaded_at=claim.since, loaded=loaded, **times))
            sent.append(some)
    answers, _error = await _settled(client, STORE, calls)
    return {
        member
        for members, stored in zip(sent, answers, strict=True)
        for member, is_stored in zip(members, stored or [0] * len(members), strict=True)
        if not is_stored
    }


async def release(
    client: AnyRedis, claims: Iterable[Claim], members: Collection[str], pause: float = 0
) -> None:
    """Give rows back, as Loader.release() does, with either kind of client."""
    wanted = set(members)
    calls = [
        RELEASE.call(RowKeys(claim.tag), token=claim.token, pause=micro(pause), members=mine)
        for claim in claims
        if (mine := [member for member in claim.members if member in wanted])
    ]
    await _settled(client, RELEASE, calls)


async def _settled(
    client: AnyRedis, script: Script, calls: Sequence[Call]
) -> tuple[list[Any], RedisUnavailable | None]:
    """
    Return the answers to *calls*, with None for those of unavailable nodes, and the error of these nodes. Raises the
    error of amany() if no node answers, or if one answers with an error of another kind.
    """
    if len(calls) <= 1:
        return await script.amany(client, calls), None
    found = await script.aoutcomes(client, calls)
    away = [each for each in found if isinstance(each, RedisUnavailable)]
    if len(away) == len(found):
        raise away[0]
    answers = all_well([None if isinstance(each, RedisUnavailable) else each for each in found])
    return answers, next(iter(away), None)
