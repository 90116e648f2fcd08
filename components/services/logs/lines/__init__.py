"""Lines of logs, read and counted by day and by the place of their address. This needs the extra "logs"."""

from components.services.logs.lines import extras  # noqa: F401  (first: it tells what is missing)
from components.services.logs.lines.addresses import parse_address
from components.services.logs.lines.cells import Cells
from components.services.logs.lines.columns import Callback, Columns, Line, Reason
from components.services.logs.lines.counting import Counting, Counts, LineReader, Rejected, Tally
from components.services.logs.lines.formats import (
    Book,
    Combined,
    Format,
    JsonLines,
    Parts,
    Pattern,
    find_format,
)
from components.services.logs.lines.kernels import KERNELS, Kernel, choose_kernel
from components.services.logs.lines.place_table import PlaceTable, Ranges
from components.services.logs.lines.values import Spans, Values

__all__ = [
    "KERNELS",
    "Book",
    "Callback",
    "Cells",
    "Columns",
    "Combined",
    "Counting",
    "Counts",
    "Format",
    "JsonLines",
    "Kernel",
    "Line",
    "LineReader",
    "Parts",
    "Pattern",
    "PlaceTable",
    "Ranges",
    "Reason",
    "Rejected",
    "Spans",
    "Tally",
    "Values",
    "choose_kernel",
    "find_format",
    "parse_address",
]
