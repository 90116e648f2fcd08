"""
The outlines of countries, for maps: drawn beforehand by docs/draw_outlines.py, and read once in a process.

They are those of Natural Earth (public domain), simplified, and already projected. The codes are those of tables of
addresses: ISO 3166, and XK for Kosovo. Antarctica is not on the map.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_FILE = Path(__file__).with_name("outlines.json")


@dataclass(frozen=True)
class Outline:
    """The shape of a country, in units of the map. One that is too small to have a shape is a point."""

    #: The data of an SVG path; "" if it is a point.
    path: str = ""
    x: int = 0
    y: int = 0


@dataclass(frozen=True)
class Outlines:
    """A map of the world."""

    width: int
    height: int
    #: By the code of the country. Points come last, so that they are drawn above shapes.
    countries: Mapping[str, Outline]


@cache
def country_outlines() -> Outlines:
    """Return the map of the world."""
    found = json.loads(_FILE.read_bytes())
    drawn = found["countries"]
    shapes = {code: Outline(each["path"]) for code, each in drawn.items() if "path" in each}
    points = {code: Outline("", *each["at"]) for code, each in drawn.items() if "at" in each}
    return Outlines(found["width"], found["height"], shapes | points)
