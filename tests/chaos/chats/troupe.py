"""
The processes that send and read, each replaced when it was killed. One that ends by itself has done its work; any
other end, and any output, fails the test.
"""

from __future__ import annotations

import signal
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Self

from tests.chaos.chats import plan, readers, senders
from tests.commands.processes import Command

_LONGEST = 2_000  # characters of an output


class Part:
    """A place, and the process that has it now."""

    def __init__(self, role: str, place: int, url: str, folder: Path) -> None:
        self.role, self.place, self.url, self._folder = role, place, url, folder
        self.is_done = False
        self.resume_at: float | None = None
        self.start()

    def start(self) -> None:
        self.resume_at = None
        self._stack = ExitStack()
        self.command = self._stack.enter_context(
            Command(
                self.url,
                str(self._folder),
                str(self.place),
                program=("-m", f"tests.chaos.chats.{self.role}"),
                DJANGO_SETTINGS_MODULE="tests.chaos.chats.settings",
                CHAOS_MESSAGES=str(plan.MESSAGES),
            )
        )

    def close(self) -> None:
        self._stack.close()


class Troupe:
    """with Troupe(…) as troupe: look() each moment, until is_done()."""

    def __init__(self, url: str, lossy_senders: str, lossy_readers: str, folder: Path) -> None:
        self._urls = {
            ("senders", senders.LOSSY): lossy_senders,
            ("readers", readers.LOSSY): lossy_readers,
        }
        self._url, self._folder = url, folder
        self.parts: list[Part] = []
        self.done: Counter[str] = Counter()

    def __enter__(self) -> Self:
        places = [("readers", place) for place in range(plan.READERS)]
        places += [("senders", place) for place in range(plan.SENDERS)]
        for role, place in places:
            url = self._urls.get((role, place), self._url)
            self.parts.append(Part(role, place, url, self._folder))
        return self

    def __exit__(self, *exc_info: object) -> None:
        for part in self.parts:
            part.close()

    def look(self) -> None:
        """Replace who was killed, and let go on who was stopped long enough."""
        for part in self.parts:
            if part.resume_at is not None and time.monotonic() >= part.resume_at:
                part.resume_at = None
                part.command.signal(signal.SIGCONT)
            if not part.is_done and part.command.has_ended():
                self._note_end(part)

    def resume_all(self) -> None:
        """With the next look."""
        for part in self.parts:
            part.resume_at = part.resume_at and time.monotonic()

    def is_done(self, role: str) -> bool:
        return all(part.is_done for part in self.parts if part.role == role)

    def kill(self, role: str, random: Random) -> bool:
        """One of them that is at work; False if there is none."""
        return self._strike(role, random, signal.SIGKILL)

    def stop(self, role: str, random: Random, seconds: float) -> bool:
        return self._strike(role, random, signal.SIGSTOP, seconds)

    def _strike(self, role: str, random: Random, number: signal.Signals, seconds: float = 0.0) -> bool:
        there = [part for part in self.parts if part.role == role and self._is_at_work(part)]
        if not there:
            return False
        part = random.choice(there)
        part.command.signal(number)
        if seconds:
            part.resume_at = time.monotonic() + seconds
        self.done[f"{number.name} of {role}"] += 1
        return True

    def _is_at_work(self, part: Part) -> bool:
        return (
            not part.is_done
            and part.resume_at is None
            and not part.command.has_ended()
            and any(self._folder.glob(f"{part.role[:-1]}-{part.place}.*.{part.command.pid}"))
        )

    def _note_end(self, part: Part) -> None:
        code, output = part.command.exit_code(), part.command.output
        part.close()
        assert code in (0, -signal.SIGKILL), (
            f"{part.role} {part.place} ended with {code}: {output[-_LONGEST:]}"
        )
        assert not output, f"{part.role} {part.place} said: {output[-_LONGEST:]}"
        if code == 0:
            part.is_done = True
        else:
            part.start()
