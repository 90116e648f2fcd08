"""
Two ways to do the same work, which differ only in their speed; a test compares them.

"numba" is compiled to machine code when it is first used. "naive" is a loop in plain Python that defines what is
right. Both return the same Columns. The default is the fastest that is installed.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from components.conf import LOG_KERNELS, conf
from components.exceptions import ExtraNotInstalled, UnknownKernel
from components.services.logs.lines.cells import Cells
from components.services.logs.lines.columns import Columns
from components.services.logs.lines.extras import INSTALL, has_numba
from components.services.logs.lines.formats import Format
from components.services.logs.lines.place_table import Places, PlaceTable
from components.services.logs.lines.values import Spans, Values


class Kernel(Protocol):
    """The work on one block."""

    name: str

    def columns(self, block: bytes, form: Format) -> Columns:
        """Read the lines of *block*. The last line need not have an end."""

    def places(self, columns: Columns, table: PlaceTable) -> Places:
        """Return the place of each line."""

    def count(self, cells: Cells, days: NDArray[np.int32], places: Places) -> None:
        """Add 1 for each line to the cell of its day and place."""

    def spans(self, columns: Columns, form: Format) -> Spans:
        """Return where the path, the referrer and the agent of each line are. The format has parts()."""

    def values(self) -> Values:
        """Return a place for different values of one of these, without any."""


#: Names for COMPONENTS["LOG_KERNEL"] and for arguments, the fastest kernel first.
KERNELS = LOG_KERNELS[1:]
_CLASSES = {"numba": ("compiled", "Compiled"), "naive": ("naive", "Naive")}


def choose_kernel(name: str | None = None) -> Kernel:
    """Return the kernel of this name, or that of the settings. Raises UnknownKernel, ExtraNotInstalled."""
    name = name or conf().log_kernel
    if name == "auto":
        name = "numba" if has_numba() else "naive"
    if name not in KERNELS:
        raise UnknownKernel(f"There is no kernel {name!r}; there are: auto, {', '.join(KERNELS)}.")
    if name == "numba" and not has_numba():
        raise ExtraNotInstalled(f"The kernel numba is not installed. Install it: {INSTALL}")
    module, kind = _CLASSES[name]
    made: Callable[[], Kernel] = getattr(import_module(f"{__name__}.{module}"), kind)
    return made()
