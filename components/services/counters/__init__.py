"""Counters over time: how often something happened, by the second, the minute, the hour."""

from components.services.counters.buffers import aflush, count, finish, flush, forget, prepare
from components.services.counters.cleaning import Cleaned, clean
from components.services.counters.counters import Counter
from components.services.counters.measuring import beside, counted, timed
from components.services.counters.readers import CounterReader
from components.services.counters.records import CounterInfo, Fill, Ranked, Sample, Series
from components.services.counters.tallies import tally, tally_each

__all__ = [
    "Cleaned",
    "Counter",
    "CounterInfo",
    "CounterReader",
    "Fill",
    "Ranked",
    "Sample",
    "Series",
    "aflush",
    "beside",
    "clean",
    "count",
    "counted",
    "finish",
    "flush",
    "forget",
    "prepare",
    "tally",
    "tally_each",
    "timed",
]
