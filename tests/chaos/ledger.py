"""
The ledger: what each process of the cast did, in a file of its own, a JSON object a line.

A line is written by one write(), which no SIGKILL tears; one without its end does not count. Instants are by
components.kit.leases.clock(), which all processes of a machine share.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any, TypeAlias

from components.kit.leases import clock

#: The notes of all processes by their kind. Each has the id of its process as "pid", and says when as "at".
Notes: TypeAlias = defaultdict[str, list[dict[str, Any]]]


def note(kind: str, **facts: Any) -> None:
    """Add a line to the file of this process. CHAOS_FOLDER names the folder."""
    path = f"{os.environ['CHAOS_FOLDER']}/{os.getpid()}.notes"
    file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    try:
        os.write(
            file, json.dumps({"kind": kind, "pid": os.getpid(), "at": clock(), **facts}).encode() + b"\n"
        )
    finally:
        os.close(file)


def read_notes(folder: Path) -> Notes:
    """Return all notes, those of one process in their order."""
    found: Notes = defaultdict(list)
    for path in folder.glob("*.notes"):
        for line in path.read_text().splitlines(keepends=True):
            if line.endswith("\n"):
                noted = json.loads(line)
                found[noted["kind"]].append(noted)
    return found
