"""
Notes of what a process did: a line of JSON each, written at once, so that a killed process leaves all it has begun.

All instants are of the one clock of the machine, which is also the server's.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Notes:
    """Those of one process. Each line says who wrote it and what it is about."""

    def __init__(self, folder: Path, role: str) -> None:
        path = folder / f"{role}.{os.getpid()}.notes"
        self._file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)

    def write(self, kind: str, **facts: Any) -> None:
        os.write(self._file, json.dumps({"kind": kind, **facts}).encode() + b"\n")


def read_notes(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob("*.notes")):
        for line in path.read_text().splitlines(keepends=True):
            if line.endswith("\n"):  # of a line that was being written, its end is missing
                yield json.loads(line)


def now() -> float:
    return time.time()
