"""Counters over time: how often something happened, by the second, the minute, the hour."""

# Read counter.py, buffer.py and lua/add.lua first, then reader.py and precisions.py, then charts/.

from components.services.counters.additions import Sum, cumulated, read_sums, sums_key
from components.services.counters.buffer import aflush, count, finish, flush, forget, measure, prepare
from components.services.counters.cleaning import Cleaned, clean
from components.services.counters.counter import Counter
from components.services.counters.histograms import RELATIVE_ERROR, Histogram, Measured
from components.services.counters.marks import Mark, Marks
from components.services.counters.measuring import (
    beside,
    counted,
    observe,
    pattern_of,
    sum_up,
    tally,
    tally_each,
    timed,
    took,
)
from components.services.counters.reader import CounterInfo, CounterReader, Ranked, recent
from components.services.counters.series import Fill, Sample, Series

__all__ = [
    "RELATIVE_ERROR",
    "Cleaned",
    "Counter",
    "CounterInfo",
    "CounterReader",
    "Fill",
    "Histogram",
    "Mark",
    "Marks",
    "Measured",
    "Ranked",
    "Sample",
    "Series",
    "Sum",
    "aflush",
    "beside",
    "clean",
    "count",
    "counted",
    "cumulated",
    "finish",
    "flush",
    "forget",
    "measure",
    "observe",
    "pattern_of",
    "prepare",
    "read_sums",
    "recent",
    "sum_up",
    "sums_key",
    "tally",
    "tally_each",
    "timed",
    "took",
]
