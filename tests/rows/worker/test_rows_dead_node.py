"""A node of a cluster is away: the daemon of cached rows goes on loading the rows of the others."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from components.kit.keyspace import bucket
from components.services.rows import Loader, Shape, member
from components.services.rows.keys import RowKeys
from components.services.rows.worker import RowWorker
from tests.support.masters import Master, three_masters
from tests.support.rows import SHAPE, bodies, cache, claimed
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

KEYS = [str(number) for number in range(40)]


@pytest.fixture
def nodes(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[list[Master]]:
    with three_masters(tmp_path, request.config.getoption("--redis-server")) as nodes:
        yield nodes


def keys_of(node: Master) -> set[str]:
    return {key for key in KEYS if node.has(RowKeys(bucket(member("items", key))).schedule)}


@dataclass
class Found:
    values: dict[str, Sequence[Any]]
    errors: dict[str, str] = field(default_factory=dict)


class Memory:
    """A source that knows how often it was asked for each row."""

    shape: Shape = SHAPE

    def __init__(self) -> None:
        self.loads = dict.fromkeys(KEYS, 0)

    def load_all(self, keys: Sequence[str]) -> Found:
        for key in keys:
            self.loads[key] += 1
        return Found({key: ["sword", self.loads[key]] for key in keys})


def test_rows_of_the_other_nodes_are_loaded_as_ever(
    nodes: list[Master], caplog: pytest.LogCaptureFixture
) -> None:
    rows, source = cache(), Memory()
    for key in KEYS:
        rows.schedule(key, 0.01)
    worker = RowWorker({"items": source})
    worker.tick()
    dead = nodes[2]
    lost = keys_of(dead)
    there = set(KEYS) - lost
    assert lost
    assert there

    dead.kill()
    before = dict(source.loads)
    with caplog.at_level(logging.WARNING, "components"):
        assert eventually(
            lambda: (
                bool(worker._try_tick() >= 0) and all(source.loads[key] > before[key] + 2 for key in there)
            ),
            within=30,
        )
    assert {key: source.loads[key] for key in lost} == {key: before[key] for key in lost}
    found = rows.get_many(there)
    assert {key: row["stock"] for key, row in found.items()} == {key: source.loads[key] for key in there}
    assert sum("Waiting for Redis" in each.getMessage() for each in caplog.records) == 1

    dead.start()
    assert eventually(lambda: bool(worker._try_tick() >= 0) and not worker.outage, within=60)
    assert "Redis answers again" in caplog.text


def test_rows_claimed_from_a_node_that_died_are_not_stored_and_the_rest_is(nodes: list[Master]) -> None:
    rows, loader, dead = cache(), Loader(), nodes[0]
    for key in KEYS:
        rows.schedule(key, 60)
    claims = loader.claim(1_000)
    assert claimed(claims) == sorted(KEYS)
    lost = keys_of(dead)

    dead.kill()
    refused = loader.store(claims.claims, bodies({key: ["sword", 1] for key in KEYS}))

    assert refused == {member("items", key) for key in lost}
    assert rows.get_many(set(KEYS) - lost).keys() == set(KEYS) - lost
