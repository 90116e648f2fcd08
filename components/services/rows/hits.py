"""How many of the rows that are read were there, counted by name. (docs/counters.md)"""

from __future__ import annotations

from components.services.counters import tally


def tally_reading(name: str, asked: int, found: int) -> None:
    """Of so many rows so many were there, and good enough; once for each read, however many rows it has."""
    tally("rows:hit", found, of=name)
    tally("rows:missed", asked - found, of=name)
