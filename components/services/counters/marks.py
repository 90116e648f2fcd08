"""
Marks: instants with a name, such as deployments, which charts of counters show as vertical lines.

All marks are in one sorted set, at most 500 of them, for as long as counters keep their longest slices.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from components.exceptions import InvalidValue
from components.kit.client import AnyRedis
from components.kit.decoding import instant_of, text_of
from components.kit.keyspace import bucket
from components.kit.scripts import Script, pipelined
from components.kit.sync_async import both
from components.kit.validation import check_name
from components.services.counters.keys import CounterKeys
from components.services.counters.precisions import plan

MARK = Script("counters/mark")

_MOST = 500
_TAG = bucket("marks")


@dataclass(frozen=True)
class Mark:
    """Something that happened at an instant."""

    name: str
    at: datetime


def marks_key() -> str:
    return CounterKeys(_TAG).marks


def read_marks(found: Sequence[tuple[bytes, float]]) -> list[Mark]:
    """Return the marks from the members of the set and their scores."""
    return [Mark(text_of(member).partition(" ")[2], instant_of(at / 1_000)) for member, at in found]


class Marks:
    """The marks of this site. Every method raises RedisUnavailable."""

    async def _add(self, client: AnyRedis, name: str, at: datetime | None = None) -> Mark:
        """
        Mark an instant, by default now by the server's clock. A mark that is older than what counters keep goes.
        Raises InvalidName; InvalidValue for an instant without a zone.
        """
        check_name("mark", name)
        if at is not None and at.utcoffset() is None:
            raise InvalidValue(f"The instant of the mark is {at!r}; it must be an aware datetime.")
        chosen = plan()
        said = await MARK.run(
            client,
            CounterKeys(_TAG),
            mark=f"{secrets.token_hex(8)} {name}",
            at="" if at is None else round(at.timestamp() * 1e6),
            kept=chosen.kept[chosen.coarsest],
            most=_MOST,
        )
        return Mark(name, instant_of(int(said) / 1_000))

    add, aadd = both(_add)

    async def _between(self, client: AnyRedis, since: datetime, until: datetime) -> list[Mark]:
        """Return the marks between two instants, the first one first."""
        first, last = (round(each.timestamp() * 1e6) for each in (since, until))
        [found] = await pipelined(
            client,
            [marks_key()],
            lambda pipe, key: pipe.zrange(key, first, last, byscore=True, withscores=True),
        )
        return read_marks(found)

    between, abetween = both(_between)
