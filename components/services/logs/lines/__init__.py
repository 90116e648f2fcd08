"""Lines of logs, counted by day and by the place of their address. Needs the extra "logs"."""

from components.services.logs.lines import extras  # noqa: F401  (the first: it says what is missing)
from components.services.logs.lines.addresses import parse_address
from components.services.logs.lines.callbacks import Callback
from components.services.logs.lines.cells import Cells
from components.services.logs.lines.columns import Columns, Reason
from components.services.logs.lines.counting import Counting, Counts
from components.services.logs.lines.formats import Book, Combined, Format, JsonLines, Pattern, find_format
from components.services.logs.lines.kernels import KERNELS, Kernel, choose_kernel
from components.services.logs.lines.places import PlaceTable, Ranges
from components.services.logs.lines.reading import LineReader, Rejected, Tally

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
    "LineReader",
    "Pattern",
    "PlaceTable",
    "Ranges",
    "Reason",
    "Rejected",
    "Tally",
    "choose_kernel",
    "find_format",
    "parse_address",
]
