"""
Many processes and one lock: whatever is stopped, killed, lost or restarted, the register that asks for fences never
accepts an older one after a newer, two never surely hold the lock at once, and nobody waits for the dead for long.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from components.embedded import EmbeddedServer
from components.kit.leases import clock
from components.services.locks import LockReader
from components.testing import redis_at
from tests.chaos.holders import NAME, TIMEOUT, Register
from tests.chaos.starvation import Starvation
from tests.commands.processes import Command
from tests.support.proxy import LossyProxy
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

PROCESSES = 8
HOLDS = 50  # at least
SECONDS, PATIENCE = 10.0, 60.0  # of trouble; and until it was enough, where the machine lets few run
TROUBLE = Counter({"SIGSTOP +a": 4, "SIGSTOP w": 3, "SIGKILL +a": 3, "SIGKILL w": 3})
STOPPED = 2.5 * TIMEOUT
#: Seconds after a holder's time in which the lock is somebody's: a second, of which a dead waiter takes most.
GRACE = 1.0


@dataclass(frozen=True)
class Line:
    """What a process wrote."""

    kind: str
    at: float
    starved: float
    fence: int
    valid_until: float

    @classmethod
    def read(cls, text: str) -> Line:
        kind, at, starved, fence, valid_until = text.split()
        return cls(kind, float(at), float(starved), int(fence), float(valid_until))


@dataclass(frozen=True)
class Hold:
    """From when to when a lock was surely held; `asked_at` is from when it was waited for."""

    asked_at: float
    began_at: float
    ended_at: float
    fence: int
    process: int
    #: Seconds in the life of the process until it began.
    starved: float


class Crowd:
    """The processes, and what they have written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.done: Counter[str] = Counter()
        self.killed: set[int] = set()
        self.stopped: dict[int, float] = {}
        #: When Redis was away.
        self.away: list[tuple[float, float]] = []

    def lines(self) -> dict[int, list[Line]]:
        """By process."""
        return {
            int(path.stem): [
                Line.read(line) for line in path.read_text().splitlines(keepends=True) if line[-1] == "\n"
            ]
            for path in self.folder.glob("*.log")
        }

    def kinds(self) -> Counter[str]:
        return Counter(line.kind for lines in self.lines().values() for line in lines)

    def those(self, kinds: str) -> list[int]:
        """Processes that run, and whose last line is of one of these kinds."""
        return [
            pid
            for pid, lines in self.lines().items()
            if pid not in self.killed and pid not in self.stopped and lines and lines[-1].kind in kinds
        ]

    def kill(self, kinds: str, random: random.Random) -> None:
        pid = random.choice(self.those(kinds))
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            self.killed.add(pid)
            self.done[f"SIGKILL {kinds}"] += 1

    def stop(self, kinds: str, random: random.Random) -> None:
        pid = random.choice(self.those(kinds))
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            self.stopped[pid] = clock() + STOPPED
            self.done[f"SIGSTOP {kinds}"] += 1

    def let_go_on(self, *, all_of_them: bool = False) -> None:
        for pid, until in list(self.stopped.items()):
            if all_of_them or clock() >= until:
                del self.stopped[pid]
                os.kill(pid, signal.SIGCONT)

    def holds(self) -> list[Hold]:
        """In the order of their fences."""
        found = []
        for pid, lines in self.lines().items():
            asked_at = 0.0
            for number, line in enumerate(lines):
                if line.kind == "w":
                    asked_at = line.at
                if line.kind == "+":
                    rest = [other for other in lines[number:] if other.fence == line.fence]
                    released_at = [other.at for other in rest if other.kind == "-"]
                    ended_at = min([line.valid_until, *released_at])
                    found.append(Hold(asked_at, line.at, ended_at, line.fence, pid, line.starved))
        return sorted(found, key=lambda hold: hold.fence)


@pytest.fixture
def crowd(tmp_path: Path) -> Crowd:
    folder = tmp_path / "crowd"
    folder.mkdir()
    Register(folder).prepare()
    return Crowd(folder)


@pytest.fixture
def proxy(server: EmbeddedServer) -> Iterator[LossyProxy]:
    with LossyProxy(server) as proxy:
        yield proxy


def make_trouble(server: EmbeddedServer, proxy: LossyProxy, crowd: Crowd) -> None:
    """Stop and kill holders, waiters and Redis, each at its own pace, and lose replies all the time."""
    chance, began = random.Random(5), clock()

    def is_enough() -> bool:
        kinds = crowd.kinds()
        return kinds["+"] > HOLDS and kinds["x"] > 0 and crowd.done >= TROUBLE and proxy.lost > 10

    def restart() -> None:
        away_from = clock()
        server.kill()
        time.sleep(chance.uniform(0, 0.2))
        server.start()
        crowd.away.append((away_from, clock()))

    plan: dict[Callable[[], None], float] = {restart: 3.0}  # each so many seconds
    plan |= {partial(crowd.stop, "+a", chance): 1.7, partial(crowd.stop, "w", chance): 1.1}
    plan |= {partial(crowd.kill, "+a", chance): 1.9, partial(crowd.kill, "w", chance): 0.8}
    due = {act: began + pace / 2 for act, pace in plan.items()}
    while clock() - began < SECONDS or (clock() - began < PATIENCE and not is_enough()):
        crowd.let_go_on()
        for act, pace in plan.items():
            if clock() >= due[act]:
                with suppress(IndexError):  # there is nobody: the next look finds somebody
                    act()
                    due[act] += pace
        proxy.lose_replies(to=chance.choice(["EVALSHA", "BLPOP"]), silently=chance.random() < 0.05)
        time.sleep(chance.uniform(0, 0.05))
    crowd.let_go_on(all_of_them=True)


def idle_gaps(holds: list[Hold], away: list[tuple[float, float]], starvation: Starvation) -> Iterator[float]:
    """
    For how long nobody surely held the lock, where somebody waited, Redis was there all the time, and the machine let
    the next holder run.
    """
    for hold in holds:
        starvation.note(hold.process, hold.began_at, hold.starved)
    for before, after in pairwise(sorted(holds, key=lambda hold: hold.began_at)):
        since = max(before.ended_at, after.asked_at)
        if after.began_at > since and not any(begin < after.began_at and end > since for begin, end in away):
            starved = starvation.between(since, after.began_at, after.process)
            yield max(0.0, after.began_at - since - starved)


def test_no_write_has_an_older_fence_than_one_before_it_whatever_happens(
    server: EmbeddedServer,
    proxy: LossyProxy,
    crowd: Crowd,
    record_property: Callable[[str, object], None],
) -> None:
    program = ("-m", "tests.chaos.holders")
    with (
        redis_at(server.url),
        Starvation(server, crowd.folder, proxy=proxy.thread) as starvation,
        Command(
            server.url, str(crowd.folder), str(PROCESSES), program=program, PROXY_URL=proxy.url
        ) as command,
    ):
        assert eventually(lambda: len(crowd.lines()) == PROCESSES, within=60), command.output
        make_trouble(server, proxy, crowd)
        (crowd.folder / "stop").touch()
        assert command.exit_code() == 0, command.output
        assert command.output == ""
        assert eventually(lambda: not LockReader().held(), within=TIMEOUT + GRACE)
        info = LockReader().find(NAME)

    accepted, holds = Register(crowd.folder).accepted(), crowd.holds()
    kinds = crowd.kinds()
    gaps = sorted(idle_gaps(holds, crowd.away, starvation))
    record_property(
        "figures",
        [
            ("holds", len(holds)),
            ("writes accepted, refused", f"{kinds['a']}, {kinds['x']}"),
            ("done to them", dict(crowd.done)),
            ("Redis killed", len(crowd.away)),
            ("replies lost", proxy.lost),
            ("locks lost", kinds["l"]),
            ("free though waited for, at most", f"{gaps[-1]:.2f} s"),
        ],
    )
    assert accepted == sorted(accepted)
    assert kinds["a"] <= len(accepted) <= kinds["a"] + len(crowd.killed)
    assert kinds["x"] > 0, "nobody was stopped long enough to write too late"
    assert len({hold.fence for hold in holds}) == len(holds) > HOLDS
    overlaps = [
        (before, after)
        for before, after in pairwise(holds)
        # One that was stopped until its lease was over, and knew it, has held the lock at no instant that it tells.
        if before.ended_at > before.began_at and before.ended_at > after.began_at + 1e-6
    ]
    assert not overlaps
    assert gaps[-1] < TIMEOUT + GRACE
    assert crowd.done >= TROUBLE
    assert proxy.lost > 10
    assert kinds["u"] > 0
    assert info
    assert info.waiting == 0
