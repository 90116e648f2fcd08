"""Lines of logs, counted by day and by the place of their address. Needs the extra "logs"."""

from components.services.logs import extras as extras  # the first: it says what is missing
from components.services.logs.addresses import parse_address
from components.services.logs.columns import Columns, Reason
from components.services.logs.counting import Counting, Counts, Rejected
from components.services.logs.formats import Book, Combined, Format, JsonLines, Pattern, find_format
from components.services.logs.kernels import KERNELS, choose_kernel
from components.services.logs.places import PlaceTable, Ranges

__all__ = [
    "KERNELS",
    "Book",
    "Columns",
    "Combined",
    "Counting",
    "Counts",
    "Format",
    "JsonLines",
    "Pattern",
    "PlaceTable",
    "Ranges",
    "Reason",
    "Rejected",
    "choose_kernel",
    "find_format",
    "parse_address",
]
