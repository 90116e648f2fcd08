"""Where Redis does not answer, each call for logs says so by the one error that callers wait and try again for."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from components.exceptions import RedisUnavailable
from components.services.logs import (
    Aggregation,
    Chunk,
    LogStream,
    Place,
    Sample,
    WorkerRecord,
    dead_chunks,
    list_jobs,
    look_at,
    note_job,
)
from components.services.logs.traffic import Traffic
from tests.support.logs import FILE, blocks

CHUNK = Chunk("1-0", 1, "a.log", 0, 100, 1, 2)
AGGREGATION = Aggregation("geo")
STREAM = LogStream()

CALLS: dict[str, Callable[[], Any]] = {
    "note": lambda: note_job("default"),
    "recognise": lambda: STREAM.recognise(b"a line", "a.log", is_exact=True),
    "append": lambda: STREAM.append(FILE, blocks(1)[0], name="a.log"),
    "finish": lambda: STREAM.finish(FILE, Place(1, 1, "-"), after=0, name="a.log", size=1, state="done"),
    "files": lambda: list(STREAM.files()),
    "status": STREAM.status,
    "join": AGGREGATION.join,
    "leave": AGGREGATION.leave,
    "dead": AGGREGATION.dead,
    "resend": lambda: AGGREGATION.resend(["1-0"]),
    "discard": lambda: AGGREGATION.discard(["1-0"]),
    "samples": AGGREGATION.samples,
    "workers": AGGREGATION.workers,
    "table": lambda: AGGREGATION.table("days"),
    "claim": lambda: AGGREGATION.consumer().claim(),
    "wait": lambda: AGGREGATION.consumer().wait(1),
    "read": lambda: AGGREGATION.consumer().read(CHUNK),
    "release": lambda: AGGREGATION.consumer().release(),
    "now": lambda: AGGREGATION.consumer().now(),
    "is_drained": lambda: AGGREGATION.consumer().is_drained(),
    "days": lambda: Traffic().days(),
    "report": lambda: Traffic().report(first=date(2011, 1, 1), last=date(2011, 1, 2)),
    "totals": lambda: Traffic().totals(),
    "forget": lambda: STREAM.forget(1),
    "list": list_jobs,
    "look": lambda: look_at("default"),
    "dead chunks": lambda: dead_chunks("default", "geo"),
    "tell": lambda: AGGREGATION.consumer().tell(WorkerRecord("host")),
    "drop": lambda: AGGREGATION.drop(["days"]),
    "sample": lambda: AGGREGATION.consumer().sample([Sample("date", "a.log", 1, 0, "")]),
}


@pytest.mark.parametrize("call", CALLS)
def test_each_call_says_that_redis_does_not_answer(call: str) -> None:
    with pytest.raises(RedisUnavailable):
        CALLS[call]()
