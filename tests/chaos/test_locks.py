"""
Holders and waiters that are stopped for longer than the lock's time, or killed; Redis killed, or emptied, under them.

A holder that was stopped goes on when another holds the lock. No lock can prevent that; its fence does.
"""

from __future__ import annotations

import signal
import time
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import accumulate, pairwise
from pathlib import Path
from subprocess import Popen
from typing import Any

import psutil
import pytest
from redis import Redis

from components.embedded import EmbeddedServer
from components.kit.leases import Holder
from components.services.locks import lock
from components.services.locks.keys import LockKeys
from components.testing import redis_at
from tests.chaos import lockers
from tests.chaos.lockers import TIMEOUT, Acquisition, locker
from tests.chaos.register import Register
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

LOCKERS = 4
ROUNDS = 3
LONGEST_WAIT = 1.0  # seconds beyond the rest of the holder's time


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

    def __init__(self, stack: ExitStack, server: EmbeddedServer, register: Register, folder: Path) -> None:
        self._stack, self._server, self._register, self._folder = stack, server, register, folder
        self._processes: dict[int, Popen[bytes]] = {}
        #: When Redis was there again, or was emptied.
        self.back_at: list[float] = []
        for _ in range(LOCKERS):
            self.start()
        assert eventually(lambda: len({write.process for write in register.writes}) == LOCKERS)

    def start(self) -> None:
        process = self._stack.enter_context(locker(self._server.url, self._folder, "a"))
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
        self.back_at.append(time.monotonic())
        self.others_write()

    def empty_redis(self) -> None:
        with Redis.from_url(self._server.url) as client:
            client.flushall()
        self.back_at.append(time.monotonic())
        self.others_write()

    def others_write(self, *but: int) -> None:
        """Wait until others than those have written what was accepted."""
        before = len(self._register.writes)
        assert eventually(
            lambda: any(w.is_accepted and w.process not in but for w in self._register.writes[before:])
        )


def test_no_write_is_accepted_with_a_lower_fence_than_one_before(
    server: EmbeddedServer, redis: Redis, register: Register, tmp_path: Path, record_property: Any
) -> None:
    with ExitStack() as stack:
        nemesis = Nemesis(stack, server, register, tmp_path)
        for _ in range(ROUNDS):
            nemesis.stop_the_holder()
            nemesis.kill_the_holder()
            nemesis.kill_redis()
            nemesis.kill_a_waiter()
            nemesis.empty_redis()

    acquired = lockers.read(tmp_path)
    accepted = [write for write in register.writes if write.is_accepted]
    refused = [write for write in register.writes if not write.is_accepted]
    gaps = [gap(first, second, nemesis.back_at) for first, second in pairwise(acquired)]
    record_property(
        "figures",
        [
            ("acquisitions", len(acquired)),
            ("writes accepted, refused", f"{len(accepted)}, {len(refused)}"),
            ("longest time for which nobody took a free lock", f"{max(gaps):.3f} s"),
        ],
    )
    assert all(first.fence <= second.fence for first, second in pairwise(accepted))
    assert len({write.fence for write in register.writes}) == len(
        {(write.process, write.acquisition) for write in register.writes}
    )
    assert len(refused) >= ROUNDS  # those who were stopped
    assert late_with_a_lower_fence(acquired) == []
    assert max(gaps) < LONGEST_WAIT


def late_with_a_lower_fence(acquired: list[Acquisition]) -> list[Acquisition]:
    """Those who asked when somebody had got the lock already whose fence is not lower."""
    by_time = sorted(acquired, key=lambda each: each.got_at)
    times = [each.got_at for each in by_time]
    highest = [0, *accumulate((each.fence for each in by_time), max)]
    return [each for each in acquired if highest[bisect_left(times, each.asked_at)] >= each.fence]


def gap(first: Acquisition, second: Acquisition, back_at: list[float]) -> float:
    """Seconds for which the lock was free before *second* got it, which was waited for all the time."""
    free_at = first.released_at or first.got_at + TIMEOUT
    back = max((at for at in back_at if at <= second.got_at), default=0.0)
    return second.got_at - max(free_at, back)


def test_a_fair_lock_serves_in_the_order_in_which_redis_has_heard_of_them(
    server: EmbeddedServer, redis: Redis, register: Register, tmp_path: Path
) -> None:
    """The dead are left out; one that was not heard of, since it was stopped, comes last."""
    queue, beats = LockKeys.named("a").queue, LockKeys.named("a").beats
    holder = lock("a", timeout=None)
    holder.acquire()
    with ExitStack() as stack:
        waiters = [
            stack.enter_context(locker(server.url, tmp_path, "a", times=1, fair=True)) for _ in range(6)
        ]
        assert eventually(lambda: redis.zcard(queue) == len(waiters))
        noted = [Holder.of(token.decode()).process for token in redis.zrange(queue, 0, -1)]
        stopped, killed = noted[1], [noted[0], noted[4]]
        for pid in killed:
            psutil.Process(pid).kill()
        psutil.Process(stopped).suspend()
        living = [pid for pid in noted if pid not in (*killed, stopped)]
        assert eventually(lambda: processes(redis, queue) == living)  # their heartbeats clear the dead away
        assert set(processes(redis, beats)) == set(living)

        holder.release()
        assert eventually(lambda: len(register.writes) == 2 * len(living))
        psutil.Process(stopped).resume()
        assert eventually(lambda: len(register.writes) == 2 * len(living) + 2)

    assert [each.process for each in lockers.read(tmp_path)] == [*living, stopped]
    assert all(write.is_accepted for write in register.writes)


def processes(redis: Redis, waiters: str) -> list[int | None]:
    """Return those who wait, by the queue or by the heartbeats."""
    return [Holder.of(token.decode()).process for token in redis.zrange(waiters, 0, -1)]
