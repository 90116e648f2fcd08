"""
Locks: two never surely hold a lock at once, and whoever asks later gets a higher fence.

Each holder writes to a register that refuses a fence lower than its newest, as README asks of whatever a lock guards.
"""

import sqlite3
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from itertools import accumulate, pairwise
from pathlib import Path

from components.exceptions import LockLost, RedisUnavailable
from components.kit.leases import clock
from components.services.locks import Lock, lock
from tests.chaos.players import Notes, Player, Role, note

NAMES, TIMEOUT = {"unfair": False, "fair": True}, 0.6


def prepare(folder: Path) -> None:
    with closing(register(folder)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE accepted (id INTEGER PRIMARY KEY, name TEXT, fence INTEGER)")


def register(folder: Path) -> sqlite3.Connection:
    return sqlite3.connect(folder / "register.sqlite3", timeout=20, isolation_level=None)


def write(database: sqlite3.Connection, name: str, fence: int) -> bool:
    wanted = "SELECT ?1, ?2 WHERE ?2 >= (SELECT coalesce(max(fence), 0) FROM accepted WHERE name = ?1)"
    return bool(database.execute(f"INSERT INTO accepted (name, fence) {wanted}", (name, fence)).rowcount)


def play(player: Player) -> None:
    name = list(NAMES)[player.number % 2]
    with closing(register(player.folder)) as database:
        while not player.is_over:
            try:
                hold(player, database, name, lock(name, timeout=TIMEOUT, fair=NAMES[name]))
            except RedisUnavailable:
                time.sleep(0.05)
            except LockLost:
                note("lock lost")


def hold(player: Player, database: sqlite3.Connection, name: str, held: Lock) -> None:
    asked = clock()
    if not held.acquire(blocking_timeout=player.random.choice([None, None, 0.5])):
        return
    at = clock()
    note("held", name=name, fence=held.fence, asked=asked, at=at, until=at + held.remaining)
    for _ in range(2):
        # At times for too long, as if it was stopped.
        player.nap(0.02 if player.random.random() < 0.95 else 3 * TIMEOUT)
        note("written", is_accepted=write(database, name, held.fence))
    note("released", name=name, fence=held.fence)
    held.release()


ROLES = {"locker": Role(6, play)}


def judge(notes: Notes) -> Iterator[str]:
    if not any(not each["is_accepted"] for each in notes["written"]):
        yield "The register has refused nothing: nothing was tested."
    for name in NAMES:
        held = sorted(
            (each for each in notes["held"] if each["name"] == name), key=lambda each: each["fence"]
        )
        if len(held) < 5:
            yield f"The lock {name} was held {len(held)} times only: nothing was tested."
        for fence, number in Counter(each["fence"] for each in held).items():
            if number > 1:
                yield f"{number} holders of {name} had the fence {fence}."
        released = {each["fence"]: each["at"] for each in notes["released"] if each["name"] == name}
        for first, second in pairwise(held):
            end = min(first["until"], released.get(first["fence"], first["until"]))
            if end > max(
                first["at"], second["at"]
            ):  # whoever was stopped may learn of a lock when its time is over
                yield f"{name} was surely held by two: {first}, {second}"
        by_time = sorted(held, key=lambda each: each["at"])
        times, highest = (
            [each["at"] for each in by_time],
            [0, *accumulate((each["fence"] for each in by_time), max)],
        )
        for each in held:
            if highest[bisect_left(times, each["asked"])] >= each["fence"]:
                yield f"Somebody got a higher fence of {name} before this one was asked for: {each}"


def figures(notes: Notes) -> str:
    refused = sum(not each["is_accepted"] for each in notes["written"])
    return f"held {len(notes['held'])} times, {refused} writes refused, {len(notes['lock lost'])} locks lost"
