"""What is held under a lease is renewed, and its loss is told, by threads or by the event loop."""

import asyncio
import gc
import os
import threading
from collections.abc import Callable
from ctypes import PyDLL
from weakref import ref

import pytest
from redis import Redis

from components.exceptions import RedisUnavailable
from components.kit import leases as renewals
from components.services.locks import Lock
from tests.support.waiting import eventually


class Lease:
    """Something that is renewed as *answers* say; then it is lost."""

    def __init__(self, *answers: bool | Exception, lease: float = 0.6) -> None:
        self.lease = lease
        self.valid_until = renewals.clock() + lease
        self._answers = list(answers)
        self.renewed = 0
        self.losses: list[str] = []
        self.lost = threading.Event()
        self.server = "one"

    def renew(self) -> bool:
        self.renewed += 1
        answer = self._answers.pop(0) if self._answers else False
        if isinstance(answer, Exception):
            raise answer
        if answer:
            self.valid_until = renewals.clock() + self.lease
        return answer

    async def arenew(self) -> bool:
        return self.renew()

    def lose(self) -> None:
        self.losses.append(threading.current_thread().name)
        self.lost.set()


def test_a_lease_is_renewed_until_it_is_lost() -> None:
    lease = Lease(
        True, RedisUnavailable("away"), ZeroDivisionError(), True
    )  # errors are no loss: it is tried again

    renewals.keep(lease)

    assert lease.lost.wait(5)
    assert lease.renewed == 5
    assert lease.losses == ["renewals"]


def test_a_lease_that_is_never_answered_is_lost_when_its_time_is_over() -> None:
    lease = Lease(*[RedisUnavailable("away")] * 1_000, lease=1)

    renewals.keep(lease)

    assert lease.lost.wait(5)
    assert renewals.clock() >= lease.valid_until
    assert lease.renewed


def test_the_loss_is_told_in_time_though_a_renewal_hangs() -> None:
    answered, first, second = threading.Event(), Lease(lease=0.06), Lease(lease=0.06)
    first.renew = lambda: answered.wait(20)  # type: ignore[method-assign]
    try:
        renewals.keep(first)
        renewals.keep(second)

        assert first.lost.wait(5)
        assert second.lost.wait(5)
        assert not answered.is_set()
    finally:
        answered.set()


def test_a_dropped_claim_is_neither_renewed_nor_lost() -> None:
    dropped, other = Lease(True, lease=0.9), Lease(lease=1.2)
    renewals.keep(dropped)
    renewals.drop(dropped)
    renewals.keep(other)

    assert other.lost.wait(5)
    assert dropped.renewed == 0
    assert not dropped.losses


def test_what_is_watched_is_not_renewed_and_its_end_may_move() -> None:
    lease = Lease(True, lease=0.05)
    renewals.watch(lease)
    lease.valid_until += 0.1

    assert lease.lost.wait(5)
    assert lease.renewed == 0
    assert renewals.clock() >= lease.valid_until


def test_a_forked_child_renews_what_is_its_own() -> None:
    parents = Lease(*[True] * 1_000)
    renewals.keep(parents)

    def child() -> bool:
        before = parents.renewed
        own = Lease(True)
        renewals.keep(own)
        return own.lost.wait(5) and own.renewed == 2 and parents.renewed == before

    assert in_child(child)
    before = renewals.forks()
    assert in_child(lambda: renewals.forks() == before + 1, PyDLL(None).fork)  # as uWSGI does
    renewals.drop(parents)


def in_child(check: Callable[[], bool], fork: Callable[[], int] = os.fork) -> bool:
    """Whether *check* holds in a forked child."""
    pid = fork()
    if not pid:
        os._exit(0 if check() else 1)
    _pid, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status) == 0


def test_a_thread_that_has_nothing_to_renew_any_more_ends(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    def renewing() -> set[threading.Thread]:
        return {thread for thread in threading.enumerate() if thread.name == "renewals"}

    renewals._starter.get()  # it has a thread that keeps the time
    before = renewing()
    monkeypatch.setattr(renewals, "_IDLE", 0.05)
    monkeypatch.setattr(renewals, "_PART", 50)
    for _ in range(2):  # it begins again
        with Lock(redis, "a", timeout=10, auto_renewal=True) as held:
            first = held._holding.valid_until
            assert eventually(lambda until=first: held._holding.valid_until > until)
        assert eventually(lambda: renewing() <= before)


def test_the_loop_renews_until_the_loss_and_tells_it_there() -> None:
    async def main() -> None:
        lease, dropped = Lease(True, ZeroDivisionError(), True), Lease(True, lease=0.06)
        renewals.akeep(lease)
        renewals.akeep(dropped)
        renewals.adrop(dropped)

        assert await asyncio.to_thread(lease.lost.wait, 5)
        assert lease.renewed == 4
        assert lease.losses == ["MainThread"]
        assert dropped.renewed == 0
        assert not dropped.losses

    asyncio.run(main())


def test_the_loop_tells_the_end_of_what_is_watched_and_of_what_is_never_answered() -> None:
    async def main() -> None:
        watched, unanswered = Lease(lease=0.05), Lease(*[RedisUnavailable("away")] * 1_000, lease=0.1)
        renewals.awatch(watched)
        renewals.akeep(unanswered)
        watched.valid_until += 0.05

        for lease in (watched, unanswered):
            assert await asyncio.to_thread(lease.lost.wait, 5)
            assert renewals.clock() >= lease.valid_until
        assert watched.renewed == 0

    asyncio.run(main())


@pytest.mark.parametrize("keep", [renewals.akeep, renewals.awatch])
def test_the_loop_forgets_what_the_program_has_forgotten(keep: Callable[[Lease], None]) -> None:
    async def main() -> None:
        lease = Lease(True, True, lease=0.06)
        keep(lease)
        forgotten = ref(lease)
        del lease

        def is_gone() -> bool:
            gc.collect()
            return forgotten() is None

        assert await asyncio.to_thread(eventually, is_gone, within=5)

    asyncio.run(main())
