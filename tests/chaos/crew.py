"""
The crew: worker processes, each replaced as soon as it has ended, whoever ended it; and what happened to each.

Each end must have a reason: the monkey or a task killed the process, a function was stuck, or Redis was away when it
started. Other exit codes, and tracebacks of the workers themselves, are complaints.
"""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.commands.processes import Command
from tests.support.waiting import eventually

_POLL = 0.02  # seconds

_KILLED, _STUCK, _NO_REDIS = -signal.SIGKILL, 3, 2
_NEVER_SAID = ("The worker ended with an error", "Exception in thread", "Fatal Python error")


def _handles_sigterm(pid: int) -> bool:
    """Whether a process has a handler for SIGTERM, as far as this system tells."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return True
    caught = next(line for line in status.read_text().splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)


class Member:
    """A place in the crew, and the process that has it now."""

    def __init__(self, arguments: Sequence[str], url: str) -> None:
        self.arguments, self.url = arguments, url
        self._stack = ExitStack()
        #: When it is to be continued, while it is stopped.
        self.stopped_until: float | None = None

    def start(self, ledger: Path) -> None:
        self.stopped_until = None
        self.command = self._stack.enter_context(
            Command(
                self.url,
                "runworker", "-v", "0", "--no-reload", *self.arguments,
                DJANGO_SETTINGS_MODULE="tests.chaos.settings",
                CHAOS_LEDGER=str(ledger),
            )
        )  # fmt: skip

    def close(self) -> None:
        self._stack.close()


class Crew:
    """The members, watched by a thread while in the with block."""

    def __init__(self, ledger: Path, *members: Member) -> None:
        self.members = members
        self._ledger = ledger
        self._guard = threading.RLock()
        self._is_over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="crew")
        #: Process id -> when something kept it from its tasks: it was stopped or killed, or has ended.
        self.troubles: defaultdict[int, list[float]] = defaultdict(list)
        #: Process id -> when it did not get a reply, and waited for it.
        self.unanswered: defaultdict[int, list[float]] = defaultdict(list)
        #: Process id -> when it lost its connection instead of getting a reply.
        self.cut_off: defaultdict[int, list[float]] = defaultdict(list)
        #: The place in the crew that each process had.
        self.places: dict[int, Member] = {}
        self.ends: Counter[str] = Counter()
        self.complaints: list[str] = []
        self._killed: set[int] = set()

    def __enter__(self) -> Crew:
        for member in self.members:
            self._start(member)
        self._watcher.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._is_over.set()
        self._watcher.join()
        for member in self.members:
            member.close()

    def kill(self, member: Member) -> None:
        with self._guard:
            self._killed.add(member.command.pid)
            self.troubles[member.command.pid].append(time.monotonic())
            member.command.signal(signal.SIGKILL)

    def stop(self, member: Member, seconds: float) -> None:
        with self._guard:
            member.command.signal(signal.SIGSTOP)
            self.troubles[member.command.pid].append(time.monotonic())
            member.stopped_until = time.monotonic() + seconds

    def resume(self, *, until: float) -> None:
        """Let those go on whose time has come."""
        with self._guard:
            for member in self.members:
                if member.stopped_until is not None and member.stopped_until <= until:
                    member.stopped_until = None
                    member.command.signal(signal.SIGCONT)

    def at_work(self) -> list[Member]:
        """Those that have written a first line, and were not stopped or killed since."""
        with self._guard:
            return [each for each in self.members if self._is_at_work(each)]

    def _is_at_work(self, member: Member) -> bool:
        pid = member.command.pid
        return not self.troubles[pid] and any(self._ledger.glob(f"{pid}.*.runs"))

    def dismiss(self) -> None:
        """Let all drain and end; none is replaced."""
        self._is_over.set()
        self._watcher.join()
        for member in self.members:
            # One that was started a moment ago would be killed: no handler is there before Django has been set up.
            eventually(
                lambda member=member: member.command.has_ended() or _handles_sigterm(member.command.pid)
            )
            member.command.signal(signal.SIGTERM)
        for member in self.members:
            assert eventually(member.command.has_ended), member.command.output
            if code := member.command.exit_code():
                self.complaints.append(f"A calm worker ended with {code}: {member.command.output}")

    def _watch(self) -> None:
        while not self._is_over.wait(_POLL):
            with self._guard:
                for member in self.members:
                    if member.command.has_ended():
                        self._note_end(member)
                        self._start(member)

    def _start(self, member: Member) -> None:
        member.start(self._ledger)
        self.places[member.command.pid] = member

    def _note_end(self, member: Member) -> None:
        command = member.command
        code, output = command.exit_code(), command.output
        # One that was killed says when; of the others it is known to within a POLL.
        reason = {_KILLED: "by a task", _STUCK: "stuck", _NO_REDIS: "without Redis"}.get(code, f"code {code}")
        if code == _KILLED and command.pid in self._killed:
            reason = "by the monkey"
        else:
            self.troubles[command.pid].append(time.monotonic())
        self.ends[reason] += 1
        if code not in (_KILLED, _STUCK, _NO_REDIS) or any(text in output for text in _NEVER_SAID):
            self.complaints.append(f"A worker ended with {code}:\n{output}")
        member.close()
