from __future__ import annotations

import math

import pytest

from tests.support.linearizability import Operation, violation
from tests.support.lock_histories import LockState, after


def op(name: str, token: str | None, result: object, called: float, returned: float = math.inf) -> Operation:
    return Operation(name, (token,), result, called, returned)


def is_linearizable(*history: Operation) -> bool:
    return violation(history, LockState(), after) is None


def test_nothing_has_an_order() -> None:
    assert is_linearizable()


def test_one_after_the_other() -> None:
    assert is_linearizable(
        op("acquire", "A", 1, 0, 1), op("release", "A", True, 2, 3), op("acquire", "B", 2, 4, 5)
    )


def test_two_holders_at_a_time_have_no_order() -> None:
    assert not is_linearizable(
        op("acquire", "A", 1, 0, 1), op("acquire", "B", 2, 2, 3), op("release", "A", True, 4, 5)
    )


def test_operations_at_the_same_time_may_have_happened_either_way() -> None:
    released = op("release", "A", True, 2, 5)

    assert is_linearizable(op("acquire", "A", 1, 0, 1), released, op("acquire", "B", 2, 3, 4))
    assert is_linearizable(op("acquire", "A", 1, 0, 1), released, op("acquire", "B", False, 3, 4))


def test_the_order_of_what_does_not_overlap_counts() -> None:
    first, second = op("acquire", "A", 1, 0, 1), op("release", "A", True, 2, 3)

    assert is_linearizable(first, second, op("locked", None, False, 4, 5))
    assert not is_linearizable(first, second, op("locked", None, True, 4, 5))


def test_fences_grow() -> None:
    released = op("release", "A", True, 2, 3)

    assert is_linearizable(op("acquire", "A", 5, 0, 1), released, op("acquire", "B", 6, 4, 5))
    assert not is_linearizable(op("acquire", "A", 5, 0, 1), released, op("acquire", "B", 5, 4, 5))


def test_a_refusal_needs_a_holder() -> None:
    assert not is_linearizable(op("acquire", "A", False, 0, 1))


@pytest.mark.parametrize("name", ["release", "force"])
def test_a_removed_key_existed_and_is_gone(name: str) -> None:
    taken = op("acquire", "A", 1, 0, 1)

    assert is_linearizable(taken, op(name, "A", True, 2, 3), op("extend", "A", False, 4, 5))
    assert not is_linearizable(taken, op(name, "A", True, 2, 3), op("extend", "A", True, 4, 5))
    assert not is_linearizable(taken, op(name, "A", False, 2, 3))
    assert not is_linearizable(taken, op(name, "B", True, 2, 3))


def test_a_force_that_is_asked_for_again_is_told_again_that_it_is_done() -> None:
    history = [op("acquire", "A", 1, 0, 1), op("force", "A", True, 2, 3), op("force", "A", True, 4, 5)]

    assert is_linearizable(*history)
    assert not is_linearizable(*history, op("release", "A", True, 6, 7))


def test_a_killed_caller_may_have_done_it_or_not_and_late() -> None:
    killed = op("acquire", "A", None, 0)

    assert is_linearizable(killed, op("locked", None, True, 1, 2))
    assert is_linearizable(killed, op("locked", None, False, 1, 2))
    assert is_linearizable(killed, op("locked", None, False, 1, 2), op("locked", None, True, 3, 4))
    assert not is_linearizable(
        killed,
        op("locked", None, True, 1, 2),
        op("locked", None, False, 3, 4),
        op("locked", None, True, 5, 6),
    )


def test_a_long_history_with_much_at_the_same_time_is_searched_in_time() -> None:
    history = []
    for number in range(500):
        begin = number * 10.0
        history += [op("acquire", f"{number}", number + 1, begin, begin + 8)]
        history += [op("acquire", f"{number}.{other}", False, begin, begin + 9) for other in range(6)]
        history += [op("release", f"{number}", True, begin + 8.5, begin + 9.5)]

    assert is_linearizable(*history)
    assert not is_linearizable(*history, op("locked", None, True, 4_999.6, 4_999.7))


def test_the_report_says_how_far_it_went_and_what_cannot_be() -> None:
    found = violation(
        [op("acquire", "A", 1, 0, 1), op("acquire", "B", 2, 2, 3), op("release", "A", True, 4, 5)],
        LockState(),
        after,
    )

    assert found
    assert "1 of 3 operations" in found
    assert "acquire('B',) -> 2" in found
    assert "release" not in found
