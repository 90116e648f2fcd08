"""
Writers, loaders that are slow, stopped or dead, readers and invalidations in any order: a reader never sees an older
version than one that was seen before, nor one that was replaced longer ago than it may be.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redis import Redis

from components.exceptions import RowNotLoaded
from components.services.rows import LEASE, Claim, Loader, Row
from tests.support.rows import bodies, cache, let_pass, now

DELAY = 60.0
LOADERS = 2


@dataclass
class Load:
    """One that is under way: what was claimed, and what the query has found, if it was asked."""

    claims: tuple[Claim, ...]
    version: int | None = None


@dataclass
class World:
    """A row whose stock is its version, the loaders of it, and what was seen."""

    redis: Redis
    #: When each version was committed, in microseconds of the server, as if no time had been let pass.
    committed_at: list[int] = field(default_factory=list)
    passed: int = 0
    seen: int = -1
    loaders: list[Loader] = field(default_factory=lambda: [Loader() for _ in range(LOADERS)])
    loads: dict[int, Load] = field(default_factory=dict)

    @property
    def now(self) -> int:
        return now(self.redis) + self.passed

    @property
    def version(self) -> int:
        return len(self.committed_at) - 1

    def write(self) -> None:
        """By something that sends no signal."""
        self.committed_at.append(self.now)

    def save(self) -> None:
        """After its invalidation nobody reads what was before."""
        self.write()
        cache().invalidate("1")
        self.seen = self.version

    def claim(self, number: int) -> None:
        claims = self.loaders[number].claim().claims
        if claims:
            self.loads[number] = Load(claims)

    def begin(self, number: int) -> None:
        self.claim(number)
        self.query(number)

    def load(self, number: int) -> None:
        self.begin(number)
        self.store(number)

    def query(self, number: int) -> None:
        if number in self.loads:
            self.loads[number].version = self.version

    def store(self, number: int) -> None:
        load = self.loads.get(number)
        if load and load.version is not None:
            self.loaders[number].store(load.claims, bodies({"1": ["sword", load.version]}))

    def refresh(self) -> None:
        """What began before it is stored, and loaded once more."""
        cache().refresh("1")

    def let_pass(self, seconds: int) -> None:
        let_pass(self.redis, seconds)
        self.passed += seconds * 1_000_000
        for load in self.loads.values():
            load.claims = tuple(
                replace(claim, since=claim.since - seconds * 1_000_000) for claim in load.claims
            )

    def look(self) -> None:
        began_at = self.now
        row = cache().get("1")
        if row:
            self.check(row, began_at)

    def read_through(self) -> None:
        def load(wanted: Sequence[str]) -> Mapping[str, Sequence[Any]]:
            return {"1": ["sword", self.version]}

        began_at = self.now
        found = cache().get_or_load(["1"], load, delay=DELAY, wait=0, stale=True)["1"]
        if not found.is_stale:
            self.check(found, began_at)

    def check(self, row: Row, began_at: int) -> None:
        version = row["stock"]
        assert version >= self.seen
        self.seen = version
        if version < self.version:
            replaced_at = self.committed_at[version + 1]
            assert began_at - replaced_at <= (DELAY + LEASE) * 1e6


_OPERATIONS = st.one_of(
    st.tuples(st.just("write")),
    st.tuples(st.just("save")),
    st.tuples(
        st.sampled_from(["begin", "begin", "store", "load", "claim", "query"]), st.integers(0, LOADERS - 1)
    ),
    st.tuples(st.sampled_from(["begin", "store", "load"]), st.integers(0, LOADERS - 1)),
    st.tuples(st.just("let_pass"), st.sampled_from([5, 10, 30, 60, 66])),
    st.tuples(st.sampled_from(["look", "refresh", "read_through"])),
)


@pytest.mark.parametrize("examples", [30, pytest.param(200, marks=pytest.mark.slow)])
def test_a_reader_never_goes_back_and_never_sees_what_is_too_old(redis: Redis, examples: int) -> None:
    @settings(max_examples=examples)
    @given(st.lists(_OPERATIONS, min_size=20, max_size=40), st.booleans())
    def check(operations: Sequence[tuple[Any, ...]], is_scheduled: bool) -> None:
        redis.flushall()
        world = World(redis)
        world.write()
        if is_scheduled:
            cache().schedule("1", DELAY)
        for name, *arguments in operations:
            try:
                getattr(world, name)(*arguments)
            except RowNotLoaded:  # a loader has the row, and goes on when its turn comes
                assert world.loads
        world.look()

    check()
