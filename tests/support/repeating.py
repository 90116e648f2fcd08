"""Scripts that are sent twice, as if the reply to the first call had been lost."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from redis import Redis

from components.kit.scripts import Call, Script
from tests.support.snapshots import alike, snapshot

#: What does not change of an answer if a call is repeated, of scripts that also tell a time left or, as nobody relies
#: on it, what this call did.
LASTING: dict[str, Callable[[Any], Any]] = {
    "autocomplete/prune": type,
    "chat/attend": lambda said: said[:-1],
    "chat/charge": lambda said: said[0],
    "chat/delete": type,
    "chat/send": lambda said: said[1:3],
    "counters/mend": type,
    "locks/acquire": lambda said: said[:-1],
    "locks/extend": lambda said: said > 0,
    "logs/discard": type,
    "logs/forget": type,
    "queues/release": type,
    "queues/trim": type,
    "rows/schedule": len,
    "semaphores/acquire": lambda said: said[:-1],
}


@contextmanager
def each_script_twice(redis: Redis, *, between: Callable[[], object] | None = None) -> Iterator[set[str]]:
    """
    Send every call of a script once more, and assert that it gives the same answer and changes nothing; yield the
    names of the scripts.

    If something happens *between* the first call and its repetition, then nothing is asserted.
    """
    called: set[str] = set()
    send, pipelined, is_busy = Script._send, Script._pipelined, False

    async def twice(script: Script, ask: Callable[[], Any], *, many: bool = False) -> Any:
        nonlocal is_busy
        first = await ask()
        if is_busy:
            return first
        called.add(script.name)
        is_busy = True
        try:
            if between:
                between()
                return await ask()
            before, soon = _stored(redis), _ending(redis)
            second = await ask()
            after = _stored(redis)
            kept = {key: found for key, found in before.items() if key in after or key not in soon}
            changed = set(alike(after)) ^ set(alike(kept))
            assert not changed, f"{script.name} changes something when it is repeated: {changed}"
            for one, other in zip(first, second, strict=True) if many else [(first, second)]:
                assert lasting(script.name, one) == lasting(script.name, other), script.name
            return second
        finally:
            is_busy = between is not None  # only the first call is repeated then

    async def _send(self: Script, client: Any, keys: Sequence[str], args: Sequence[Any]) -> Any:
        return await twice(self, lambda: send(self, client, keys, args))

    async def _pipelined(self: Script, node: Any, calls: Sequence[Call]) -> Any:
        return await twice(self, lambda: pipelined(self, node, calls), many=True)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Script, "_send", _send)
        patch.setattr(Script, "_pipelined", _pipelined)
        patch.setattr(Script, "quick", lambda *_args: None)
        yield called


def _stored(redis: Redis) -> dict[bytes, Any]:
    """Return what is stored, without the use of semaphores by the minute, which is another one soon."""
    return {key: found for key, found in snapshot(redis).items() if b":use:" not in key}


def _ending(redis: Redis) -> set[bytes]:
    """Return the keys that may expire while two calls are made."""
    return {key for key in redis.keys("*") if 0 <= redis.pttl(key) < 10_000}


def lasting(script: str, answer: Any) -> Any:
    """Return what does not change of an answer."""
    if script not in LASTING:
        return [re.sub(r"\bb'(\d+)'", r"\1", line) for line in alike(answer)]
    ask = LASTING[script]
    return alike(ask(answer))
