"""
Many processes and one semaphore: whatever is killed, lost or restarted, and whatever their clocks show, no more hold
a permit than may, and what the dead held comes back.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from components.embedded import EmbeddedServer
from components.kit.leases import clock
from components.services.semaphores import Semaphore
from components.services.semaphores.keys import SemaphoreKeys
from components.testing import redis_at
from tests.chaos.sharers import LEASE, LIMIT, NAME
from tests.chaos.starvation import Starvation
from tests.commands.processes import Command
from tests.support.proxy import LossyProxy
from tests.support.semaphores import queued
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

PROCESSES = 16
PERMITS = 100  # at least
SECONDS, PATIENCE = 8.0, 60.0  # of trouble; and until it was enough, where the machine lets few run
KILLED = Counter(holding=5, waiting=4)
FORGOTTEN = 6.0  # seconds after the last heartbeat of a dead waiter, in which all of it is gone
RECOVERY = 1.0  # seconds after the end of its lease, in which a dead holder's permit is somebody else's


@dataclass(frozen=True)
class Line:
    """What a process wrote."""

    kind: str
    at: float
    starved: float
    permit: str
    valid_until: float

    @classmethod
    def read(cls, text: str) -> Line:
        kind, at, starved, rest = text.split(" ", 3)
        permit, valid_until = rest.rsplit(" ", 1)
        return cls(kind, float(at), float(starved), permit, float(valid_until))


class Crowd:
    """The processes, and what they have written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.killed: dict[int, tuple[str, float]] = {}

    def lines(self) -> dict[int, list[Line]]:
        """By process."""
        return {
            int(path.stem): [
                Line.read(line) for line in path.read_text().splitlines(keepends=True) if line[-1] == "\n"
            ]
            for path in self.folder.glob("*.log")
        }

    def those(self, *kinds: str) -> list[int]:
        """The living whose last line is of one of these kinds."""
        return [
            pid
            for pid, lines in self.lines().items()
            if pid not in self.killed and lines and lines[-1].kind in kinds
        ]

    def kill(self, pid: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            [*_before, last] = self.lines()[pid]
            self.killed[pid] = "holding" if last.kind in "+r" else "waiting", clock()

    def holds(self) -> list[tuple[float, float]]:
        """From when to when each permit was surely held: to its release, or as long as its holder may believe."""
        spans: dict[str, tuple[float, float]] = {}
        for lines in self.lines().values():
            for line in lines:
                if line.kind in "+r":
                    spans[line.permit] = spans.get(line.permit, (line.at, 0.0))[0], line.valid_until
                elif line.kind == "-":
                    began, valid_until = spans[line.permit]
                    spans[line.permit] = began, min(line.at, valid_until)
        return list(spans.values())


def most_at_once(spans: list[tuple[float, float]]) -> int:
    now = most = 0
    # What ends at an instant has ended before what begins at it.
    for _at, change in sorted([(began, 1) for began, _ in spans] + [(ended, -1) for _, ended in spans]):
        now += change
        most = max(most, now)
    return most


@pytest.fixture
def crowd(tmp_path: Path) -> Crowd:
    folder = tmp_path / "crowd"
    folder.mkdir()
    return Crowd(folder)


@pytest.fixture
def proxy(server: EmbeddedServer) -> Iterator[LossyProxy]:
    with LossyProxy(server) as proxy:
        yield proxy


@pytest.fixture
def semaphore(server: EmbeddedServer) -> Iterator[Semaphore]:
    with redis_at(server.url):
        yield Semaphore(NAME, limit=LIMIT, lease=LEASE)


def sharers(server: EmbeddedServer, crowd: Crowd, act: str, **environment: str) -> Command:
    program = ("-m", "tests.chaos.sharers")
    return Command(server.url, str(crowd.folder), act, str(PROCESSES), program=program, **environment)


def make_trouble(server: EmbeddedServer, proxy: LossyProxy, crowd: Crowd) -> None:
    """Kill holders, waiters and Redis, each at its own pace, and lose replies all the time."""
    chance, began = random.Random(5), clock()

    def is_enough() -> bool:
        killed = Counter(how for how, _at in crowd.killed.values())
        return len(crowd.holds()) > PERMITS and killed >= KILLED and proxy.lost > 10

    def restart() -> None:
        server.kill()
        time.sleep(chance.uniform(0, 0.2))
        server.start()

    def kill(kinds: str) -> None:
        crowd.kill(chance.choice(crowd.those(*kinds)))

    plan = {restart: 2.0, partial(kill, "+r"): 0.5, partial(kill, "w"): 1.0}  # each so many seconds
    due = {act: began + pace / 2 for act, pace in plan.items()}
    while clock() - began < SECONDS or (clock() - began < PATIENCE and not is_enough()):
        for act, pace in plan.items():
            if clock() >= due[act]:
                with suppress(IndexError):  # nobody is there to be killed: the next look finds somebody
                    act()
                    due[act] += pace
        proxy.lose_replies(to=chance.choice(["EVALSHA", "BLPOP"]), silently=chance.random() < 0.05)
        time.sleep(chance.uniform(0, 0.1))


def test_no_more_hold_a_permit_than_may_whatever_happens(
    server: EmbeddedServer,
    proxy: LossyProxy,
    semaphore: Semaphore,
    crowd: Crowd,
    record_property: Callable[[str, object], None],
) -> None:
    with sharers(server, crowd, "share", PROXY_URL=proxy.url) as command:
        assert eventually(lambda: len(crowd.lines()) == PROCESSES, within=60), command.output
        make_trouble(server, proxy, crowd)
        (crowd.folder / "stop").touch()
        assert command.exit_code() == 0, command.output

    spans, kinds = crowd.holds(), Counter(line.kind for lines in crowd.lines().values() for line in lines)
    killed = Counter(how for how, _at in crowd.killed.values())
    record_property(
        "figures",
        [
            ("permits", len(spans)),
            ("most at once", most_at_once(spans)),
            ("killed while holding, waiting", f"{killed['holding']}, {killed['waiting']}"),
            ("replies lost", proxy.lost),
            ("requests told that Redis is away", kinds["u"]),
            ("permits lost", kinds["l"]),
        ],
    )
    assert most_at_once(spans) == LIMIT
    assert len(spans) > PERMITS
    assert killed >= KILLED
    assert proxy.lost > 10
    assert kinds["u"] > 0
    assert command.output == ""
    assert eventually(lambda: semaphore.info().used == 0, within=LEASE + RECOVERY)
    assert semaphore.info().waiting == 0


def test_permits_of_killed_holders_are_taken_within_a_lease_and_a_second(
    server: EmbeddedServer, semaphore: Semaphore, crowd: Crowd
) -> None:
    with redis_at(server.url) as redis, Starvation(server, crowd.folder) as starvation:
        mine = [semaphore.acquire(auto_renewal=True) for _ in range(LIMIT)]
        with sharers(server, crowd, "queue") as command:
            assert eventually(lambda: command.children, within=60)
            for number in range(PROCESSES):
                (crowd.folder / f"go-{number}").touch()
            assert eventually(lambda: len(queued(redis, NAME)) == PROCESSES, within=60), command.output
            head, *others = queued(redis, NAME)
            # As if who holds had been killed; and of those who wait, the first is.
            for permit in mine:
                permit.drop()
            crowd.kill(int(head.split("/")[3]))

            assert command.exit_code() == 0, command.output
    grants = {pid: line for pid, lines in crowd.lines().items() for line in lines if line.kind == "+"}
    for pid, line in grants.items():
        starvation.note(pid, line.at, line.starved)
    granted = sorted((line.at, pid) for pid, line in grants.items())
    assert len(granted) == len(others)
    assert granted[0][0] >= min(permit.valid_until for permit in mine)
    ended_at, taken_at = max(permit.valid_until for permit in mine), granted[LIMIT - 1][0]
    starved = starvation.between(ended_at, taken_at, *(pid for _at, pid in granted[:LIMIT]))
    assert taken_at - starved <= ended_at + RECOVERY


def test_waiters_are_served_in_order_and_the_dead_among_them_hold_nobody_up(
    server: EmbeddedServer, semaphore: Semaphore, crowd: Crowd
) -> None:
    semaphore.set_limit(1)
    with ExitStack() as stack, redis_at(server.url) as redis:
        mine = stack.enter_context(semaphore.acquire(auto_renewal=True))
        command = stack.enter_context(sharers(server, crowd, "queue"))
        assert eventually(lambda: command.children, within=60)
        order = []
        for number in range(PROCESSES):
            (crowd.folder / f"go-{number}").touch()
            assert eventually(lambda expected=number + 1: len(queued(redis, NAME)) == expected)
            order.append(queued(redis, NAME)[-1])
        assert queued(redis, NAME) == order
        pids = [int(waiter.split("/")[3]) for waiter in order]
        for pid in pids[::3]:
            crowd.kill(pid)
        mine.release()

        assert command.exit_code() == 0, command.output
    lines = crowd.lines()
    served = {line.at: pid for pid in pids for line in lines[pid] if line.kind == "+"}
    assert [served[at] for at in sorted(served)] == [pid for pid in pids if pid not in crowd.killed]
    # The last in the queue was killed, too, and may count as alive when all others are through: nobody comes after.
    assert eventually(lambda: redis_is_clean(server), within=FORGOTTEN)


def redis_is_clean(server: EmbeddedServer) -> bool:
    keys = SemaphoreKeys(NAME)
    with redis_at(server.url) as redis:
        return not redis.exists(keys.holders, keys.heavy, keys.since, keys.queue, keys.beats)
