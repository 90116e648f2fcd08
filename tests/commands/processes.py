"""Commands as processes of their own, which never outlive the test that started them."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

import psutil

from components.services.queues import TaskQueue
from tests.support.waiting import eventually

ROOT = Path(__file__).resolve().parents[2]
_LONGEST_OUTPUT = 1 << 24


class Command:
    """
    manage.py *arguments*, or another *program* of Python, with Redis at *url*: it runs in the with block, in a
    session of its own, and its descendants do not outlive it. *inherits* are descriptors that it is given.

    *environment* adds to that of the tests; settings.py beside this file says what it can set.
    """

    def __init__(
        self,
        url: str,
        *arguments: str,
        program: Sequence[str] = (str(ROOT / "manage.py"),),
        inherits: Sequence[int] = (),
        **environment: str,
    ) -> None:
        self._arguments = arguments
        self._program = program
        self._inherits = inherits
        self._environment = {
            "DJANGO_SETTINGS_MODULE": "tests.commands.settings",
            "REDIS_URL": url,
            **environment,
        }

    def __enter__(self) -> Self:
        self._log = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [sys.executable, *self._program, *self._arguments],
            cwd=ROOT,
            env={**os.environ, **self._environment},
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
            pass_fds=self._inherits,
        )
        self.pid = self._process.pid
        return self

    def __exit__(self, kind: type[BaseException] | None, *trace: object) -> None:
        family = self.children
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        for child in family:
            with suppress(psutil.NoSuchProcess):
                child.kill()
        self._last_output = self.output
        self._log.close()
        if kind:
            sys.stdout.write(f"--- {' '.join(self._arguments)} ---\n{self.output}")

    @property
    def children(self) -> list[psutil.Process]:
        """The processes that it has started, and those that they have."""
        try:
            return psutil.Process(self.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    @property
    def output(self) -> str:
        if self._log.closed:
            return self._last_output
        return os.pread(self._log.fileno(), _LONGEST_OUTPUT, 0).decode()

    def is_working(self) -> bool:
        """Whether it becomes one of the listed workers, in the process that was started."""
        assert eventually(
            lambda: self.pid in [worker.pid for worker in TaskQueue().workers()] or self.has_ended()
        )
        return not self.has_ended()

    def says(self, text: str) -> bool:
        """Whether *text* comes to be in its output."""
        return eventually(lambda: text in self.output)

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def exit_code(self) -> int:
        """Its exit code, when it has ended; minus the number of the signal that killed it."""
        return self._process.wait(20)


class Held:
    """A pushed task that runs until end(), in each attempt. Each needs a folder of its own."""

    def __init__(self, queue: TaskQueue, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder
        self.id = queue.push("tests.commands.jobs.hold", [str(folder)])

    def has_begun(self, attempt: int = 1) -> bool:
        return eventually((self._folder / f"begun-{attempt}").exists)

    def end(self, attempt: int = 1) -> None:
        (self._folder / f"gate-{attempt}").touch()


def run_worker(url: str, *arguments: str, **environment: str) -> Command:
    """manage.py runworker of the queue "default", one task at a time, for what the arguments do not say."""
    return Command(url, "runworker", "-q", "default", "-c", "1", "--no-reload", *arguments, **environment)
