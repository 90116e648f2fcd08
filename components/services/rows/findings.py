"""What is wrong with cached rows in a running site, for `manage.py doctor`."""

from __future__ import annotations

from collections.abc import Iterator

from django.core.checks import CheckMessage, Error, Warning

from components.services.rows import LEASE, RowReader
from components.services.rows.models import cached_rows


def examine() -> Iterator[CheckMessage]:
    """Yield what is wrong with the rows on the schedule. Raises RedisUnavailable."""
    known = cached_rows()
    for info in RowReader().names():
        if info.name not in known:
            yield Warning(
                f"Rows of {info.name!r} are on the schedule ({info.count:,}), and no model here caches them.",
                hint='If another project uses this Redis, give each its own COMPONENTS["PREFIX"]. If the model is '
                "gone, take its rows off the schedule on the page Cached rows of the admin.",
                id="components.W121",
            )
        elif info.late > LEASE:
            yield Error(
                f"The cached rows of {info.name!r} are late: the first has been due for {info.late:.0f} s.",
                hint="Run `manage.py cacherows`, or more of them.",
                id="components.E122",
            )
        if info.failing:
            yield Warning(
                f"Of the cached rows of {info.name!r}, {info.failing:,} could not be loaded when last tried.",
                hint="The page Cached rows of the admin shows why.",
                id="components.W123",
            )
