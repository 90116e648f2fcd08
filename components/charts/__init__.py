"""Charts of counters: which time, which lines, where each point lies. Templates draw them as SVG."""

from components.charts.figures import MOST_LINES, Chart, Line, sparkline
from components.charts.spans import MOST_SLICES, SPANS, Span, spans

__all__ = ["MOST_LINES", "MOST_SLICES", "SPANS", "Chart", "Line", "Span", "spans", "sparkline"]
