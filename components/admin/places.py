"""How the places of traffic are called, and where in them one can look closer. An id is "US/CA/Mountain View"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args
from urllib.parse import unquote

from components.services.geo import UNKNOWN, Level
from components.templatetags.control_room import legible

LEVELS: tuple[Level, ...] = get_args(Level)
#: Of the ids of what nobody knows anything of.
NOWHERE = UNKNOWN.id


def parts(place: str) -> list[str]:
    """Country, region and city, as far as they are known."""
    return [unquote(part) for part in place.split("/")] if place else []


def label(place: str, level: Level, within: str = "") -> str:
    """What it is called among those of its level, the smallest first; within another that needs no saying."""
    if place == NOWHERE:
        return place
    known = parts(place)
    own = [part for part in known[len(parts(within)) :] if part]
    name = legible(", ".join(reversed(own)))
    if len(known) > LEVELS.index(level):
        return name
    return f"{name} (no {level} known)" if name else f"no {level} known"


def full_name(place: str) -> str:
    """What it is called in the world."""
    return legible(", ".join(reversed([part for part in parts(place) if part])))


def closer(place: str, level: Level) -> Level | None:
    """The level by which it can be divided, if it is one of *level*."""
    number = LEVELS.index(level)
    if place == NOWHERE or level == LEVELS[-1] or len(parts(place)) <= number:
        return None
    return LEVELS[number + 1]


def around(place: str) -> Sequence[str]:
    """It, and what it lies in, the largest first: "US", "US/CA"."""
    pieces = place.split("/") if place else []
    return ["/".join(pieces[: length + 1]) for length in range(len(pieces))]
