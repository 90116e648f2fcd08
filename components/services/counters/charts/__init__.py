"""
Charts of counters (their time, their lines and points) and of sums of days (their bars). Templates draw them as SVG.
"""

from components.services.counters.charts.bars import MOST_LAYERS, Bars
from components.services.counters.charts.figures import (
    MOST_LINES,
    PERCENTS,
    Chart,
    Gauge,
    Percentiles,
    charts_of,
    counted_line,
    percentile_chart,
    sparkline,
)
from components.services.counters.charts.spans import (
    MOST_SLICES,
    MOST_SUMMED,
    Span,
    offered_spans,
    past_times,
)

__all__ = [
    "MOST_LAYERS",
    "MOST_LINES",
    "MOST_SLICES",
    "MOST_SUMMED",
    "PERCENTS",
    "Bars",
    "Chart",
    "Gauge",
    "Percentiles",
    "Span",
    "charts_of",
    "counted_line",
    "offered_spans",
    "past_times",
    "percentile_chart",
    "sparkline",
]
