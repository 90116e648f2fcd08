"""What counts lines: the built-in counting of places is one, and so are classes of one's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from components.services.logs.lines.columns import Columns


class Callback(Protocol):
    """
    One that is given each block of lines, and asked now and then for what it has counted.

    It is made without arguments, again whenever what it had counted was in vain: chunks whose lease was over are
    counted by others. So it keeps sums in itself, and does nothing else: what else it did would be done twice.
    """

    def block(self, columns: Columns) -> None:
        """Count these lines."""

    def flush(self) -> Mapping[str, Mapping[str, int]]:
        """Sums since the last time, to be added to tables: name of a table -> member -> count. It begins anew."""
