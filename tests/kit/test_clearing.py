"""What cache.clear() deletes, and where the caches of a project lie: on one database, two, or in a cluster."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.conf import settings
from django.core.cache import caches
from django.core.exceptions import ImproperlyConfigured
from django.test.utils import override_settings
from redis import Redis

from components.embedded import EmbeddedServer
from components.kit.client import get_client
from components.locations import with_database
from components.services.chat import Chat, Inbox
from components.services.queues import Consumer, TaskQueue
from components.testing import ClusterServer, empty
from tests.support.queues import ECHO, claim, ids

BACKEND = "django_redis.cache.RedisCache"
CLUSTER = {"CLIENT_CLASS": "components.cache.ClusterClient"}


@contextmanager
def site(default: str, ours: str, options: dict[str, Any] | None = None, **more: Any) -> Iterator[None]:
    """A project whose default cache is at *default*, and whose queues are at *ours*."""
    found = {
        "default": {"BACKEND": BACKEND, "LOCATION": default, "OPTIONS": options or {}, **more},
        "components": {"BACKEND": BACKEND, "LOCATION": ours, "OPTIONS": options or {}},
    }
    with override_settings(CACHES=found, COMPONENTS={"CACHE": "components"}):
        yield


def use_everything() -> tuple[str, Chat]:
    """A task, a chat and cached values: enough for several scans."""
    task = TaskQueue().push(ECHO)
    chat = Chat.create("joe", members=["jeff"], text="hello")
    caches["default"].set_many({f"item:{number}": number for number in range(1_200)})
    caches["default"].set("item:0", "of another version", version=2)
    return task, chat


def assert_only_the_cache_is_empty(task: str, chat: Chat) -> None:
    assert caches["default"].get_many([f"item:{number}" for number in range(1_200)]) == {}
    assert caches["default"].get("item:0", version=2) is None
    assert ids(claim(Consumer())) == [task]
    [news] = Inbox("jeff").fetch()
    assert news.chat_id == chat.id


KEY_FUNCTIONS: dict[str, Callable[[str, str, int], str]] = {
    "hashed keys": lambda key, prefix, version: f"{prefix}:{version}:{key.encode().hex()}",
    "a number as version": lambda key, prefix, version: f"{prefix}:{version:d}:{key}",
    "version first": lambda key, prefix, version: f"{version}:{prefix}:{key}",
    "all hashed": lambda key, prefix, version: f"{prefix}:{version}:{key}".encode().hex(),
    "no prefix": lambda key, prefix, version: f"{version}:{key}",
    "nothing but the key": lambda key, prefix, version: key,
    "no end of the prefix": lambda key, prefix, version: f"{prefix}{key}",
}


@pytest.mark.parametrize("name", KEY_FUNCTIONS)
def test_clearing_deletes_what_the_key_function_has_made_or_refuses(redis: Redis, name: str) -> None:
    spared = {
        **settings.CACHES["default"],
        "OPTIONS": {"CLIENT_CLASS": "components.cache.Client"},
        "KEY_PREFIX": "shop",
        "KEY_FUNCTION": KEY_FUNCTIONS[name],
    }
    with override_settings(CACHES={"default": spared}, COMPONENTS={}):
        redis.set("others:1:a", "b")
        caches["default"].set("a", 1)
        if "no" in name or name == "all hashed":
            with pytest.raises(ImproperlyConfigured):
                caches["default"].clear()
            assert redis.dbsize() == 2
        else:
            caches["default"].set("a", 2, version=2)
            caches["default"].clear()
            assert redis.keys() == [b"others:1:a"]


@pytest.mark.parametrize(
    "client", ["components.cache.Client", "components.cache.SentinelClient", "components.cache.ClusterClient"]
)
def test_a_cache_that_ignores_errors_ignores_outages(client: str) -> None:
    options: dict[str, Any] = {"CLIENT_CLASS": client, "IGNORE_EXCEPTIONS": True}
    if "Sentinel" in client:
        options |= {
            "CONNECTION_FACTORY": "components.cache.SentinelConnectionFactory",
            "SENTINELS": [("127.0.0.1", 1)],
        }
    with site("redis://127.0.0.1:1", "redis://127.0.0.1:1", options):
        caches["default"].clear()
        assert caches["default"].get("a") is None
        assert not caches["default"].set("a", 1)


def test_what_takes_several_keys_takes_those_of_all_slots(
    redis_cluster: Redis, redis_cluster_server: ClusterServer
) -> None:
    with site(redis_cluster_server.url, redis_cluster_server.url, CLUSTER):
        cache: Any = caches["default"]
        cache.sadd("a", 1, 2, 3)
        cache.sadd("b", 2, 3, 4)

        assert (cache.sdiff("a", "b"), cache.sinter("a", "b"), cache.sunion("a", "b")) == (
            {1},
            {2, 3},
            {1, 2, 3, 4},
        )
        assert (cache.sinterstore("c", "a", "b"), cache.smembers("c")) == (2, {2, 3})
        assert (cache.sdiffstore("c", "a", "a"), cache.smembers("c")) == (0, set())
        assert (cache.smove("a", "b", 1), cache.smove("a", "b", 9), cache.smembers("b")) == (
            True,
            False,
            {1, 2, 3, 4},
        )


@pytest.mark.parametrize("prefix", ["", "components", "components:cache", "[shop]*"])
def test_clearing_a_cache_of_a_cluster_leaves_all_that_is_not_its_own(
    redis_cluster: Redis, redis_cluster_server: ClusterServer, prefix: str
) -> None:
    url, production = redis_cluster_server.url, {"CACHE": "components", "PREFIX": "production"}
    with site(url, url, CLUSTER, KEY_PREFIX=prefix):
        task, chat = use_everything()
        caches["default"].clear()
        assert_only_the_cache_is_empty(task, chat)

    with site(url, url, CLUSTER, KEY_PREFIX="staging"):
        caches["components"].set("theirs", 1)
        with override_settings(COMPONENTS=production):
            task = TaskQueue().push(ECHO)
        caches["default"].clear()
        assert caches["components"].get("theirs") == 1
        with override_settings(COMPONENTS=production):
            assert ids(claim(Consumer())) == [task]


def test_our_client_spares_the_app_even_where_it_shares_a_database(redis: Redis) -> None:
    spared = {**settings.CACHES["default"], "OPTIONS": {"CLIENT_CLASS": "components.cache.Client"}}
    with override_settings(CACHES={"default": spared}, COMPONENTS={}):
        task, chat = use_everything()

        caches["default"].clear()

        assert_only_the_cache_is_empty(task, chat)


def test_a_test_leads_all_caches_of_the_server_elsewhere_each_to_its_own_database(
    redis_server: EmbeddedServer,
) -> None:
    with site("redis://nowhere.example/0", "redis://nowhere.example/1"), empty(redis_server) as client:
        task, chat = use_everything()
        caches["default"].clear()

        assert get_client().connection_pool is client.connection_pool
        assert_only_the_cache_is_empty(task, chat)
    assert settings.CACHES["default"]["LOCATION"].startswith("unix:///nowhere")


def test_the_same_server_with_another_database() -> None:
    for url, expected in {
        "redis://shop.example": "redis://shop.example/3",
        "redis://joe:secret@shop.example:1/0?protocol=2": "redis://joe:secret@shop.example:1/3?protocol=2",
        "unix:///run/redis.sock?db=1&protocol=2": "unix:///run/redis.sock?protocol=2&db=3",
    }.items():
        assert with_database(url, 3) == expected
