"""
Holders and waiters that are stopped for longer than the lock's time, or killed; Redis killed, or emptied, under them.

A holder that was stopped goes on when another holds the lock. No lock can prevent that; its fence does.
"""

from __future__ import annotations

import signal
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import accumulate, pairwise
from pathlib import Path
from statistics import median
from subprocess import Popen
from typing import Any

import psutil
import pytest
from redis import Redis

from components.embedded import EmbeddedServer
from components.kit.leases import Holder, clock
from components.services.locks import lock
from components.services.locks.drop_ins import ALIVE, BEAT
from components.services.locks.keys import LockKeys
from components.testing import redis_at
from tests.chaos import lockers
from tests.chaos.lockers import TIMEOUT, Acquisition, locker
from tests.chaos.register import Register
from tests.chaos.starvation import Starvation
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

LOCKERS = 4
ROUNDS = 2
LONGEST_WAIT = 1.0  # seconds beyond the rest of the holder's time
WOKEN = (
    BEAT / 10
)  # seconds after a release in which a waiter has it, since it was woken; otherwise it is half a beat


@pytest.fixture
def register(tmp_path: Path) -> Iterator[Register]:
    with Register(tmp_path) as register:
        yield register


@pytest.fixture
def redis(server: EmbeddedServer) -> Iterator[Redis]:
    with redis_at(server.url) as client:
        yield client


class Nemesis:
    """What happens to them; each returns when they are at work again."""

    def __init__(
        self, stack: ExitStack, server: EmbeddedServer, register: Register, folder: Path, *, fair: bool
    ) -> None:
        self._stack, self._server, self._register = stack, server, register
        self._folder, self._is_fair = folder, fair
        self._processes: dict[int, Popen[bytes]] = {}
        #: When Redis was there again, or was emptied.
        self.back_at: list[float] = []
        for _ in range(LOCKERS):
            self.start()
        assert eventually(lambda: len({write.process for write in register.writes}) == LOCKERS, within=60)

    def start(self) -> None:
        process = self._stack.enter_context(locker(self._server.url, self._folder, "a", fair=self._is_fair))
        self._processes[process.pid] = process

    def stop_the_holder(self) -> None:
        """For longer than its lock's time, while others get it."""
        stopped = self._register.strike(signal.SIGSTOP)
        self.others_write(stopped)
        self._processes[stopped].send_signal(signal.SIGCONT)
        before = len(self._register.writes)
        assert eventually(lambda: any(w.process == stopped for w in self._register.writes[before:]))

    def kill_the_holder(self) -> None:
        killed = self._register.strike(signal.SIGKILL)
        self.start()
        self.others_write(killed)

    def kill_a_waiter(self) -> None:
        """All but one wait, most of the time."""
        last = self._register.writes[-1].process
        process = next(each for pid, each in self._processes.items() if pid != last and each.poll() is None)
        process.kill()
        self.start()
        self.others_write(process.pid)

    def kill_redis(self) -> None:
        self._server.kill()
        self._server.start()
        self.back_at.append(clock())
        self.others_write()

    def empty_redis(self) -> None:
        with Redis.from_url(self._server.url) as client:
            client.flushall()
        self.back_at.append(clock())
        self.others_write()

    def others_write(self, *but: int) -> None:
        """Wait until others than those have written what was accepted."""
        before = len(self._register.writes)
        assert eventually(
            lambda: any(w.is_accepted and w.process not in but for w in self._register.writes[before:])
        )


@pytest.mark.parametrize("fair", [False, True], ids=["unfair", "fair"])
def test_no_write_is_accepted_with_a_lower_fence_than_one_before(
    server: EmbeddedServer, register: Register, tmp_path: Path, record_property: Any, fair: bool
) -> None:
    with ExitStack() as stack:
        starvation = stack.enter_context(Starvation(server, tmp_path))
        nemesis = Nemesis(stack, server, register, tmp_path, fair=fair)
        for _ in range(ROUNDS):
            nemesis.stop_the_holder()
            nemesis.kill_the_holder()
            nemesis.kill_redis()
            nemesis.kill_a_waiter()
            nemesis.empty_redis()

    acquired = lockers.read(tmp_path)
    accepted = [write for write in register.writes if write.is_accepted]
    refused = [write for write in register.writes if not write.is_accepted]
    for each in acquired:
        starvation.note(each.process, each.got_at, each.starved)
    gaps = list(free_times(acquired, nemesis.back_at, starvation))
    woken = [gap for gap, is_woken in gaps if is_woken]
    longest = max(gap for gap, _is_woken in gaps)
    record_property(
        "figures",
        [
            ("acquisitions", len(acquired)),
            ("writes accepted, refused", f"{len(accepted)}, {len(refused)}"),
            ("nobody took a free lock for at most", f"{longest:.3f} s"),
            ("nor a released one, half of the times", f"{median(woken):.3f} s"),
        ],
    )
    assert all(first.fence <= second.fence for first, second in pairwise(accepted))
    assert len({write.fence for write in register.writes}) == len(
        {(write.process, write.acquisition) for write in register.writes}
    )
    assert len(refused) >= ROUNDS  # those who were stopped
    assert late_with_a_lower_fence(acquired) == []
    assert longest < LONGEST_WAIT
    assert median(woken) < WOKEN


def late_with_a_lower_fence(acquired: list[Acquisition]) -> list[Acquisition]:
    """Those who asked when somebody had got the lock already whose fence is not lower."""
    by_time = sorted(acquired, key=lambda each: each.got_at)
    times = [each.got_at for each in by_time]
    highest = [0, *accumulate((each.fence for each in by_time), max)]
    return [each for each in acquired if highest[bisect_left(times, each.asked_at)] >= each.fence]


def free_times(
    acquired: list[Acquisition], back_at: list[float], starvation: Starvation
) -> Iterator[tuple[float, bool]]:
    """
    For how many seconds the lock was free and waited for before each acquisition, although the machine let the next
    holder run; and whether that one had waited for the release.
    """
    for first, second in pairwise(acquired):
        free_at = first.released_at or first.got_at + TIMEOUT
        back = max((at for at in back_at if at <= second.got_at), default=0.0)
        waited_from = min(each.asked_at for each in acquired if each.got_at >= second.got_at)
        begin = max(free_at, back, waited_from)
        starved = starvation.between(begin, second.got_at, second.process)
        yield (
            max(0.0, second.got_at - begin - starved),
            begin == first.released_at and second.asked_at < begin,
        )


def test_a_fair_lock_serves_in_the_order_in_which_redis_has_heard_of_them(
    server: EmbeddedServer, redis: Redis, register: Register, tmp_path: Path
) -> None:
    """
    The dead are left out; one that was not heard of, since it was stopped, comes last. So may those come that the
    machine let wait for longer than a waiter may be silent.
    """
    queue, beats = LockKeys.named("a").queue, LockKeys.named("a").beats
    holder = lock("a", timeout=None)
    holder.acquire()
    with ExitStack() as stack:
        starvation = stack.enter_context(Starvation(server, tmp_path))
        waiters = [
            stack.enter_context(locker(server.url, tmp_path, "a", times=1, fair=True)) for _ in range(6)
        ]
        assert eventually(lambda: redis.zcard(queue) == len(waiters), within=60)
        noted_at = clock()
        noted = [Holder.of(token.decode()).process for token in redis.zrange(queue, 0, -1)]
        stopped, killed = noted[1], [noted[0], noted[4]]
        for pid in killed:
            psutil.Process(pid).kill()
        psutil.Process(stopped).suspend()
        living = [pid for pid in noted if pid not in (*killed, stopped)]
        # Their heartbeats clear the dead away.
        assert eventually(lambda: set(processes(redis, queue)) == set(processes(redis, beats)) == set(living))

        holder.release()
        assert eventually(lambda: len(register.writes) == 2 * len(living))
        psutil.Process(stopped).resume()
        assert eventually(lambda: len(register.writes) == 2 * len(living) + 2)

    served = lockers.read(tmp_path)
    for each in served:
        starvation.note(each.process, each.got_at, each.starved)
    heard_of = [
        pid for pid in living if starvation.between(noted_at, served[-1].got_at, pid) < ALIVE / 1e6 - BEAT
    ]
    assert {each.process for each in served} == {*living, stopped}
    assert [each.process for each in served if each.process in heard_of] == heard_of
    assert served[-1].process == stopped
    assert all(write.is_accepted for write in register.writes)


def processes(redis: Redis, waiters: str) -> list[int | None]:
    """Return those who wait, by the queue or by the heartbeats."""
    return [Holder.of(token.decode()).process for token in redis.zrange(waiters, 0, -1)]
