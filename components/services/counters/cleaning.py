"""
clean(): what does not belong to counters goes, and what has no end gets one.

All that counters store ends by itself. So there is only what others bring: keys that were restored or copied without
their ends, settings that kept things longer, other layouts, and values that stand where counts belong. Each key is
mended in one step that may be repeated, so two may clean at once, and one that is stopped has done what it said.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any

from components.kit.client import get_client
from components.kit.errors import redis_errors
from components.kit.scripts import Call, Script
from components.services.counters import keys
from components.services.counters.precisions import WINDOW, Plan, plan

_mend = Script("counters/mend")

_PAGE = 1_000  # keys that are mended together
_HOUR = 3_600  # seconds
_ANY = "any"
_NO_TIME = 2**40  # seconds since 1970: no slot is so far ahead
_SAMPLES = re.compile(r"samples:.+/(\d+):(\d+)", re.DOTALL)


@dataclass(frozen=True)
class Cleaned:
    """What was found so far."""

    #: Keys of counters.
    looked: int = 0
    #: That were none of theirs, or over.
    removed: int = 0
    #: That have an end now, or no more names of which nothing is kept.
    mended: int = 0


def clean(progress: Callable[[Cleaned], object] | None = None) -> Cleaned:
    """Look at each key of counters; *progress* is told after each thousand. Raises RedisUnavailable."""
    chosen, client, done = plan(), get_client(), Cleaned()
    with redis_errors():
        found = client.scan_iter(match=_pattern(), count=_PAGE)
        while some := list(islice(found, _PAGE)):
            said = _mend.many(client, [_call(key, chosen) for key in some])
            done = Cleaned(
                done.looked + len(some),
                done.removed + said.count(b"removed"),
                done.mended + said.count(b"mended"),
            )
            if progress:
                progress(done)
    return done


def _pattern() -> str:
    """All keys of counters, whichever they are."""
    mine = keys.counter_samples(_ANY, "").removesuffix("samples:")
    escaped = re.sub(r"([*?\[\]\\^])", r"\\\1", mine)
    return escaped.replace(f"{{{_ANY}}}", "{*}") + "*"


def _call(key: Any, chosen: Plan) -> Call:
    part = key.decode("utf-8", "surrogateescape").partition("}:")[2]
    return [key], _expected(part, chosen)


def _expected(part: str, chosen: Plan) -> list[Any]:
    """What mend.lua is told of a key with this last part."""
    if match := _SAMPLES.fullmatch(part):
        precision, window = int(match[1]), int(match[2])
        end = (window + 1) * WINDOW * precision + chosen.kept.get(precision, precision * chosen.samples)
        return ["hash" if end < _NO_TIME else "", end, 0, ""]
    if part in ("names", "names-families") or part.startswith("names:"):
        kept = chosen.kept[chosen.coarsest]
        return ["zset", "", kept, kept * 1_000_000]
    return ["string" if part.startswith("source:") else "", "", _HOUR, ""]
