"""
The semaphore against a model in plain Python: whatever is done in whatever order, and whatever dies, the same are
granted, in the same order, and whoever can go has been woken.
"""

from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from redis import Redis

from components.exceptions import PermitLost, PermitReleased
from components.kit import leases
from components.services.semaphores import Semaphore
from tests.support.semaphores import Waiter, let_pass, queued

# So long that what the test itself takes does not count; a step is neither of them.
LEASE, LIFE, STEPS = 60_000.0, 80_000.0, (20_000.0, 60_000.0, 100_000.0)
LIMIT, OTHER_LIMIT = 3, 4  # as declared by two releases of the same code

picks = st.integers(0, 1_000_000)


@dataclass
class Held:
    weight: int
    ends_at: float


@dataclass
class Model:
    """Time is what passes by pass_time(), and nothing else."""

    lease: float
    life: float
    now: float = 0.0
    override: int | None = None
    holders: dict[str, Held] = field(default_factory=dict)
    #: Waiter -> until when it counts as alive; in the order of arrival.
    queue: dict[str, float] = field(default_factory=dict)
    #: What is remembered of permits: "released", "evicted" or "left".
    ended: dict[str, str] = field(default_factory=dict)
    granted: int = 0
    waits: int = 0

    @property
    def used(self) -> int:
        return sum(held.weight for held in self.holders.values())

    @property
    def head(self) -> str | None:
        return next(iter(self.queue), None)

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.ended.clear()  # half a minute, of which there are more in any step
        self.holders = {each: held for each, held in self.holders.items() if held.ends_at > self.now}
        self.queue = {each: alive for each, alive in self.queue.items() if alive > self.now}

    def fits(self, weight: int, declared: int) -> bool:
        return weight <= (self.override or declared) - self.used

    def ask(self, permit: str, weight: int, declared: int, *, waits: bool) -> str:
        if permit in self.holders:
            return "granted"
        if permit in self.ended:
            return "ended"
        if weight > (self.override or declared):
            return "heavy"
        if self.head not in (None, permit) or not self.fits(weight, declared):
            if waits:
                self.queue[permit] = self.now + self.life
            return "wait" if waits else "full"
        self.waits += self.queue.pop(permit, None) is not None
        self.granted += 1
        self.holders[permit] = Held(weight, self.now + self.lease)
        return "granted"

    def end(self, permit: str, how: str) -> str:
        """How the permit has ended: as it is said here, or before, or by time."""
        if self.holders.pop(permit, None) or how == "left":
            self.queue.pop(permit, None)
            self.ended.setdefault(permit, how)
            return how
        return self.ended.get(permit, "expired")

    def refresh(self, permit: str) -> str:
        if held := self.holders.get(permit):
            held.ends_at = self.now + self.lease
            return "refreshed"
        return self.ended.get(permit, "expired")


class SemaphoreMachine(RuleBasedStateMachine):
    def __init__(self, redis: Redis) -> None:
        super().__init__()
        self.redis = redis
        redis.flushall()
        self.semaphores = [Semaphore("api", limit=limit, lease=LEASE) for limit in (LIMIT, OTHER_LIMIT)]
        self.model = Model(LEASE, LIFE)
        #: All that ever asked, with their weight and the limit that they declare.
        self.askers: list[tuple[Waiter, int, int]] = []
        #: Who was told to look, and has not looked.
        self.woken: set[str] = set()

    def pick(self, pick: int) -> tuple[Waiter, int, int]:
        return self.askers[pick % len(self.askers)]

    @rule(weight=st.integers(1, LIMIT), release=st.integers(0, 1))
    def come(self, weight: int, release: int) -> None:
        semaphore = self.semaphores[release]
        asker = Waiter(semaphore, weight), weight, semaphore.limit
        self.askers.append(asker)
        self.ask(*asker)

    @rule(pick=picks)
    @precondition(lambda self: self.askers)
    def beat(self, pick: int) -> None:
        self.ask(*self.pick(pick))

    @rule()
    @precondition(lambda self: self.model.queue)
    def head_beats(self) -> None:
        [head] = [asker for asker in self.askers if asker[0].id == self.model.head]
        self.ask(*head)

    def ask(self, waiter: Waiter, weight: int, declared: int) -> None:
        expected = self.model.ask(waiter.id, weight, declared, waits=True)
        waiter.is_woken(self.redis)
        self.woken.discard(waiter.id)

        assert waiter.ask() == expected

        self.the_head_is_woken_if_it_can_go()

    @rule(weight=st.integers(1, LIMIT), release=st.integers(0, 1))
    def try_once(self, weight: int, release: int) -> None:
        semaphore = self.semaphores[release]
        if not self.may(weight, semaphore.limit):
            return  # it is an error of the caller, and does nothing

        permit = semaphore.try_acquire(weight=weight)

        if permit:
            self.askers.append((self.waiter_of(permit.id, semaphore, weight), weight, semaphore.limit))
            assert self.model.ask(permit.id, weight, semaphore.limit, waits=False) == "granted"
        else:
            assert self.model.ask("", weight, semaphore.limit, waits=False) == "full"
        self.the_head_is_woken_if_it_can_go()

    def may(self, weight: int, declared: int) -> bool:
        return weight <= (self.model.override or declared)

    def waiter_of(self, permit: str, semaphore: Semaphore, weight: int) -> Waiter:
        waiter = Waiter(semaphore, weight)
        waiter.become(permit)
        return waiter

    @rule(pick=picks)
    @precondition(lambda self: self.askers)
    def leave(self, pick: int) -> None:
        waiter, _weight, _declared = self.pick(pick)

        waiter.leave()

        self.model.end(waiter.id, "left")
        self.the_head_is_woken_if_it_can_go()

    @rule(pick=picks)
    @precondition(lambda self: self.askers)
    def release(self, pick: int) -> None:
        waiter, _weight, _declared = self.pick(pick)
        before = self.model.ended.get(waiter.id)
        expected = self.model.end(waiter.id, "released")

        if expected == "released" and before is None:
            self.semaphores[0].release(waiter.id)
        else:
            with pytest.raises(PermitReleased if expected == "released" else PermitLost):
                self.semaphores[0].release(waiter.id)
        self.the_head_is_woken_if_it_can_go()

    @rule(pick=picks)
    @precondition(lambda self: self.askers)
    def evict(self, pick: int) -> None:
        waiter, _weight, _declared = self.pick(pick)
        is_held = waiter.id in self.model.holders
        self.model.end(waiter.id, "evicted")

        assert self.semaphores[0].evict(waiter.id) == is_held

        self.the_head_is_woken_if_it_can_go()

    @rule(pick=picks)
    @precondition(lambda self: self.askers)
    def refresh(self, pick: int) -> None:
        waiter, _weight, _declared = self.pick(pick)
        expected = self.model.refresh(waiter.id)

        if expected == "refreshed":
            self.semaphores[0].refresh(waiter.id)
        else:
            with pytest.raises(PermitReleased if expected == "released" else PermitLost):
                self.semaphores[0].refresh(waiter.id)

    @rule(limit=st.none() | st.integers(1, 6))
    def set_limit(self, limit: int | None) -> None:
        self.model.override = limit
        if limit is None:
            self.semaphores[0].reset_limit()
        else:
            self.semaphores[0].set_limit(limit)
        self.the_head_is_woken_if_it_can_go()

    @rule(seconds=st.sampled_from(STEPS))
    def time_passes(self, seconds: float) -> None:
        let_pass(self.redis, "api", seconds)
        self.model.pass_time(seconds)

    def the_head_is_woken_if_it_can_go(self) -> None:
        if self.model.head is None:
            return
        [(waiter, weight, _declared)] = [asker for asker in self.askers if asker[0].id == self.model.head]
        if waiter.is_woken(self.redis, keep=True):
            self.woken.add(waiter.id)  # what says so may expire
        # Who declares more than the one before it finds at its heartbeat that it can go.
        if self.model.fits(weight, LIMIT):
            assert waiter.id in self.woken

    @invariant()
    def it_stands_as_the_model_does(self) -> None:
        info, model = self.semaphores[0].info(), self.model
        assert (info.used, info.holders, info.waiting) == (model.used, len(model.holders), len(model.queue))
        assert (info.granted, info.waits, info.override) == (model.granted, model.waits, model.override)
        assert [each for each in queued(self.redis, "api") if each in model.queue] == list(model.queue)
        assert {holder.id for holder in self.semaphores[0].holders()} == model.holders.keys()


@pytest.mark.parametrize("examples", [8, pytest.param(60, marks=pytest.mark.slow)])
def test_it_behaves_as_the_model(redis: Redis, monkeypatch: pytest.MonkeyPatch, examples: int) -> None:
    monkeypatch.setattr(leases, "ALIVE", LIFE * 1_000_000)
    bounded = settings(max_examples=examples, derandomize=examples == 8, stateful_step_count=40)
    run_state_machine_as_test(lambda: SemaphoreMachine(redis), settings=bounded)
