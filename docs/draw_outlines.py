"""
Draws components/services/geo/outlines.json again, from the countries of Natural Earth at 1:50m:

    npm pack world-atlas@2.0.2              # Natural Earth 4.1, in which neighbours share their border
    tar -xzf world-atlas-2.0.2.tgz package/countries-50m.json
    pip install pycountry                   # two letters for the number of a country
    python docs/draw_outlines.py package/countries-50m.json

Borders are simplified before outlines are put together from them, so neighbours still share each border. They are
drawn in the Natural Earth projection, which distorts neither areas nor shapes much.
"""

from __future__ import annotations

import json
import sys
from itertools import accumulate, pairwise
from math import hypot, radians
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[1] / "components/services/geo/outlines.json"
WIDTH = 2_000  # units of the map; twice the pixels of most windows
SOUTH, NORTH = -56.0, 83.7  # degrees; Antarctica is left out
DETAIL = 1.3  # units: a bend that is flatter is straightened
SPECK = 6.0  # square units: a smaller island is left out; a country that has only such is a point
#: Parts of the map that have no number of ISO 3166. Tables of addresses know them by these letters.
NAMED = {"Kosovo": "XK", "N. Cyprus": "CY", "Somaliland": "SO"}
LEFT_OUT = {"AQ"}

Point = tuple[float, float]


def project(longitude: float, latitude: float) -> Point:
    """Return the place on a map whose middle is at 0, 0, with the south below (Natural Earth projection)."""
    high = radians(latitude)
    square = high * high
    fourth = square * square
    wide = (
        0.8707 - 0.131979 * square + fourth * (-0.013791 + fourth * (0.003971 * square - 0.001529 * fourth))
    )
    down = 1.007226 + square * (0.015085 + fourth * (-0.044475 + 0.028874 * square - 0.005916 * fourth))
    return radians(longitude) * wide, -high * down


EDGE = project(180, 0)[0]
UNIT = WIDTH / (2 * EDGE)
TOP, BOTTOM = project(0, NORTH)[1] * UNIT, project(0, SOUTH)[1] * UNIT


def placed(place: Point) -> Point:
    """Return a place on the map, of its longitude and latitude."""
    x, y = project(*place)
    return (x + EDGE) * UNIT, y * UNIT - TOP


def straighten(line: list[Point]) -> list[Point]:
    """Leave out points (Douglas and Peucker) that are nearer to the line without them than DETAIL."""
    if len(line) < 3:
        return line
    (x, y), (to_x, to_y) = placed(line[0]), placed(line[-1])
    length = hypot(to_x - x, to_y - y)

    def away(place: Point) -> float:
        at_x, at_y = placed(place)
        if not length:
            return hypot(at_x - x, at_y - y)
        return abs((to_x - x) * (y - at_y) - (x - at_x) * (to_y - y)) / length

    at = max(range(1, len(line) - 1), key=lambda each: away(line[each]))
    if away(line[at]) < DETAIL:
        return [line[0], line[-1]]
    return straighten(line[: at + 1])[:-1] + straighten(line[at:])


def unrolled(ring: list[Point]) -> list[Point]:
    """Return the ring without steps of more than half of the globe: it may go on beyond 180 degrees."""
    found = ring[:1]
    for longitude, latitude in ring[1:]:
        turns = round((found[-1][0] - longitude) / 360)
        found.append((longitude + 360 * turns, latitude))
    return found


def cut(ring: list[Point], at: float, side: int) -> list[Point]:
    """Return the part of the ring that is east (1) or west (-1) of a longitude."""
    found: list[Point] = []
    for (x, y), (to_x, to_y) in zip(ring, ring[1:] + ring[:1], strict=True):
        if (x - at) * side >= 0:
            found.append((x, y))
        if (x - at) * (to_x - at) < 0:
            found.append((at, y + (to_y - y) * (at - x) / (to_x - x)))
    return found


def on_map(ring: list[Point]) -> list[list[Point]]:
    """Return the ring in one or two pieces on the map."""
    ring = unrolled(ring)
    pieces = []
    for turn in (-360, 0, 360):
        moved = [(x + turn, y) for x, y in ring]
        if piece := cut(cut(moved, -180, 1), 180, -1):
            pieces.append([placed(place) for place in piece])
    return pieces


def area(ring: list[Point]) -> float:
    pairs = zip(ring, ring[1:] + ring[:1], strict=True)
    return abs(sum(x * to_y - to_x * y for (x, y), (to_x, to_y) in pairs)) / 2


class Atlas:
    """The borders of a TopoJSON file in degrees, whole and straightened."""

    def __init__(self, found: dict[str, Any]) -> None:
        (wide, high), (left, low) = found["transform"]["scale"], found["transform"]["translate"]
        self.whole = []
        for arc in found["arcs"]:
            steps = zip(*(accumulate(each) for each in zip(*arc, strict=True)), strict=True)
            self.whole.append(unrolled([(x * wide + left, y * high + low) for x, y in steps]))
        self.short = [straighten(line) for line in self.whole]
        self.countries: list[dict[str, Any]] = found["objects"]["countries"]["geometries"]

    def pieces(self, arcs: list[int], lines: list[list[Point]]) -> list[list[Point]]:
        joined: list[Point] = []
        for arc in arcs:
            line = lines[arc] if arc >= 0 else lines[~arc][::-1]
            joined += line[1:] if joined else line
        return on_map(joined[:-1])

    def rings(self, country: dict[str, Any]) -> list[list[int]]:
        """Return the rings of a country, the largest first."""
        shapes = [country["arcs"]] if country["type"] == "Polygon" else country["arcs"]
        return sorted((ring for shape in shapes for ring in shape), key=lambda ring: -self.area(ring))

    def area(self, ring: list[int]) -> float:
        return sum(map(area, self.pieces(ring, self.whole)))


def path_of(ring: list[Point]) -> str:
    """Return whole numbers, each point relative to the one before."""
    points = [(round(x), round(y)) for x, y in ring]
    steps = [(x - a, y - b) for (a, b), (x, y) in pairwise(points)]
    moves = "".join(f"{x}{'' if y < 0 else ' '}{y} " for x, y in steps if x or y).replace(" -", "-").strip()
    return f"M{points[0][0]} {points[0][1]}l{moves}z" if moves else ""


def draw(atlas: Atlas) -> dict[str, Any]:
    from pycountry import countries

    outlines: dict[str, dict[str, Any]] = {}
    for each in atlas.countries:
        name = each["properties"]["name"]
        known = countries.get(numeric=str(each.get("id", "")))
        code = NAMED.get(name) or (known and known.alpha_2)
        if not code or code in LEFT_OUT:
            continue
        rings = atlas.rings(each)
        large = [ring for ring in rings if atlas.area(ring) >= SPECK]
        path = "".join(path_of(piece) for ring in large for piece in atlas.pieces(ring, atlas.short))
        if path:
            outlines[code] = {"path": outlines.get(code, {}).get("path", "") + path}
        elif code not in outlines:
            largest = atlas.pieces(rings[0], atlas.whole)[0]
            outlines[code] = {"at": [round(sum(each) / len(largest)) for each in zip(*largest, strict=True)]}
    return {
        "source": "Natural Earth 4.1, Admin 0 countries 1:50m, public domain; Natural Earth projection",
        "width": WIDTH,
        "height": round(BOTTOM - TOP),
        "countries": {code: outlines[code] for code in sorted(outlines)},
    }


if __name__ == "__main__":
    drawn = draw(Atlas(json.loads(Path(sys.argv[1]).read_bytes())))
    FILE.write_text(json.dumps(drawn, separators=(",", ":")).replace('},"', '},\n"') + "\n")
