"""Traffic: lines of logs by day and by where their addresses live, and reports of them."""

from components.services.logs.traffic.report import NAMES, DayTotal, Others, Report, Row, sheet
from components.services.logs.traffic.slices import HOURS, Slices
from components.services.logs.traffic.tables import DIMENSIONS
from components.services.logs.traffic.traffic import MOST_DAYS, MOST_ROWS, Traffic
from components.services.logs.traffic.values import ValueReport, ValueRow

__all__ = [
    "DIMENSIONS",
    "HOURS",
    "MOST_DAYS",
    "MOST_ROWS",
    "NAMES",
    "DayTotal",
    "Others",
    "Report",
    "Row",
    "Slices",
    "Traffic",
    "ValueReport",
    "ValueRow",
    "sheet",
]
