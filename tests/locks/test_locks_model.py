"""
Locks against a model in plain Python: whatever is done in whatever order, fair or not, there is one holder, waiters
stand in their order, fences grow, time is what was given, and the figures are right.

Nobody sleeps: time passes by data, and a waiter is what it has told Redis.
"""

from dataclasses import dataclass, field
from typing import Any

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

from components.exceptions import LockLost
from components.kit import leases
from components.kit.sync_async import at_once
from components.services.locks import Lock, LockReader, lock
from components.services.locks.keys import LockKeys
from components.services.locks.named import key_of
from tests.locks.test_locks_stored import release_again

NAMES = ("a", "b")
TIMEOUT = 1_000  # seconds; no test takes as long as any time here
SLACK = 300  # seconds that may have passed
FAR = 2**52  # as a score: an instant in microseconds that no test sees

names = st.sampled_from(NAMES)
accidents = st.sampled_from(
    ["some_time_passes"]
    + ["all_its_time_passes"] * 3
    + ["a_waiter_dies"] * 3
    + ["the_clock_was_ahead", "the_state_is_forgotten", "all_is_lost"]
)
picks = st.sampled_from(range(60))  # 60 can be shared out among any number of actors


@dataclass
class Model:
    """One lock, as it should be."""

    holder: str | None = None
    #: Seconds that the holder has left.
    left: float = 0
    #: That of the last holder, which is smaller than the next.
    fence: int = 0
    #: Whether the fence is from a clock that was ahead of the server's.
    is_ahead: bool = False
    queue: list[str] = field(default_factory=list)
    dead: set[str] = field(default_factory=set)
    #: Whether its last holder has not released it.
    is_owed: bool = False
    #: For who asks again: the fences that were released, the tokens that were let go, and the last fence that was
    #: taken away.
    released: set[int] = field(default_factory=set)
    let_go: set[str] = field(default_factory=set)
    evicted: int | None = None
    #: 0 while there is nothing to tell of.
    acquired: int = 0
    waits: int = 0
    expired: int = 0
    forced: int = 0

    def drop_the_dead(self) -> None:
        self.queue = [waiter for waiter in self.queue if waiter not in self.dead]
        self.dead.clear()

    def acquire(self, token: str, *, waits: bool, is_fair: bool, has_waited: bool = False) -> bool:
        self.drop_the_dead()
        if self.holder == token:
            return True
        if self.holder or (is_fair and self.queue and self.queue[0] != token):
            if waits:
                self.dead.discard(token)
                self.queue += [token] if token not in self.queue else []
            return False
        self.forget_waiter(token)
        if self.acquired or self.is_owed or has_waited:
            self.acquired += 1 if self.acquired else 2
        self.expired += self.is_owed
        self.waits += has_waited
        self.holder, self.left, self.is_owed = token, TIMEOUT, True
        return True

    def forget_waiter(self, token: str) -> None:
        self.queue = [waiter for waiter in self.queue if waiter != token]
        self.dead.discard(token)

    def release(self, token: str, fence: int, how: str) -> bool:
        is_mine = self.holder == token and (how != "evicted" or fence == self.fence)
        if is_mine:
            self.holder, self.is_owed = None, False
            if how == "evicted":
                self.forced, self.acquired, self.evicted = self.forced + 1, self.acquired or 1, fence
            elif fence:
                self.released.add(fence)
            else:
                self.let_go.add(token)
        if how == "left":
            self.forget_waiter(token)
        if not self.holder and self.queue:
            self.drop_the_dead()
        if how == "evicted":
            return is_mine or self.evicted == fence
        return is_mine or (fence in self.released if fence else token in self.let_go)

    def forget(self) -> None:
        """What the state says of the past, and that the last holder has not released it."""
        self.is_owed, self.evicted = False, None
        self.acquired = self.waits = self.expired = self.forced = 0


@dataclass
class Actor:
    """Somebody with a lock object; *token* is that of its last attempt."""

    name: str
    lock: Lock
    token: str = "nobody"
    fence: int = 0
    is_waiting: bool = False

    @property
    def encoded(self) -> bytes:
        return self.token.encode()


class LockMachine(RuleBasedStateMachine):
    def __init__(self, redis: Redis) -> None:
        super().__init__()
        self.redis = redis
        redis.flushall()
        self.models = {name: Model() for name in NAMES}
        fair = ("a", True)
        self.actors = [
            Actor(each, lock(each, timeout=TIMEOUT, fair=is_fair))
            for each, is_fair in (fair, fair, fair, ("a", False), ("b", False), ("b", False))
        ]
        self.numbers = 0

    @rule(pick=picks, has_patience=st.booleans())
    @precondition(lambda self: self.idle())
    def acquire(self, pick: int, has_patience: bool) -> None:
        """In one call: who waits in vain leaves no trace."""
        actor = self.pick(pick, self.idle())
        self.begin_anew(actor)
        model = self.model(actor)
        expected = model.acquire(actor.token, waits=has_patience, is_fair=actor.lock.fair)
        if has_patience and not expected:
            model.release(actor.token, 0, "left")

        actor.lock.local.doubtful = actor.encoded  # which it goes on with
        granted = actor.lock.acquire(blocking_timeout=0.001 if has_patience else 0)

        assert granted == expected
        if granted:
            self.note_grant(actor)

    @rule(pick=picks)
    def wait(self, pick: int) -> None:
        """As a waiter does at each of its heartbeats; the first time it joins the queue."""
        actor = self.pick(pick)
        model = self.model(actor)
        if model.holder != actor.token and not actor.is_waiting:
            self.begin_anew(actor)
        was_waiting = actor.is_waiting
        was_holder = model.holder == actor.token
        expected = model.acquire(
            actor.token, waits=True, is_fair=actor.lock.fair, has_waited=was_waiting and not was_holder
        )

        waited = 0.001 if was_waiting else 0
        wait = at_once(actor.lock._try(actor.encoded, waits=True, waited=waited))

        assert (not wait) == expected
        actor.is_waiting = not expected
        if expected and was_holder:
            assert actor.lock.fence == model.fence
        elif expected:
            self.note_grant(actor)
        else:
            self.redis.zadd(LockKeys.named(actor.name).beats, {actor.token: FAR})
            assert actor.encoded in self.redis.zrange(LockKeys.named(actor.name).queue, 0, -1)

    @rule(pick=picks)
    def leave(self, pick: int) -> None:
        actor = self.pick(pick)
        self.model(actor).release(actor.token, 0, "left")
        actor.is_waiting = False

        at_once(actor.lock._leave(actor.encoded))

        self.check_wake_up(actor.name)

    @rule(pick=picks)
    @precondition(lambda self: self.with_token())
    def release(self, pick: int) -> None:
        actor = self.pick(pick, self.with_token())
        token, fence = actor.lock.local.token.decode(), actor.lock.fence  # perhaps of an earlier attempt
        is_mine = self.model(actor).release(token, fence, "released")

        self.expect(is_mine, actor.lock.release)

        assert actor.lock.local.token is None
        self.check_wake_up(actor.name)

    @rule(pick=picks)
    def release_again(self, pick: int) -> None:
        """As when the reply to the last release was lost."""
        actor = self.pick(pick)
        expected = self.model(actor).release(actor.token, actor.fence, "released")

        assert release_again(self.redis, actor.lock, actor.token, actor.fence) == expected

        self.check_wake_up(actor.name)

    @rule(pick=picks, seconds=st.integers(400, 1_600), adds=st.booleans(), is_anew=st.booleans())
    @precondition(lambda self: self.with_token())
    def extend(self, pick: int, seconds: int, adds: bool, is_anew: bool) -> None:
        actor = self.pick(pick, self.with_token())
        model = self.model(actor)
        is_held = model.holder == actor.lock.local.token.decode()
        if is_held:
            model.left = TIMEOUT if is_anew else model.left + seconds if adds else seconds

        if is_anew:
            self.expect(is_held, actor.lock.reacquire)
        else:
            self.expect(is_held, lambda: actor.lock.extend(seconds, replace_ttl=not adds))

        if is_held:
            assert model.left - SLACK < actor.lock.remaining <= model.left

    @rule(pick=picks)
    def ask(self, pick: int) -> None:
        actor = self.pick(pick)
        token, model = actor.lock.local.token, self.model(actor)

        assert actor.lock.locked() == (model.holder is not None)
        assert actor.lock.owned() == (token is not None and model.holder == token.decode())
        if actor.lock.owned():
            assert actor.lock.fence == model.fence
            actor.lock.ensure_held()

    @rule(name=names, pick=picks)
    def force(self, name: str, pick: int) -> None:
        """Of whoever holds it, or of somebody who does not."""
        model = self.models[name]
        actor = self.pick(pick)
        token, fence = actor.token, actor.fence
        if pick % 3 and model.holder:
            token, fence = model.holder, model.fence
        expected = model.release(token, fence, "evicted")

        assert LockReader().force_release(key_of(name), token, fence) == expected

        self.check_wake_up(name)

    @rule(name=names, pick=picks, what=accidents)
    def happens(self, name: str, pick: int, what: str) -> None:
        """One rule, so that it does not outnumber what is done to locks."""
        getattr(self, what)(name, pick)

    def some_time_passes(self, name: str, pick: int) -> None:
        model = self.models[name]
        if model.holder and model.left > TIMEOUT / 2:
            model.left -= TIMEOUT / 2
            assert self.redis.pexpire(key_of(name), round(model.left * 1_000))

    def all_its_time_passes(self, name: str, pick: int) -> None:
        model = self.models[name]
        if model.holder:
            model.holder = None
            assert self.redis.pexpire(key_of(name), -1)
            now = self.redis.time()[0] * 1_000
            self.redis.zadd(LockKeys.named(name).held, {key_of(name): now - 5_000})

    def a_waiter_dies(self, name: str, pick: int) -> None:
        model = self.models[name]
        if model.queue:
            token = model.queue[pick % len(model.queue)]
            model.dead.add(token)
            self.redis.zadd(LockKeys.named(name).beats, {token: 1})

    def the_clock_was_ahead(self, name: str, pick: int) -> None:
        model = self.models[name]
        if not model.holder and model.fence:
            model.fence, model.is_ahead = model.fence + 10**12, True
            self.redis.zadd(LockKeys.named(name).held, {"": -model.fence})

    def the_state_is_forgotten(self, name: str, pick: int) -> None:
        """As a day after its last use."""
        model = self.models[name]
        if not model.holder:
            model.forget()
            self.redis.delete(LockKeys.named(name).state)
            self.redis.zrem(LockKeys.named(name).held, key_of(name), b"\xff" + key_of(name).encode())

    def all_is_lost(self, name: str, pick: int) -> None:
        self.redis.flushall()
        was_ahead = any(model.is_ahead for model in self.models.values())
        self.models = {
            each: Model(fence=0 if was_ahead else model.fence) for each, model in self.models.items()
        }
        for actor in self.actors:
            actor.is_waiting = False

    @invariant()
    def each_has_its_holder_and_its_queue(self) -> None:
        for name, model in self.models.items():
            holder = self.redis.get(key_of(name))
            queue = [token.decode() for token in self.redis.zrange(LockKeys.named(name).queue, 0, -1)]
            beats = dict(self.redis.zrange(LockKeys.named(name).beats, 0, -1, withscores=True))
            assert (holder and holder.decode()) == model.holder
            assert queue == model.queue
            assert [beats[token.encode()] > 1 for token in queue] == [
                token not in model.dead for token in model.queue
            ]
            left = self.redis.pttl(key_of(name)) / 1_000
            assert model.left - SLACK < left <= model.left if model.holder else left < 0

    @invariant()
    def nobody_has_more_than_one_wake_up(self) -> None:
        for actor in self.actors:
            assert self.redis.llen(f"{LockKeys.named(actor.name).wake}:{actor.token}") <= 1

    @invariant()
    def who_looks_sees_it(self) -> None:
        reader, held = LockReader(), {name: model for name, model in self.models.items() if model.holder}
        assert reader.count() == len(held)
        assert {info.name: info.token for info in reader.held()} == {
            name: model.holder for name, model in held.items()
        }
        for name, model in self.models.items():
            info = reader.find(name)
            assert (info is not None) == bool(model.is_owed or model.acquired)
            if info:
                figures = (info.acquired, info.waits, info.expired, info.forced)
                acquired = model.acquired or int(bool(model.holder))
                assert figures == (acquired, model.waits, model.expired, model.forced)

    def note_grant(self, actor: Actor) -> None:
        model = self.model(actor)
        assert actor.lock.fence > model.fence
        assert actor.lock.local.token == actor.encoded
        model.fence = actor.fence = actor.lock.fence

    def check_wake_up(self, name: str) -> None:
        """If it is free now, the first of those who wait has been told."""
        model = self.models[name]
        if model.queue and not model.holder:
            assert self.redis.llen(f"{LockKeys.named(name).wake}:{model.queue[0]}") == 1

    def expect(self, succeeds: bool, call: Any) -> None:
        if succeeds:
            call()
        else:
            with pytest.raises(LockLost):
                call()

    def model(self, actor: Actor) -> Model:
        return self.models[actor.name]

    def pick(self, pick: int, actors: list[Actor] | None = None) -> Actor:
        actors = actors or self.actors
        return actors[pick % len(actors)]

    def idle(self) -> list[Actor]:
        """Those that neither wait nor hold it."""
        return [
            actor for actor in self.actors if not actor.is_waiting and self.model(actor).holder != actor.token
        ]

    def with_token(self) -> list[Actor]:
        """Those that hold it, or do not know that they have lost it."""
        return [actor for actor in self.actors if actor.lock.local.token]

    def begin_anew(self, actor: Actor) -> None:
        self.numbers += 1
        actor.token, actor.fence = f"token {self.numbers}", 0


@pytest.mark.parametrize("examples", [6, pytest.param(40, marks=pytest.mark.slow)])
def test_locks_behave_as_their_model(redis: Redis, monkeypatch: pytest.MonkeyPatch, examples: int) -> None:
    monkeypatch.setattr(leases, "ALIVE", 60_000_000)  # who dies does so by data
    bounded = settings(max_examples=examples, derandomize=examples == 6, stateful_step_count=40)
    run_state_machine_as_test(lambda: LockMachine(redis), settings=bounded)
