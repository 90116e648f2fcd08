"""The names of all entities of a service: each bucket has a sorted set of those whose keys it tags."""

from collections.abc import Callable

from components.kit.client import get_client
from components.kit.decoding import text_of
from components.kit.keyspace import BUCKETS
from components.kit.scripts import pipelined
from components.kit.sync_async import at_once
from components.kit.validation import check_int


class Index:
    """
    Count the names in the sorted sets at *key*, which gets the bucket, and list them in pages: bucket after bucket,
    each in the order of its scores. Every method raises RedisUnavailable.
    """

    def __init__(self, key: Callable[[str], str], *, desc: bool = False) -> None:
        self._key, self._desc = key, desc

    def sizes(self, above: str = "-inf") -> list[int]:
        """Return how many names each bucket has, with scores *above*, as ZCOUNT takes it."""
        return at_once(
            pipelined(get_client(), BUCKETS, lambda pipe, tag: pipe.zcount(self._key(tag), above, "+inf"))
        )

    def page(self, offset: int, limit: int, above: str = "-inf") -> list[str]:
        """Return some names, in two round trips however many there are. Raises InvalidValue."""
        check_int("offset", offset, 0)
        check_int("limit", limit, 0)
        wanted = []
        for tag, size in zip(BUCKETS, self.sizes(above), strict=True):
            if offset < size and limit > 0:
                wanted.append((tag, offset, min(limit, size - offset)))
                limit -= min(limit, size - offset)
            offset = max(0, offset - size)
        ends = ("+inf", above) if self._desc else (above, "+inf")
        listed = at_once(
            pipelined(
                get_client(),
                wanted,
                lambda pipe, part: pipe.zrange(
                    self._key(part[0]), *ends, byscore=True, desc=self._desc, offset=part[1], num=part[2]
                ),
            )
        )
        return [text_of(name) for names in listed for name in names]
