"""The probes of processes."""

from __future__ import annotations

import pytest
from django.test import Client, override_settings
from redis import Redis

from components.testing import redis_at

pytestmark = pytest.mark.urls("tests.observing.urls")


def test_health_asks_nothing() -> None:
    answer = Client().get("/healthz")

    assert (answer.status_code, answer.content) == (200, b"ok\n")
    assert "no-store" in answer["Cache-Control"]
    assert Client().post("/healthz").status_code == 405


@pytest.mark.django_db
def test_ready_is_what_reaches_the_database_and_redis(redis: Redis) -> None:
    answer = Client().get("/readyz")

    assert (answer.status_code, answer.json()) == (200, {"database": "ok", "redis": "ok"})


@pytest.mark.django_db
def test_without_redis_it_is_not_ready_and_says_no_more_than_that() -> None:
    with redis_at("unix:///nowhere"):
        answer, without = Client().get("/readyz"), Client().get("/readyz?without=redis")

    assert (answer.status_code, answer.json()) == (503, {"database": "ok", "redis": "unavailable"})
    assert (without.status_code, without.json()) == (200, {"database": "ok"})


def test_without_the_database_it_is_not_ready(redis: Redis) -> None:
    # Tests without the mark django_db may not use it: that is an error as any other.
    answer = Client().get("/readyz")

    assert (answer.status_code, answer.json()) == (503, {"database": "unavailable", "redis": "ok"})


def test_nothing_is_mounted_by_itself() -> None:
    with override_settings(ROOT_URLCONF="components.urls"):
        assert Client().get("/metrics").status_code == 404
