"""Traffic: lines of logs by day and by where their addresses live, and what is told of them."""

from components.services.logs.traffic.records import DayTotal, Others, Report, Row
from components.services.logs.traffic.reports import MOST_DAYS, MOST_ROWS, Traffic
from components.services.logs.traffic.sheets import NAMES, sheet, write_csv

__all__ = [
    "MOST_DAYS",
    "MOST_ROWS",
    "NAMES",
    "DayTotal",
    "Others",
    "Report",
    "Row",
    "Traffic",
    "sheet",
    "write_csv",
]
