"""The scripts of tables of addresses, each with what is done while its reply gets lost. (test_lost_replies.py)"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redis import Redis

from components.services.geo.importing import activate, put, remove
from components.services.geo.layout import Manifest


def manifest(parts: int) -> Manifest:
    return Manifest(1, 1, 10, 5, 10, ["digest"] * parts, "test")


def imported(version: str) -> None:
    for number in range(2):
        put("default", version, number, b"part")
    activate("default", version, manifest(2))


def put_first(redis: Redis) -> Callable[[], Any]:
    return lambda: put("default", "new", 0, b"part")


def put_of_the_current_version(redis: Redis) -> Callable[[], Any]:
    imported("new")
    return lambda: put("default", "new", 1, b"part")


def activate_first(redis: Redis) -> Callable[[], Any]:
    for number in range(2):
        put("default", "new", number, b"part")
    return lambda: activate("default", "new", manifest(2))


def activate_after_another(redis: Redis) -> Callable[[], Any]:
    imported("old")
    return activate_first(redis)


def activate_without_a_part(redis: Redis) -> Callable[[], Any]:
    imported("old")
    put("default", "new", 1, b"part")
    return lambda: activate("default", "new", manifest(3))


def activate_what_is_current(redis: Redis) -> Callable[[], Any]:
    imported("new")
    return lambda: activate("default", "new", manifest(2))


def remove_first(redis: Redis) -> Callable[[], Any]:
    imported("old")
    imported("new")
    return lambda: remove("default")


CASES = {
    "geo/activate": [
        activate_first,
        activate_after_another,
        activate_without_a_part,
        activate_what_is_current,
    ],
    "geo/put": [put_first, put_of_the_current_version],
    "geo/remove": [remove_first],
}
