"""What is loaded: names by second, processor time and bytes for each; selections, and contacts of a person."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from benchmarks.bench import Bench
from benchmarks.completing import names
from components.services.autocomplete import AddressBook, RecentContacts

_CONTACTS, _USERS = 100, 500


@dataclass(frozen=True)
class Load:
    """All but the rate is for each name; times in microseconds."""

    rate: float
    client_cpu: float
    server_cpu: float
    #: Of Redis, ids and labels included; and what these are.
    bytes: float
    text: float


def load(bench: Bench, entries: Sequence[tuple[int, str]], what: Callable[[], object]) -> Load:
    """*what* loads them into an empty server, which knows the scripts."""
    book = AddressBook("warm-up")
    book.load(entries[:1_000], replace=True)
    book.erase()
    forget_calls(bench)
    empty = bench.memory()
    before, cpu, began = bench.work(), time.process_time(), time.monotonic()
    what()
    took, cpu = time.monotonic() - began, time.process_time() - cpu
    work, count = bench.work() - before, len(entries)
    forget_calls(bench)
    text = sum(len(str(one)) + len(label.encode()) for one, label in entries)
    return Load(
        count / took,
        cpu / count * 1e6,
        work.cpu / count,
        (bench.memory() - empty) / count,
        text / count,
    )


def select(bench: Bench, book: AddressBook, count: int, most: int) -> float:
    """Select *count* times, few often and many once; bytes of Redis for each that was selected."""
    chosen, empty = Random(6), bench.memory()
    ids = {min(most, int(chosen.paretovariate(0.5))) * 7919 % most + 1 for _ in range(count)}
    for one in ids:
        book.select(one)
    forget_calls(bench)
    return (bench.memory() - empty) / len(ids)


def forget_calls(bench: Bench) -> None:
    """What scripts were answered, which they know for a minute."""
    for key in bench.redis.scan_iter(match="*:calls:*", count=1_000):
        bench.redis.unlink(key)


def contacts(bench: Bench) -> tuple[float, float]:
    """Bytes of a person who has as many contacts as are kept, and those of the names in there."""
    known = [(f"user-{one:04}", label) for one, label in names.entries(_CONTACTS)]
    empty = bench.memory()
    for number in range(_USERS):
        recent = RecentContacts(f"person-{number}")
        for one, label in known:
            recent.touch(one, label=label)
    text = sum(len(one) + len(label.encode()) for one, label in known)
    return (bench.memory() - empty) / _USERS, text
