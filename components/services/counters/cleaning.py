"""
clean(): remove keys that do not belong to counters, and give an expiry to those that have none.

Everything that counters store expires by itself. So this is about other keys: those that were restored or copied
without their expiry, those that other settings or an older layout have left, and values that are not counts. Each key
is mended in one step that may be repeated. So two processes may clean at once, and one that is stopped has done what
it reported.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from components.kit.client import get_client
from components.kit.errors import redis_errors
from components.kit.keyspace import escaped, parts
from components.kit.scripts import Script
from components.kit.sync_async import at_once
from components.services.counters.keys import CounterKeys
from components.services.counters.precisions import WINDOW, Plan, plan

MEND = Script("counters/mend")

_PAGE = 1_000  # keys that are mended together
_HOUR = 3_600  # seconds
_ANY = "any"
_NO_TIME = 2**40  # seconds since 1970: no slot is so far ahead
_SAMPLES = re.compile(r"(samples|histograms):.+/(\d+):(\d+)", re.DOTALL)


@dataclass(frozen=True)
class Cleaned:
    """The result so far."""

    #: Keys that were looked at.
    looked: int = 0
    #: Keys that did not belong to counters, or were over.
    removed: int = 0
    #: Keys that have an expiry now, or from which names without samples were removed.
    mended: int = 0


def clean(progress: Callable[[Cleaned], object] | None = None) -> Cleaned:
    """Clean each key of counters, and call *progress* after each thousand. Raises RedisUnavailable."""
    chosen, client, done = plan(), get_client(), Cleaned()
    beginning = escaped(CounterKeys(_ANY).samples.removesuffix("samples")).replace(f"{{{_ANY}}}", "{*}")
    with redis_errors():
        found = client.scan_iter(match=f"{beginning}*", count=_PAGE)
        for some in parts(found, _PAGE):
            calls = []
            for key in some:
                part = key.decode("utf-8", "surrogateescape").partition("}:")[2]
                calls.append(MEND.call(SimpleNamespace(key=key), **_expected(part, chosen)))
            said = at_once(MEND.amany(client, calls))
            done = Cleaned(
                done.looked + len(some),
                done.removed + said.count(b"removed"),
                done.mended + said.count(b"mended"),
            )
            if progress:
                progress(done)
    return done


def _expected(part: str, chosen: Plan) -> dict[str, Any]:
    """Return the required properties of a key with this last part, as arguments of mend.lua."""
    if match := _SAMPLES.fullmatch(part):
        precision, window = int(match[2]), int(match[3])
        kept_of = chosen.kept if match[1] == "samples" else chosen.histograms
        end = (window + 1) * WINDOW * precision + kept_of.get(precision, precision * chosen.samples)
        return {"kind": "hash" if end < _NO_TIME else "", "latest": end, "longest": 0, "kept": ""}
    if part in ("marks", "names", "names-families") or part.startswith("names:"):
        kept = chosen.kept[chosen.coarsest]
        return {"kind": "zset", "latest": "", "longest": kept, "kept": kept * 1_000_000}
    kind = "string" if part.startswith("source:") else ""
    return {"kind": kind, "latest": "", "longest": _HOUR, "kept": ""}
