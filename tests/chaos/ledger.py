"""
The ledger, read after the chaos: what was pushed, what ran when in which process, and when workers were idle.

What it says of runs comes from the tasks themselves, and nothing of it from Redis.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos import plan
from tests.chaos.recorder import BEAT

_STEADY = 3 * BEAT  # seconds between two beats of a pulse, at most
_IDLE = 0.5  # seconds: who begins nothing for less is fetching tasks, or handing them in


@dataclass
class Run:
    """A run of a task; *how* is "E" for an effect, "R" for an exception, "" if nobody knows its end."""

    pid: int
    begin: float
    end: float | None = None
    how: str = ""


@dataclass(frozen=True)
class Pushed:
    kind: str
    queue: str


@dataclass
class Ledger:
    """All files of a folder."""

    pushed: dict[str, Pushed] = field(default_factory=dict)
    #: How many pushes were not stored, since an unfinished task had their unique key.
    rivals: int = 0
    #: Ids that a push has returned though it stored none and nobody else has pushed them.
    strangers: set[str] = field(default_factory=set)
    #: The runs of each task, by their begin.
    runs: defaultdict[str, list[Run]] = field(default_factory=lambda: defaultdict(list))
    #: When each process had a thread to spare, and began nothing.
    idle: defaultdict[int, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))

    @classmethod
    def read(cls, folder: Path) -> Ledger:
        ledger = cls()
        for path in sorted(folder.glob("*.pushed")):
            ledger._read_pushed(path)
        for path in sorted(folder.glob("*.runs")):
            ledger._read_runs(path)
        for runs in ledger.runs.values():
            runs.sort(key=lambda run: run.begin)
        ledger.strangers -= ledger.pushed.keys()
        return ledger

    def _read_pushed(self, path: Path) -> None:
        for line in path.read_text().splitlines():
            task_id, kind, queue, stored = line.split()
            if stored == task_id:
                self.pushed[task_id] = Pushed(kind, queue)
            else:
                self.rivals += 1
                self.strangers.add(stored)

    def _read_runs(self, path: Path) -> None:
        pid = int(path.name.partition(".")[0])
        runs: dict[str, Run] = {}
        before, since = (0.0, plan.CONCURRENCY, 0), 0.0  # the last pulse, and since when it was idle
        for line in path.read_text().splitlines():
            match line.split():
                case ["P", at, is_open, begun]:
                    pulse = float(at), int(is_open), int(begun)
                    spare = max(before[1], pulse[1]) < plan.CONCURRENCY
                    if not (spare and before[2] == pulse[2] and pulse[0] - before[0] <= _STEADY):
                        self._note_idle(pid, since, before[0])
                        since = pulse[0]
                    before = pulse
                case ["B", task_id, run, at]:
                    runs[run] = Run(pid, float(at))
                    self.runs[task_id].append(runs[run])
                case [how, _task_id, run, at]:
                    runs[run].end, runs[run].how = float(at), how
        self._note_idle(pid, since, before[0])

    def _note_idle(self, pid: int, begin: float, end: float) -> None:
        if end - begin >= _IDLE:
            self.idle[pid].append((begin, end))
