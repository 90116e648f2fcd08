"""A node of a cluster is away: what is counted goes on reaching the others, and reaches it when it is back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from components.exceptions import RedisUnavailable
from components.kit.client import get_client
from components.kit.keyspace import bucket
from components.services.counters import Counter, buffer, count, flush
from components.services.counters.keys import CounterKeys
from tests.support.masters import Master, three_masters
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

NAMES = [f"page:{number}" for number in range(24)]


@pytest.fixture
def nodes(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[Master]]:
    monkeypatch.setattr(buffer, "INTERVAL", 3_600.0)  # nothing is sent but by flush()
    with three_masters(tmp_path, request.config.getoption("--redis-server")) as nodes:
        yield nodes


def names_of(node: Master) -> list[str]:
    return [name for name in NAMES if node.has(CounterKeys(bucket(name)).names)]


def count_all(times: int) -> None:
    for name in NAMES:
        count(name, times)


def totals(names: list[str]) -> set[int]:
    return {Counter(name).get(3_600).total for name in names}


def test_a_dead_node_delays_no_result_of_the_others(nodes: list[Master]) -> None:
    dead = nodes[1]
    lost, there = names_of(dead), [name for node in (nodes[0], nodes[2]) for name in names_of(node)]
    assert lost
    assert there
    count_all(1)
    flush()

    dead.kill()
    for done in (2, 3, 4):
        count_all(1)
        with pytest.raises(RedisUnavailable):
            flush()
        assert totals(there) == {done}

    dead.start()
    assert eventually(lambda: get_client().cluster_info()["cluster_state"] == "ok", within=60)  # type: ignore[no-untyped-call]
    assert eventually(flushes, within=60)
    assert totals(there) == {4}
    assert totals(lost) == {3}  # the first of all is gone with the node's memory
    assert not buffer._buffer.counts.keys() & set(NAMES)


def flushes() -> bool:
    try:
        flush()
    except RedisUnavailable:
        return False
    return True
