from __future__ import annotations

import math

import pytest

from tests.support.linearizability import Operation, violation
from tests.support.lock_histories import LockState, after


def op(name: str, token: str | None, result: object, called: float, returned: float = math.inf) -> Operation:
    return Operation(name, (token,), result, called, returned)


TAKEN, RELEASED = op("acquire", "A", 1, 0, 1), op("release", "A", True, 2, 5)
FORCED = op("force", "A", True, 2, 3)
KILLED = op("acquire", "A", None, 0)


@pytest.mark.parametrize(
    ("history", "is_linearizable"),
    [
        ([TAKEN, RELEASED, op("acquire", "B", 2, 6, 7)], True),
        ([TAKEN, RELEASED, op("acquire", "B", 2, 3, 4)], True),
        ([TAKEN, RELEASED, op("acquire", "B", False, 3, 4)], True),
        ([TAKEN, RELEASED, op("acquire", "B", 1, 6, 7)], False),
        ([TAKEN, RELEASED, op("locked", None, True, 6, 7)], False),
        ([TAKEN, op("acquire", "B", 2, 2, 3), op("release", "A", True, 4, 5)], False),
        ([op("acquire", "A", False, 0, 1)], False),
        ([TAKEN, FORCED, op("force", "A", True, 4, 5), op("extend", "A", False, 6, 7)], True),
        ([TAKEN, FORCED, op("release", "A", True, 6, 7)], False),
        ([TAKEN, op("release", "A", False, 2, 3)], False),
        ([KILLED, op("locked", None, False, 1, 2), op("locked", None, True, 3, 4)], True),
        ([KILLED, op("locked", None, True, 1, 2), op("locked", None, False, 3, 4)], False),
    ],
)
def test_a_history_has_an_order_or_none(history: list[Operation], is_linearizable: bool) -> None:
    assert (violation(history, LockState(), after) is None) == is_linearizable
