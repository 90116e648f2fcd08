"""Sums for /metrics: added in memory, sent together, counted once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from django.test.utils import override_settings
from redis import Redis

from components.exceptions import RedisUnavailable
from components.kit.scripts import Call, Script
from components.services.counters import (
    cumulated,
    flush,
    forget,
    observe,
    read_sums,
    sum_up,
    sums_key,
    tally,
)
from components.services.counters.sums import SUM, Sum

METRICS = override_settings(COMPONENTS={"METRICS": True})


@pytest.fixture(autouse=True)
def _new_process() -> None:
    forget()


def sums(redis: Redis) -> dict[str, dict[str, Sum]]:
    flush()
    return read_sums(redis.hgetall(sums_key()))


@METRICS
def test_events_are_summed_up_by_what_they_were_of(redis: Redis) -> None:
    tally("tasks:enqueued", 2, of="mail")
    tally("tasks:enqueued", of="mail")
    tally("tasks:enqueued", of="a name with blanks")
    tally("locks:acquired")

    found = sums(redis)

    assert found["tasks:enqueued"] == {"mail": Sum(3), "a name with blanks": Sum(1)}
    assert found["locks:acquired"] == {"": Sum(1)}


@METRICS
def test_durations_are_a_histogram(redis: Redis) -> None:
    for seconds in (0.005, 0.02, 3_600.0, 0.02):
        observe("tasks:run", seconds, of="shop.pay")

    found = sums(redis)["tasks:run"]["shop.pay"]

    assert found.buckets == {"0.005": 1, "0.025": 2, "+Inf": 1}
    assert found.seconds == pytest.approx(3_600.045)
    bounds = dict(cumulated(found.buckets))
    assert (bounds["0.005"], bounds["0.025"], bounds["1800"], bounds["+Inf"]) == (1, 3, 3, 4)


@METRICS
def test_two_processes_add_to_the_same_sums(redis: Redis) -> None:
    sum_up("chat:sent", 2)
    flush()
    forget()
    sum_up("chat:sent", 3)

    assert sums(redis)["chat:sent"][""].count == 5


@METRICS
def test_names_beyond_a_limit_are_summed_up_together(redis: Redis) -> None:
    for number in range(250):
        sum_up("tasks:enqueued", of=f"queue-{number}")

    found = sums(redis)["tasks:enqueued"]

    assert len(found) == 201
    assert found["others"].count == 50


def test_nothing_is_added_unless_the_setting_says_so(redis: Redis) -> None:
    tally("tasks:enqueued", of="mail")
    observe("tasks:run", 1.0)
    sum_up("chat:sent")

    assert sums(redis) == {}
    assert redis.keys("*") == []


@METRICS
def test_a_call_without_an_answer_counts_once(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = type(SUM).outcomes

    def send_and_lose(self: Script, client: Redis, calls: Sequence[Call]) -> list[Any]:
        outcomes(self, client, calls)
        return [RedisUnavailable("The reply was lost.")] * len(calls)

    sum_up("chat:sent", 2)
    with monkeypatch.context() as patch:
        patch.setattr(type(SUM), "outcomes", send_and_lose)
        with pytest.raises(RedisUnavailable):
            flush()
    sum_up("chat:sent", 3)

    assert sums(redis)["chat:sent"][""].count == 5
