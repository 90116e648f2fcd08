"""
RateReader: the list of all rate limits, in pages, for the control room.

Reading changes nothing, and takes four round trips, however many limits there are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from components.kit.buckets import Index
from components.kit.client import get_client
from components.kit.decoding import number_of, text_of
from components.kit.leases import server_clock
from components.kit.scripts import pipelined
from components.kit.sync_async import at_once
from components.services.rates.keys import RateKeys

_ALL = Index(lambda tag: RateKeys.of_bucket(tag).names, desc=True)


@dataclass(frozen=True)
class RateInfo:
    """The state of a rate limit."""

    name: str
    #: As the code declared it last: "100/m".
    rate: str
    #: The calls that were counted since its first use, or its first use after a month without any.
    made: int
    #: The callers that wait for their turn, of those without a key.
    waiting: int


class RateReader:
    """The rate limits that counted a call within a month. Every method raises RedisUnavailable."""

    def count(self) -> int:
        """Return how many rate limits there are."""
        return sum(_ALL.sizes())

    def page(self, *, offset: int = 0, limit: int = 50) -> list[RateInfo]:
        """Return a page of the limits, ordered by name within each bucket, from the *offset*-th on."""
        return _look(sorted(_ALL.page(offset, limit)))

    def find(self, name: str) -> RateInfo | None:
        """Return the rate limit with this name; None if it counted nothing within a month."""
        return next(iter(_look([name])), None)


def _look(names: Sequence[str]) -> list[RateInfo]:
    if not names:
        return []
    client = get_client()
    now = server_clock(client)

    def add(pipe: Any, name: str) -> None:
        keys = RateKeys(name)
        pipe.hget(keys.rates, name)
        pipe.hget(keys.made, name)
        without_key = keys.places + "/"
        pipe.zcount(without_key, now, "+inf")

    found = iter(at_once(pipelined(client, names, add)))
    return [
        RateInfo(name, text_of(rate), number_of(made), waiting)
        for name, (rate, made, waiting) in zip(names, zip(*[found] * 3, strict=True), strict=True)
        if rate is not None
    ]
