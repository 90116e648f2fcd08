"""How the places of traffic are called, and where in them one can look closer. An id is "US/CA/Mountain View"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args
from urllib.parse import unquote

from components.services.geo import UNKNOWN, Level, place_name
from components.templatetags.control_room import legible

LEVELS: tuple[Level, ...] = get_args(Level)
#: Of the ids of what nobody knows anything of.
NOWHERE = UNKNOWN.id


def parts(place: str) -> list[str]:
    """Country, region and city, as far as they are known."""
    return [unquote(part) for part in place.split("/")] if place else []


def label(place: str, level: Level, within: str = "") -> str:
    """What it is called among those of its level; what it lies in *within* needs no saying."""
    if place == NOWHERE:
        return place
    name = "" if place == within else full_name(place)
    if within:
        name = name.removesuffix(f", {full_name(within)}")
    if len(parts(place)) > LEVELS.index(level):
        return name
    return f"{name} (no {level} known)" if name else f"no {level} known"


def full_name(place: str) -> str:
    """What it is called in the world, the smallest first: "California, United States", or "CA, US"."""
    name = place_name(place)
    if name == place:  # its country has no name
        name = ", ".join(reversed([part for part in parts(place) if part]))
    return legible(name)


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
