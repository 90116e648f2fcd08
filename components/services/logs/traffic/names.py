"""Names of the tables that aggregations fill and reports read."""

from __future__ import annotations

from datetime import date

from components.services.geo import Level

#: Its members are days, and it counts the lines of each.
DAYS = "days"


def daily(level: Level, day: date) -> str:
    """The table whose members are places, and which counts the lines of a day: "daily:country:2011-10-10"."""
    return f"daily:{level}:{day.isoformat()}"
