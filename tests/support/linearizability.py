"""
Check a history for linearizability: is there an order of its operations, each between its call and its return, that
explains their results? It is the search of Wing and Gong with the memory of Lowe: depth first over the operations
that can be next, never twice from the same state with the same operations done. An operation without a return (its
process was killed) may have happened at any time after its call, or not at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

_State = TypeVar("_State", bound=Hashable)


@dataclass(frozen=True)
class Operation:
    """A call and its result, between two instants of a clock that all processes share."""

    name: str
    args: tuple[Any, ...]
    #: None if it is not known.
    result: Any
    called: float
    returned: float = math.inf

    def __str__(self) -> str:
        return f"{self.called:.6f} to {self.returned:.6f}: {self.name}{self.args} -> {self.result}"


def violation(
    history: Iterable[Operation],
    initial: _State,
    after: Callable[[_State, Operation], Iterable[_State]],
) -> str | None:
    """
    Return None if the *history* is linearizable; else a text that says how far it is.

    *after* returns the states to which an operation with its result may lead, or none if it cannot have that result.
    """
    operations = sorted(history, key=lambda each: each.called)
    required = sum(each.returned < math.inf for each in operations)
    # What is done: all operations before *first*, and those in *ahead*.
    todo: list[tuple[int, frozenset[int], int, _State]] = [(0, frozenset(), 0, initial)]
    seen = set(todo)
    furthest = todo[0]
    while todo:
        first, ahead, done, state = furthest_now = todo.pop()
        if done == required:
            return None
        furthest = max(furthest, furthest_now, key=lambda each: each[2])
        for index in _possible_next(operations, first, ahead):
            next_first, next_ahead = _without_prefix(first, ahead | {index})
            is_required = operations[index].returned < math.inf
            for next_state in after(state, operations[index]):
                following = (next_first, next_ahead, done + is_required, next_state)
                if following not in seen:
                    seen.add(following)
                    todo.append(following)
    return _report(operations, furthest, required)


def _possible_next(operations: Sequence[Operation], first: int, ahead: frozenset[int]) -> list[int]:
    """Return the operations that are not done, and were called before any of these had returned."""
    possible, until = [], math.inf
    for index in range(first, len(operations)):
        if operations[index].called > until:
            break
        if index not in ahead:
            possible.append(index)
            until = min(until, operations[index].returned)
    return possible


def _without_prefix(first: int, ahead: frozenset[int]) -> tuple[int, frozenset[int]]:
    beginning = first
    while first in ahead:
        first += 1
    return first, ahead - set(range(beginning, first))


def _report(
    operations: Sequence[Operation], furthest: tuple[int, frozenset[int], int, Any], required: int
) -> str:
    first, ahead, done, state = furthest
    possible = "\n  ".join(str(operations[index]) for index in _possible_next(operations, first, ahead))
    return f"{done} of {required} operations have an order; then, in {state}, none of these can be:\n  {possible}"
