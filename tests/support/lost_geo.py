"""The scripts of tables of addresses, each with what is done when its calls are repeated."""

from __future__ import annotations

from redis import Redis

from components.services.geo.importing import activate, put, remove
from components.services.geo.layout import Manifest
from tests.support.repeating import Act, cases

case = cases("geo")


def manifest(parts: int) -> Manifest:
    return Manifest(1, 1, 10, 5, 10, ["digest"] * parts, "test")


def imported(version: str) -> None:
    for number in range(2):
        put("default", version, number, b"part")
    activate("default", version, manifest(2))


@case
def put_first(redis: Redis) -> Act:
    return lambda: put("default", "new", 0, b"part")


@case
def put_of_the_current_version(redis: Redis) -> Act:
    imported("new")
    return lambda: put("default", "new", 1, b"part")


@case
def activate_first(redis: Redis) -> Act:
    for number in range(2):
        put("default", "new", number, b"part")
    return lambda: activate("default", "new", manifest(2))


@case
def activate_after_another(redis: Redis) -> Act:
    imported("old")
    return activate_first(redis)


@case
def activate_without_a_part(redis: Redis) -> Act:
    imported("old")
    put("default", "new", 1, b"part")
    return lambda: activate("default", "new", manifest(3))


@case
def activate_what_is_current(redis: Redis) -> Act:
    imported("new")
    return lambda: activate("default", "new", manifest(2))


@case
def remove_first(redis: Redis) -> Act:
    imported("old")
    imported("new")
    return lambda: remove("default")
