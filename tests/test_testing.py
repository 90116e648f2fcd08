"""The pytest plugin as a customer's project uses it."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import SynchronousOnlyOperation
from django.test import override_settings
from django.test.utils import _TestState
from redis import Redis

from components.embedded import EmbeddedServer
from components.exceptions import RedisNotPrivate, RedisUnavailable
from components.kit import test_guard as test_runs
from components.kit.client import get_client
from components.kit.test_guard import is_test_run  # as it was before tests/conftest.py
from components.services.chat.page import badge
from components.services.counters import buffer, count
from components.services.queues import Consumer, NewTask, TaskQueue, keys
from components.services.rates import RateLimit
from components.testing import arun_tasks, empty, let_pass, redis_at, run_tasks
from tests.support.queues import ECHO, options
from tests.support.waiting import eventually

ROOT = Path(__file__).resolve().parents[1]

SETTINGS = """
SECRET_KEY = "a"
INSTALLED_APPS = ["components"]
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
    "shop": {
        "BACKEND": "django_redis.cache.RedisCache",
        "LOCATION": "redis://redis.example.com",
        "KEY_PREFIX": "shop",
        "OPTIONS": {"PASSWORD": "secret", "SERIALIZER": "django_redis.serializers.json.JSONSerializer"},
    },
}
COMPONENTS = {"CACHE": "shop"}
"""
CONFTEST = 'pytest_plugins = ["components.testing"]'
TESTS = """
import pytest
from django.core.cache import caches

@pytest.mark.parametrize("time", ["first", "second"])
def test_redis_is_empty_each_time(redis, time):
    assert redis.dbsize() == 0
    redis.set("sword", "sold")

def test_the_cache_is_there_with_its_own_options(redis):
    caches["shop"].set("sword", ["sold"])
    assert redis.get("shop:1:sword") == b'["sold"]'
"""


@pytest.fixture
def shop(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project that uses the plugin, without a database."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makepyfile(shop_settings=SETTINGS, test_shop=TESTS)
    pytester.makeconftest(CONFTEST)
    return pytester


@pytest.mark.slow
def test_a_project_gets_a_redis_of_its_own_empty_each_time(shop: pytest.Pytester) -> None:
    # A shop need not have pytest-asyncio, which warns of each option that it is not given.
    run = shop.runpytest_subprocess("--ds=shop_settings", "-Werror", "-p", "no:asyncio")

    run.assert_outcomes(passed=3)


def test_the_clock_can_be_moved_and_tasks_run_in_a_loop(redis: Redis) -> None:
    TaskQueue().push("tests.tasks.fail")
    TaskQueue().push(ECHO, delay=59)
    with options(max_attempts=2, backoff=60):
        assert [info.state for info in run_tasks()] == ["delayed"]
        RateLimit("api", "1/m").acquire("joe")
        let_pass(60)
        RateLimit("api", "1/m").acquire("joe")
        assert sorted(info.state for info in asyncio.run(arun_tasks())) == ["dead", "successful"]
        soon = datetime.now(UTC) + timedelta(seconds=9)
        TaskQueue().push_many(
            [NewTask(name=ECHO, expires=each) for each in (9, 11, soon, soon + timedelta(9))]
        )
        let_pass(10)
        assert [info.state for info in run_tasks()] == ["dead", "successful"] * 2

        async def forgets() -> None:
            run_tasks()

        with pytest.raises(SynchronousOnlyOperation, match="arun_tasks"):
            asyncio.run(forgets())


@pytest.mark.django_db
def test_a_badge_without_redis_shows_nothing_and_is_logged_once(
    admin_user: User, caplog: pytest.LogCaptureFixture
) -> None:
    badge._warn.cache_clear()
    with in_a_test_run(LOCATION="redis://localhost:6379/0"):
        assert [badge.badge_of(admin_user) for _ in range(2)] == [{"is_shown": False}] * 2
    assert len([record for record in caplog.records if "chat_badge" in record.getMessage()]) == 1


def test_a_wait_of_an_earlier_test_takes_nothing_of_the_next(redis_server: EmbeddedServer) -> None:
    with empty(redis_server) as client, ThreadPoolExecutor() as pool:
        wait = pool.submit(lambda: Consumer().wait(["default"], 60))
        assert eventually(lambda: client.info("clients")["blocked_clients"] == 1)

        with empty(redis_server) as next_client:
            TaskQueue().push(ECHO)

            assert wait.result() is False
            assert next_client.llen(keys.QueueKeys("default", "default").wake) == 1


def test_options_hold_for_their_own_block_only(redis_server: EmbeddedServer) -> None:
    def timeout(client: Redis) -> object:
        return client.get_connection_kwargs().get("socket_timeout")

    with redis_at(redis_server.url) as first, redis_at(redis_server.url, SOCKET_TIMEOUT=3) as second:
        assert timeout(second) == 3
        first.ping()
    with redis_at(redis_server.url) as third:
        assert timeout(third) == timeout(first) != 3


def test_a_setting_that_is_changed_meanwhile_and_undone_later_brings_nothing_back(
    redis_server: EmbeddedServer,
) -> None:
    elsewhere = settings.CACHES["default"]["LOCATION"]
    change = override_settings(COMPONENTS={**settings.COMPONENTS, "PREFIX": "other"})
    with redis_at(redis_server.url):
        change.enable()
    change.disable()

    assert settings.CACHES["default"]["LOCATION"] == elsewhere
    with pytest.raises(RedisUnavailable):
        TaskQueue().names()


def in_a_test_run(**cache: Any) -> Any:
    return override_settings(
        COMPONENTS={**settings.COMPONENTS, "TEST_RUN": True},
        CACHES={"default": {**settings.CACHES["default"], **cache}},
    )


def test_a_test_run_is_what_django_has_set_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(test_runs, "_was_test_run", False)
    assert is_test_run()

    monkeypatch.delattr(_TestState, "saved_data")
    assert is_test_run(), "its last counts are sent after its end"

    monkeypatch.setattr(test_runs, "_was_test_run", False)
    assert not is_test_run()


@pytest.mark.parametrize(("recognised", "said", "refused"), [
    (True, None, True), (True, False, False), (False, None, False), (False, True, True),
])  # fmt: skip
def test_the_setting_comes_before_what_is_recognised(
    monkeypatch: pytest.MonkeyPatch, recognised: bool, said: bool | None, refused: bool
) -> None:
    monkeypatch.setattr(test_runs, "is_test_run", lambda: recognised)
    with override_settings(COMPONENTS={**settings.COMPONENTS, "TEST_RUN": said}):
        assert test_runs.is_refused() is refused


def test_what_a_test_asked_for_is_refused_without_showing_a_password() -> None:
    with in_a_test_run(LOCATION="redis://:secret@localhost:6379/0"), pytest.raises(RedisNotPrivate) as caught:
        get_client()

    assert "CACHES['default']" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert not isinstance(caught.value, RedisUnavailable), "a page would show it as an outage"


def test_a_private_server_is_allowed_until_it_is_given_back(redis: Redis) -> None:
    url = settings.CACHES["default"]["LOCATION"]
    with in_a_test_run():
        get_client().set("sword", "sold")
        with redis_at("unix:///nowhere/else"):
            get_client()
        with in_a_test_run(LOCATION="redis://localhost:6379/0"), pytest.raises(RedisNotPrivate):
            get_client()
        assert get_client().get("sword") == b"sold"

    assert test_runs._private == [url]


def test_counts_of_a_test_without_a_redis_are_dropped(caplog: pytest.LogCaptureFixture) -> None:
    with in_a_test_run():
        count("swords")
        buffer.finish()

        assert not buffer._buffer.counts
    assert not caplog.messages
