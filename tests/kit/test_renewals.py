"""What is held under a lease is renewed, and its loss is told, by threads or by the event loop."""

import asyncio
import gc
import math
import threading
from collections.abc import Callable
from weakref import ref

import pytest
from redis import Redis

from components.exceptions import RedisUnavailable
from components.kit import leases as renewals
from components.services.locks import Lock
from tests.support.forks import fork_in_c, in_child
from tests.support.waiting import eventually


class Lease(renewals.Lease):
    """Something that is renewed as *answers* say; then it is lost."""

    server = "one"

    def __init__(self, *answers: bool | Exception, lease: float = 0.6) -> None:
        super().__init__(lease, renewals.clock() + lease, asyncio._get_running_loop())
        self._answers = list(answers)
        self.renewed = 0
        self.losses: list[str] = []
        self._lost = threading.Event()

    async def _renew(self) -> bool:
        self.renewed += 1
        answer = self._answers.pop(0) if self._answers else False
        if isinstance(answer, Exception):
            raise answer
        if answer:
            self.valid_until = renewals.clock() + self.lease
        return answer

    def lose(self) -> None:
        self.losses.append(threading.current_thread().name)
        super().lose()


def test_a_lease_is_renewed_until_it_is_lost() -> None:
    # Errors are no loss: it is tried again.
    lease = Lease(True, RedisUnavailable("away"), ZeroDivisionError(), True)
    lease.keep()

    assert lease._lost.wait(5)
    assert lease.renewed == 5
    assert lease.losses == ["renewals"]


def test_a_lease_that_is_never_answered_is_lost_when_its_time_is_over() -> None:
    lease = Lease(*[RedisUnavailable("away")] * 1_000, lease=1)

    lease.keep()

    assert lease._lost.wait(5)
    assert renewals.clock() >= lease.valid_until
    assert lease.renewed


def test_the_loss_is_told_in_time_though_a_renewal_hangs() -> None:
    answered, first, second = threading.Event(), Lease(lease=0.06), Lease(lease=0.06)

    async def hang() -> bool:
        return answered.wait(20)

    first._renew = hang  # type: ignore[method-assign]
    try:
        first.keep()
        second.keep()

        assert first._lost.wait(5)
        assert second._lost.wait(5)
        assert not answered.is_set()
    finally:
        answered.set()


def test_a_dropped_claim_is_neither_renewed_nor_lost() -> None:
    dropped, other = Lease(True, lease=0.9), Lease(lease=1.2)
    dropped.keep()
    dropped.drop()
    other.keep()

    assert other.lost.wait(5)
    assert dropped.renewed == 0
    assert not dropped.losses


def test_what_is_watched_is_not_renewed_and_its_end_may_move() -> None:
    assert not Lease(lease=math.inf).lost.is_set()  # which leaves the thread alive
    lease = Lease(True, lease=0.05)
    lease._watch()
    lease.valid_until += 0.1

    assert lease._lost.wait(5)
    assert lease.renewed == 0
    assert renewals.clock() >= lease.valid_until


def test_a_forked_child_renews_what_is_its_own() -> None:
    parents = Lease(*[True] * 1_000)
    parents.keep()

    def child() -> bool:
        before = parents.renewed
        own = Lease(True)
        own.keep()
        return own._lost.wait(5) and own.renewed == 2 and parents.renewed == before

    assert in_child(child)
    before = renewals.forks()
    assert in_child(lambda: renewals.forks() == before + 1, fork_in_c)  # as uWSGI does
    parents.drop()


def test_a_thread_that_has_nothing_to_renew_any_more_ends(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    def renewing() -> set[threading.Thread]:
        return {thread for thread in threading.enumerate() if thread.name == "renewals"}

    Lease()._watch()  # there is a thread that keeps the time
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
        lease.keep()
        dropped.keep()
        dropped.drop()

        assert await asyncio.to_thread(lease._lost.wait, 5)
        assert lease.renewed == 4
        assert lease.losses == ["MainThread"]
        assert dropped.renewed == 0
        assert not dropped.losses

    asyncio.run(main())


def test_the_loop_tells_the_end_of_what_is_watched_and_of_what_is_never_answered() -> None:
    async def main() -> None:
        watched, unanswered = Lease(lease=0.05), Lease(*[RedisUnavailable("away")] * 1_000, lease=0.1)
        watched._watch()
        unanswered.keep()
        watched.valid_until += 0.05

        for lease in (watched, unanswered):
            assert await asyncio.to_thread(lease._lost.wait, 5)
            assert renewals.clock() >= lease.valid_until
        assert watched.renewed == 0

    asyncio.run(main())


@pytest.mark.parametrize("keep", [Lease.keep, Lease._watch])
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
