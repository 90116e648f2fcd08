"""
Curves over the number of buyers, as an SVG that needs no library to draw and no script to read.

Both axes are logarithmic, since the strategies differ by orders of magnitude. The picture has its own background,
light or dark as the reader's system prefers, so it is legible everywhere. Besides its colour, each curve has its own
dash pattern and label.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT = 860, 400  # size of the whole picture
_TOP, _BOTTOM, _LEFT, _BETWEEN = 64, 52, 58, 72  # margins around the panels, and the gap between them
_TITLE = "Buying in the market of the book: WATCH, one lock for the market, a lock for each item"
_WORDS = (
    "More purchases per second, and fewer milliseconds for each, are better; the figures are in the table."
)
_GRID_LABEL = 7  # pixels from a label to its grid line

_STYLE = """
  text { font: 12px system-ui, sans-serif; fill: var(--ink) }
  .title { font-weight: 600; font-size: 13px }
  .ground { fill: var(--ground) }
  .grid { stroke: var(--grid) }
  .curve { fill: none; stroke-width: 2.5; stroke-linejoin: round }
  .c0 { stroke: var(--c0) } circle.c0 { fill: var(--c0) }
  .c1 { stroke: var(--c1); stroke-dasharray: 7 4 } circle.c1 { fill: var(--c1); stroke-dasharray: none }
  .c2 { stroke: var(--c2); stroke-dasharray: 2 4 } circle.c2 { fill: var(--c2); stroke-dasharray: none }
  svg { --ground: #ffffff; --ink: #1f2328; --grid: #d1d9e0; --c0: #b35900; --c1: #0969da; --c2: #1a7f37 }
  @media (prefers-color-scheme: dark) {
    svg { --ground: #0d1117; --ink: #e6edf3; --grid: #30363d; --c0: #f0a04b; --c1: #58a6ff; --c2: #56d364 }
  }
"""


@dataclass(frozen=True)
class Panel:
    """One chart: its title, and the points of each curve."""

    title: str
    curves: Mapping[str, Sequence[tuple[int, float]]]


class _Scale:
    """Converts values to pixels by their logarithms."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self.low, self.high = low, high
        self._start = start
        self._factor = (end - start) / (math.log10(high) - math.log10(low))

    def __call__(self, value: float) -> float:
        return self._start + (math.log10(max(value, self.low)) - math.log10(self.low)) * self._factor


def draw(panels: Sequence[Panel]) -> str:
    """Return the picture as SVG, with a title and a description for screen readers."""
    width = (_WIDTH - _LEFT - _BETWEEN * (len(panels) - 1) - 16) / len(panels)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-labelledby="t d">',
        f'<title id="t">{escape(_TITLE)}</title>',
        f'<desc id="d">{escape(_WORDS)}</desc>',
        f"<style>{_STYLE}</style>",
        f'<rect class="ground" width="{_WIDTH}" height="{_HEIGHT}" rx="6"/>',
        *_legend(list(panels[0].curves)),
    ]
    for number, panel in enumerate(panels):
        parts += _panel(panel, _LEFT + number * (width + _BETWEEN), width)
    return "\n".join([*parts, "</svg>", ""])


def _legend(names: Sequence[str]) -> Iterator[str]:
    left = float(_LEFT)
    for number, name in enumerate(names):
        yield f'<path class="curve c{number}" d="M{left:.0f} 20h34"/>'
        yield f'<text x="{left + 42:.0f}" y="24">{escape(name)}</text>'
        left += 42 + 7 * len(name) + 28


def _panel(panel: Panel, left: float, width: float) -> Iterator[str]:
    bottom = _HEIGHT - _BOTTOM
    values = [value for points in panel.curves.values() for _, value in points if value > 0]
    counts = [count for count, _ in next(iter(panel.curves.values()))]
    across = _Scale(counts[0], counts[-1], left, left + width)
    up = _Scale(
        10 ** math.floor(math.log10(min(values))), 10 ** math.ceil(math.log10(max(values))), bottom, _TOP
    )
    yield f'<text class="title" x="{left:.0f}" y="{_TOP - 14}">{escape(panel.title)}</text>'
    for power in range(round(math.log10(up.low)), round(math.log10(up.high)) + 1):
        height = up(10.0**power)
        yield f'<path class="grid" d="M{left:.1f} {height:.1f}h{width:.1f}"/>'
        label = f"{10.0**power:,.10g}"
        yield f'<text x="{left - _GRID_LABEL:.1f}" y="{height + 4:.1f}" text-anchor="end">{label}</text>'
    for count in counts:
        yield f'<text x="{across(count):.1f}" y="{bottom + 20}" text-anchor="middle">{count}</text>'
    yield f'<text x="{left + width / 2:.1f}" y="{bottom + 40}" text-anchor="middle">buyers</text>'
    for number, points in enumerate(panel.curves.values()):
        line = " ".join(f"{across(count):.1f},{up(value):.1f}" for count, value in points)
        yield f'<polyline class="curve c{number}" points="{line}"/>'
        for count, value in points:
            yield f'<circle class="c{number}" cx="{across(count):.1f}" cy="{up(value):.1f}" r="3"/>'
