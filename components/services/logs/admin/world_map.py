"""The map of the traffic page: countries in colours that stand for their numbers of lines."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from components.services.geo import Outline, country_outlines

_COLOURS = 5  # besides the one of countries without lines


@dataclass(frozen=True)
class Country:
    """A country with lines."""

    code: str
    outline: Outline
    #: From 1 to 5.
    colour: int
    title: str
    #: The query of the page on it.
    query: str


@dataclass(frozen=True)
class Shade:
    """A colour, and the numbers of lines that it stands for."""

    colour: int
    first: int
    #: None for the last one.
    last: int | None


@dataclass(frozen=True)
class WorldMap:
    """The countries that can be drawn, and the lines from elsewhere."""

    width: int
    height: int
    countries: Sequence[Country]
    #: The path of all other countries.
    ground: str
    shades: Sequence[Shade]
    #: Lines from addresses whose country is unknown, or is not on the map.
    elsewhere: int

    @classmethod
    def of(
        cls, counts: Mapping[str, int], title: Callable[[str, int], str], query: Callable[[str], str]
    ) -> WorldMap:
        """Return the map of these lines by country. *title* and *query* are asked for each that has some."""
        outlines = country_outlines()
        drawn = {code: counts.get(code, 0) for code in outlines.countries}
        starts = first_lines(drawn.values())
        fainter = _COLOURS - len(starts)  # colours that are not needed; the last one always is the strongest
        countries = [
            Country(code, outline, fainter + bisect_right(starts, count), title(code, count), query(code))
            for code, outline in outlines.countries.items()
            if (count := drawn[code])
        ]
        ground = "".join(outline.path for code, outline in outlines.countries.items() if not drawn[code])
        ends: list[int | None] = [following - 1 for _first, following in pairwise(starts)]
        bounds = zip(starts, [*ends, None], strict=True) if starts else ()
        shades = [Shade(number, *each) for number, each in enumerate(bounds, fainter + 1)]
        elsewhere = sum(counts.values()) - sum(drawn.values())
        return cls(outlines.width, outlines.height, countries, ground, shades, elsewhere)

    @property
    def links(self) -> SafeString:
        """The shapes of the countries as links; a template takes four times as long for these hundreds."""
        return format_html_join(
            "\n",
            '<a class="map-{}" data-key="{}" tabindex="-1" href="?{}"><title>{}</title>{}</a>',
            (
                (each.colour, each.code, each.query, each.title, _drawn(each.outline))
                for each in self.countries
            ),
        )


def _drawn(outline: Outline) -> SafeString:
    if outline.path:
        return format_html('<path d="{}"/>', outline.path)
    return format_html('<circle cx="{}" cy="{}" r="9"/>', str(outline.x), str(outline.y))


def first_lines(counts: Iterable[int]) -> list[int]:
    """
    Return the smallest number of lines of each colour: round numbers, for countries with these numbers of lines. Each
    colour stands for about as many times more lines than the one before: a few countries usually have most of them,
    and steps of equal size would show all others alike.
    """
    used = [count for count in counts if count > 0]
    if not used:
        return []
    least, most = min(used), max(used)
    return sorted({_round(least * (most / least) ** (number / _COLOURS)) for number in range(_COLOURS)})


def _round(number: float) -> int:
    """Return the largest of 1, 2, 5, 10, 20, 50, … that is not above *number*."""
    unit: int = 10 ** (len(str(int(number))) - 1)
    return max(each for each in (unit, 2 * unit, 5 * unit) if each <= number)
