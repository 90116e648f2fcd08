"""
Charts of counters (their time, their lines and points) and of sums of days (their bars). Templates draw them as SVG.
"""

from components.services.counters.charts.bars import MOST_LAYERS, Bars
from components.services.counters.charts.figures import MOST_LINES, Chart, Line, sparkline
from components.services.counters.charts.spans import (
    MOST_SLICES,
    MOST_SUMMED,
    FamilySeries,
    Span,
    offered_spans,
)

__all__ = [
    "MOST_LAYERS",
    "MOST_LINES",
    "MOST_SLICES",
    "MOST_SUMMED",
    "Bars",
    "Chart",
    "FamilySeries",
    "Line",
    "Span",
    "offered_spans",
    "sparkline",
]
