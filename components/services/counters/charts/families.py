"""FamilySeries: a family as one line of a chart, which is the sum of its counters, slice by slice."""

from __future__ import annotations

from collections.abc import Sequence

from components.services.counters import Sample, Series

#: Counters of a family, those that counted most: to add up more would take a request longer than a refresh may.
MOST_SUMMED = 250


class FamilySeries(Series):
    """The counters of a family together. It begins and ends as they do."""

    family: str
    #: How many counters they are.
    size: int

    @classmethod
    def of(cls, family: str, members: Sequence[Series], like: Series) -> FamilySeries:
        """*like* is any series that was read with them: a family may have nothing in that time."""
        counted = [
            [each.count for each in slices if each.count is not None] for slices in zip(*members, strict=True)
        ]
        counts = [sum(some) if some else None for some in counted] or [None] * len(like)
        summed = cls(
            [Sample(each.at, count) for each, count in zip(like, counts, strict=True)],
            name=f"{family}:*",
            precision=like.precision,
            since=like.since,
            until=like.until,
            total=sum(filter(None, counts)),
        )
        summed.family, summed.size = family, len(members)
        return summed

    @property
    def is_whole(self) -> bool:
        """Whether these are all of them."""
        return self.size < MOST_SUMMED
