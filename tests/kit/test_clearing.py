"""What cache.clear() deletes, and where the caches of a project lie: on one database, two, or in a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.conf import settings
from django.core.cache import caches
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


def hidden(key: str, prefix: str, version: int | str) -> str:
    """A KEY_FUNCTION that shows nothing of the key."""
    return "/".join(str(part).encode().hex() for part in (prefix, version, key))


@pytest.mark.parametrize(
    "options",
    [
        *({"KEY_PREFIX": prefix} for prefix in ("", "components", "components:cache", "[shop]*")),
        {"KEY_FUNCTION": f"{__name__}.hidden"},
    ],
)
def test_clearing_a_cache_of_a_cluster_leaves_all_that_is_not_its_own(
    redis_cluster: Redis, redis_cluster_server: ClusterServer, options: dict[str, Any]
) -> None:
    url, production = redis_cluster_server.url, {"CACHE": "components", "PREFIX": "production"}
    with site(url, url, CLUSTER, **options):
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
