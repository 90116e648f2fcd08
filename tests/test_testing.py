"""The pytest plugin as a customer's project uses it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.conf import settings
from django.core.cache import caches
from django.test import override_settings
from redis import Redis

from components.conf import conf
from components.embedded import EmbeddedServer
from components.exceptions import RedisUnavailable
from components.services.queues import Consumer, TaskQueue, keys
from components.testing import empty, redis_at
from tests.support.queues import ECHO
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


def test_the_alias_is_what_it_was_when_the_test_is_over(redis_server: EmbeddedServer) -> None:
    before = settings.CACHES
    with empty(redis_server):
        assert settings.CACHES[conf().cache]["LOCATION"] == redis_server.url

    assert before == settings.CACHES


def test_a_wait_of_an_earlier_test_takes_nothing_of_the_next(redis_server: EmbeddedServer) -> None:
    with empty(redis_server) as client, ThreadPoolExecutor() as pool:
        wait = pool.submit(lambda: Consumer().wait(["default"], 60))
        assert eventually(lambda: client.info("clients")["blocked_clients"] == 1)

        with empty(redis_server) as next_client:
            TaskQueue().push(ECHO)

            assert wait.result() is False
            assert next_client.llen(keys.QueueKeys("default", "default").wake) == 1


def test_other_aliases_and_options_stay(redis_server: EmbeddedServer) -> None:
    with (
        override_settings(
            CACHES={
                "default": {
                    "BACKEND": "django_redis.cache.RedisCache",
                    "LOCATION": "a",
                    "KEY_PREFIX": "prefix",
                },
                "other": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"},
            }
        ),
        redis_at(redis_server.url, SOCKET_TIMEOUT=3) as client,
    ):
        assert caches["default"].key_prefix == "prefix"
        assert settings.CACHES["default"]["OPTIONS"] == {"SOCKET_TIMEOUT": 3}
        assert "other" in settings.CACHES
        assert client.ping()


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
