"""The finder of locks: by name or key, if they are held; a free one by its whole name."""

from __future__ import annotations

from components.exceptions import InvalidName
from components.kit.cards import Link
from components.kit.client import get_client
from components.kit.figures import Ask
from components.kit.finders import FinderReading, Found, ask_names, best_of
from components.kit.keyspace import BUCKETS
from components.services.locks.keys import LockKeys
from components.services.locks.named import key_of
from components.templatetags.control_room import legible


def find(text: str) -> FinderReading:
    """Find locks of lock(), and the lock at the key *text*. What is stored about a free one lasts for a day."""
    buckets = [LockKeys.of_bucket(tag) for tag in BUCKETS]
    answers = yield [
        *ask_names([keys.held for keys in buckets], text, starts=[keys.lock for keys in buckets]),
        *(ask for keys in _exact(text) for ask in _asks(keys)),
    ]
    names, of_exact = answers[: len(buckets)], answers[len(buckets) :]
    found = {key_of(name): name for name in best_of(names, text)}
    for keys, is_stored, held_until in zip(_exact(text), of_exact[::2], of_exact[1::2], strict=True):
        if is_stored or held_until is not None:
            found.setdefault(keys.lock, text)
    return [Found(Link("lock", legible(name), key=key)) for key, name in found.items()]


def _exact(text: str) -> list[LockKeys]:
    """Return the keys of the lock with the name *text*, and of the lock at the key *text*."""
    try:
        return [LockKeys.named(text), LockKeys.of(text, get_client())]
    except InvalidName:  # no lock can be called that
        return []


def _asks(keys: LockKeys) -> list[Ask]:
    return [
        Ask(keys.state, lambda pipe: pipe.exists(keys.state)),
        Ask(keys.held, lambda pipe: pipe.zscore(keys.held, keys.lock)),
    ]
