"""The verdict on cached rows finds what it is to find: each promise is broken once, in invented notes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.stocks import plan
from tests.chaos.stocks.verdict import Verdict

pytestmark = pytest.mark.slow

ROW = 60  # on no schedule: good for a second
SCHEDULED = 1

#: Of one row: written at 10 and 20, deleted at 30, written at 40, each in 0.1 s.
WRITES = [("a", 1, False, 10.0), ("b", 2, False, 20.0), ("c", 3, True, 30.0), ("d", 4, False, 40.0)]


def judge(folder: Path, *notes: dict[str, Any], row: int = ROW, **end: Any) -> list[str]:
    """The complaints about these notes."""
    lines = list(notes)
    for attempt, _number, _is_deletion, at in WRITES:
        for kind, instant in (("locked", at - 0.1), ("committing", at), ("committed", at + 0.1)):
            lines.append({"kind": kind, "attempt": attempt, "row": row, "at": instant})
    (folder / "reader.1.notes").write_text("".join(json.dumps(line) + "\n" for line in lines))
    changes = [(attempt, row, number, is_deletion) for attempt, number, is_deletion, _at in WRITES]
    known = {"is_settled": True, "there": list(plan.ROWS), "scheduled": list(plan.DELAYS), "changes": changes}
    (folder / "end.json").write_text(json.dumps({**known, **end}))
    return Verdict(folder).complaints


def read(began: float, number: int | None, way: str = "fresh", row: int = ROW) -> dict[str, Any]:
    return {"kind": "read", "way": way, "began": began, "at": began + 0.01, "rows": {row: number}}


GOOD = [
    [read(9, 0), read(10.5, 0), read(10.505, 1), read(10.8, 1)],
    [read(20.5, 1), read(20.7, 2), read(25, 2)],
    [read(30.5, 2), read(30.6, None), read(39, None), read(40.5, None), read(40.6, 4)],
    [read(29, 0, "stale"), read(35, 1, "stale")],
    [{"kind": "invalidated", "row": ROW, "began": 10.05, "at": 10.2}, read(10.3, 0)],
]
BAD = {
    "though 1 had been seen": [read(10.3, 1), read(10.5, 0)],
    "though 2 had been seen": [read(29, 2, "stale"), read(35, 0, "stale")],
    "though 4 had been seen": [read(40.2, 4), read(40.5, 2)],
    "though 1 had been told": [{"kind": "invalidated", "row": ROW, "began": 10.2, "at": 10.3}, read(10.4, 0)],
    "though 2 was committed longer ago": [read(21.2, 1)],
    "though 1 was committed longer ago": [read(10.4, 0, "young")],
    "which nobody had committed": [read(9, 1)],
    "was not deleted since 2 was seen": [read(20.5, 2), read(20.6, None)],
    "was not deleted since 4 was seen": [read(40.2, 4), read(40.3, None)],
    "too old to be missed": [read(42, None)],
}


@pytest.mark.parametrize("notes", GOOD)
def test_an_allowed_value_raises_no_complaint(tmp_path: Path, notes: list[dict[str, Any]]) -> None:
    assert judge(tmp_path, *notes) == []


@pytest.mark.parametrize("says", BAD)
def test_a_forbidden_value_is_a_complaint(tmp_path: Path, says: str) -> None:
    [complaint] = judge(tmp_path, *BAD[says])

    assert says in complaint


def test_how_all_stands_at_the_end_is_judged(tmp_path: Path) -> None:
    scheduled = {"kind": "scheduled", "row": SCHEDULED, "began": 41.0, "at": 41.1}
    others = [row for row in plan.DELAYS if row != SCHEDULED]

    assert "has not come to be" in judge(tmp_path, is_settled=False)[0]
    assert f"[{ROW}] are on the schedule" in judge(tmp_path, scheduled=[*plan.DELAYS, ROW])[0]
    assert (
        f"[{SCHEDULED}] are on the schedule"
        in judge(tmp_path, there=[row for row in plan.ROWS if row != SCHEDULED])[0]
    )
    assert "no longer on the schedule" in judge(tmp_path, scheduled=others)[0]
    # Deleted and created again: whether it must be there depends on whether it was scheduled afterwards.
    assert judge(tmp_path, row=SCHEDULED, scheduled=others) == []
    assert "no longer on the schedule" in judge(tmp_path, scheduled, row=SCHEDULED, scheduled=others)[0]
