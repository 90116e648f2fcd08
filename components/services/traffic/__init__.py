"""Traffic: lines of logs by day and by where their addresses live, and what is told of them."""

from components.services.traffic.records import DayTotal, Others, Report, Row
from components.services.traffic.reports import MOST_DAYS, MOST_ROWS, Traffic
from components.services.traffic.sheets import sheet

__all__ = ["MOST_DAYS", "MOST_ROWS", "DayTotal", "Others", "Report", "Row", "Traffic", "sheet"]
