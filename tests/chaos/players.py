"""
What all players of the cast have in common: when to stop, whom to wait for, how to try again; and the ledger.

The ledger is what each process did, in a file of its own, a JSON object a line. A line is written by one write(),
which no SIGKILL tears; one without its end does not count. Instants are by components.kit.leases.clock(), which all
processes of a machine share.
"""

import json
import os
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, TypeAlias, TypeVar

from components.exceptions import RedisUnavailable
from components.kit.leases import clock

_T = TypeVar("_T")


@dataclass(frozen=True)
class Player:
    """One process of a role. *number* tells it from the others of its role, and stays when it is replaced."""

    folder: Path
    number: int
    random: Random

    @property
    def is_over(self) -> bool:
        """Whether the trouble is over, so that players come to an end."""
        return (self.folder / "over").exists()

    def is_alone(self, role: str) -> bool:
        """Whether nobody plays *role* any more."""
        return not any(self.folder.glob(f"{role}.*.pid"))

    def nap(self, longest: float) -> None:
        """Sleep for a random time of at most that many seconds."""
        time.sleep(self.random.uniform(0, longest))


@dataclass(frozen=True)
class Role:
    """So many players do *play*. Those of a *daemon* go on until all has settled; others return."""

    count: int
    play: Callable[[Player], None]
    is_daemon: bool = False


def insist(call: Callable[[], _T]) -> _T:
    """Repeat *call* until Redis answers, and return what it returns."""
    while True:
        try:
            return call()
        except RedisUnavailable:
            time.sleep(0.02)


#: The notes of all processes by their kind. Each has the id of its process as "pid", and says when as "at".
Notes: TypeAlias = defaultdict[str, list[dict[str, Any]]]


def note(kind: str, **facts: Any) -> None:
    """Add a line to the file of this process. CHAOS_FOLDER names the folder."""
    line = json.dumps({"kind": kind, "pid": os.getpid(), "at": clock(), **facts}).encode() + b"\n"
    path = Path(os.environ["CHAOS_FOLDER"]) / f"{os.getpid()}.notes"
    with path.open("ab", buffering=0) as file:
        file.write(line)


def read_notes(folder: Path) -> Notes:
    """Return all notes, those of one process in their order."""
    found: Notes = defaultdict(list)
    for path in folder.glob("*.notes"):
        for line in path.read_text().splitlines(keepends=True):
            if line.endswith("\n"):
                noted = json.loads(line)
                found[noted["kind"]].append(noted)
    return found
