"""An outage of Redis, as a worker sees it."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from redis import Redis

from components.exceptions import RedisUnavailable
from components.kit.worker import outage as module
from components.kit.worker.outage import Outage
from components.services.queues import Consumer, TaskQueue
from components.services.queues.backend import RedisBackend
from components.services.queues.worker.poller import Poller
from components.services.queues.worker.worker import Worker
from tests.fixtures.worker import NOTE, MakeWorker, counts, push, reaches
from tests.support.queues import claim_one, end_lease


def test_a_short_outage_costs_no_lease() -> None:
    outage = Outage(harmless=60.0)
    outage.goes_on(RedisUnavailable("It is away."))

    assert not outage.is_recent

    outage.is_over()

    assert not outage.is_recent


def is_back(outage: Outage) -> Outage:
    """Redis was away for long enough, and has answered."""
    outage.goes_on(RedisUnavailable("It is away."))
    outage.is_over()
    return outage


def test_an_outage_may_last_for_days(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.random, "uniform", lambda shortest, longest: longest)
    outage = Outage(harmless=60.0)
    pauses = [outage.goes_on(RedisUnavailable("It is away.")) for _ in range(2_000)]

    assert pauses == [0.2, 0.4, 0.8, 1.6, *[2.0] * 1_996]
    outage.is_over()
    assert outage.goes_on(RedisUnavailable("It is away.")) == 0.2


def test_an_outage_is_recent_until_all_others_have_renewed_their_leases(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outage = Outage(harmless=0.0)
    outage.is_over()

    assert not outage.is_recent

    outage.goes_on(RedisUnavailable("It is away."))

    assert outage.is_recent

    outage.is_over()

    assert outage.is_recent

    monkeypatch.setattr(module, "_RENEWAL", -60.0)

    assert not is_back(Outage(harmless=0.0)).is_recent


@pytest.mark.parametrize(("harmless", "longest"), [(10.0, 2.0), (0.5, 0.5)])
def test_others_may_be_as_late_as_a_third_of_the_lease_or_two_seconds(
    harmless: float, longest: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    outage = Outage(harmless)
    away = RedisUnavailable("It is away.")
    monkeypatch.setattr(module, "random", SimpleNamespace(uniform=lambda _least, most: most))
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: 100.0))

    assert max(outage.goes_on(away) for _try in range(10)) == longest

    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: 111.0))
    outage.is_over()

    assert outage.grace == longest + 0.5


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["worker", "poller"])
def test_after_an_outage_nobody_takes_over_at_once_and_everybody_in_the_end(
    backend: RedisBackend,
    redis: Redis,
    make_worker: MakeWorker,
    start: Callable[[Worker], Worker],
    kind: str,
) -> None:
    [task_id] = push(NOTE)
    claim_one(Consumer())
    end_lease(redis, task_id)
    worker = make_worker() if kind == "worker" else Poller()
    worker.outage = Outage(harmless=0.0)
    worker.outage.goes_on(RedisUnavailable("It is away."))
    worker.tick()

    assert counts() == {"running": 1}

    start(worker)
    assert reaches(successful=1) if kind == "worker" else reaches(ready=1)
    info = TaskQueue().get(task_id)
    assert info is not None
    assert info.crashes == 1 if kind == "poller" else info.worker_ids
