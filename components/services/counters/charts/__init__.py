"""
Charts of counters (their time, their lines and points) and of sums of days (their bars). Templates draw them as SVG.
"""

from components.services.counters.charts.bars import MOST_LAYERS, Bars
from components.services.counters.charts.figures import Chart, Gauge
from components.services.counters.charts.spans import Span, offered_spans, past_times

__all__ = ["MOST_LAYERS", "Bars", "Chart", "Gauge", "Span", "offered_spans", "past_times"]
