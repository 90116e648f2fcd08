"""
Histories of locks, recorded by processes, a model of a lock, and a check of histories for linearizability: is there
an order of the operations, each between its call and its return, that explains their results?

It is the search of Wing and Gong with the memory of Lowe: depth first over the operations that can be next, never
twice from the same state with the same operations done. Each process writes a line to its file before it sends a
call, and another when the call has returned. A killed process leaves a call without a return, which may have happened
at any time later, or not at all. Run as a program, this module is such a process.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TypeVar

from redis.backoff import ConstantBackoff
from redis.retry import Retry

from components.exceptions import LockLost
from components.services.locks import Lock, LockReader, lock
from components.testing import redis_at

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
    history: Iterable[Operation], initial: _State, after: Callable[[_State, Operation], Iterable[_State]]
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


NAMES = ("a", "b", "c")
TIMEOUT = 1_000  # seconds: nothing runs out


class LockState(NamedTuple):
    """The state of a lock in the model."""

    holder: str | None = None
    #: No smaller than that of any holder so far.
    fence: int = 0
    #: The last holder from whom it was taken by force: who asks for that again hears again that it is done.
    forced: str | None = None


def after(state: LockState, operation: Operation) -> Iterator[LockState]:
    """Return the states to which *operation* may lead."""
    token, result = operation.args[0], operation.result
    is_holder = state.holder == token
    match operation.name:
        case "acquire" if result is None:
            yield state
            if state.holder is None:
                yield state._replace(holder=token)
        case "acquire" if result:
            if state.holder is None and result > state.fence:
                yield state._replace(holder=token, fence=result)
        case "acquire":
            if state.holder is not None:
                yield state
        case "force" if is_holder and result is not False:
            yield state._replace(holder=None, forced=token)
        case "release" if is_holder and result is not False:
            yield state._replace(holder=None)
        case "force" | "release" if not is_holder:
            is_repeated = operation.name == "force" and token == state.forced
            if result in (None, is_repeated):
                yield state
        case "force" | "release":
            pass  # it cannot have been refused
        case "extend" | "owned":
            if result in (None, is_holder):
                yield state
        case "locked":
            if result in (None, state.holder is not None):
                yield state
        case _:
            raise ValueError(operation)


def read(files: Iterator[Path]) -> dict[str, list[Operation]]:
    """Return the operations by the name of the lock."""
    histories = defaultdict(list)
    for file in files:
        calls: dict[int, list[Any]] = {}
        returns: dict[int, list[Any]] = {}
        for line in file.read_text().splitlines():
            number, *rest = json.loads(line)
            (returns if number in calls else calls)[number] = rest
        for number, (called, key, name, *args) in calls.items():
            returned, result = returns.get(number, (math.inf, None))
            histories[key].append(Operation(name, tuple(args), result, called, returned))
    return histories


class Recorder:
    """Records operations on locks."""

    def __init__(self, file: Path) -> None:
        self._file = os.open(file, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        self._number = 0

    @contextmanager
    def record(self, name: str, operation: str, *args: Any) -> Iterator[list[Any]]:
        """
        Record an operation: yield a list to which the caller appends the result. Without one the result is unknown.
        """
        self._number += 1
        number, said = self._number, list[Any]()
        self._write(number, time.monotonic(), name, operation, *args)
        yield said
        self._write(number, time.monotonic(), *said)

    def _write(self, *line: Any) -> None:
        os.write(self._file, f"{json.dumps(line)}\n".encode())


class Client:
    """A process that makes random calls on some locks."""

    def __init__(self, file: Path, seed: str, *, forces: bool) -> None:
        self._forces = forces
        self._random = Random(seed)
        self._recorder = Recorder(file)
        self._held: dict[str, Lock] = {}
        self._seed, self._tokens = seed, 0

    def act(self) -> None:
        name = self._random.choice(NAMES)
        if self._random.random() < 0.1:
            return self._look(name)
        if self._forces and self._random.random() < 0.1:
            return self._force(name)
        if name not in self._held:
            return self._acquire(name, self._random.choice([0, 0.01, 0.06]))
        if self._random.random() < 0.3:
            return self._extend(name)
        return self._release(name)

    def _acquire(self, name: str, patience: float) -> None:
        self._tokens += 1
        token, asked = f"{self._seed}-{self._tokens}", lock(name, timeout=TIMEOUT)
        with self._recorder.record(name, "acquire", token) as said:
            is_granted = asked.acquire(blocking_timeout=patience, token=token)
            said.append(asked.fence if is_granted else False)
        if said[0]:
            self._held[name] = asked

    def _extend(self, name: str) -> None:
        held = self._held[name]
        with self._recorder.record(name, "extend", held.local.token.decode()) as said:
            try:
                said.append(held.extend(1))
            except LockLost:
                said.append(False)

    def _release(self, name: str) -> None:
        held = self._held.pop(name)
        with self._recorder.record(name, "release", held.local.token.decode()) as said:
            try:
                held.release()
                said.append(True)
            except LockLost:
                said.append(False)

    def _look(self, name: str) -> None:
        held = self._held.get(name)
        if held is None:
            with self._recorder.record(name, "locked", None) as said:
                said.append(lock(name).locked())
        else:
            with self._recorder.record(name, "owned", held.local.token.decode()) as said:
                said.append(held.owned())

    def _force(self, name: str) -> None:
        """Release the lock of its present holder by force, as the admin does."""
        info = LockReader().find(name)
        if info and info.is_held:
            with self._recorder.record(name, "force", info.token) as said:
                said.append(LockReader().force_release(info.key, info.token, info.fence))


def main(url: str, client_class: str, file: Path, calls: int, *, forces: bool) -> None:
    # What is not answered is sent again: that nothing happens twice is the lock's affair.
    retries = {"retry": Retry(ConstantBackoff(0.001), 10)}
    with redis_at(url, CLIENT_CLASS=client_class, CONNECTION_POOL_KWARGS=retries):
        client = Client(file, seed=file.stem, forces=forces)
        for _ in range(calls):
            client.act()


if __name__ == "__main__":
    url, client_class, file, calls, *more = sys.argv[1:]
    main(url, client_class, Path(file), int(calls), forces="forces" in more)
