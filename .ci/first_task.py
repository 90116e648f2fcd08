"""
Do what README says under "The first task", in an empty folder and with nothing else, and measure how long it takes.

    .ci/first_task.py [--django 5.2] [PYTHON]

The commands and files are those of README. Exit with 1 if they are more than five commands, need two minutes or more,
or do not run the task. The network and pip's cache are those of this machine.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = 5
SECONDS = 120
#: What the settings or Python of the caller would change.
_FOREIGN = ("DJANGO_SETTINGS_MODULE", "PYTHONPATH", "PYTHONHOME", "REDIS_URL", "VIRTUAL_ENV")
_READY, _DONE = r"Press Ctrl-C to stop", r".*\bmysite\.tasks\.greet \S+ succeeded.*"


def section() -> str:
    """Return what README says under "The first task"."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    [found] = re.findall(r"^### The first task\n(.*?)^### ", text, re.DOTALL | re.MULTILINE)
    return str(found)


def steps(text: str) -> Iterator[tuple[str, str]]:
    """Yield the steps of README in their order: "run" and a command, or a file and what is added to it."""
    for language, block in re.findall(r"^```(sh|python)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        if language == "sh":
            yield from (("run", line) for line in block.splitlines() if line)
        else:
            yield block.partition("\n")[0].removeprefix("# "), block


def of_django(version: str, text: str) -> str:
    """Return the section for that Django: README names other extras for 5.2."""
    if version == "5.2":
        [extras] = re.findall(r"`(\[[\w,]+\])` installs Django 5\.2", text)
        text = text.replace("[embedded]", extras)
    return text


class Newcomer:
    """Someone with an empty folder beside a checkout, and two terminals."""

    def __init__(self, folder: Path, python: Path) -> None:
        programs, self.site, self.log = folder / "programs", folder / "site", folder / "log"
        programs.mkdir()
        self.site.mkdir()
        (programs / "python3").symlink_to(python)
        (folder / "django-redis-components").symlink_to(ROOT)
        self.environment = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
        self.environment["PATH"] = f"{programs}{os.pathsep}{os.environ['PATH']}"
        self.running: subprocess.Popen[bytes] | None = None

    def write(self, file: str, text: str) -> None:
        with (self.site / file).open("a") as out:
            out.write(f"\n{text}")

    def do(self, command: str) -> None:
        """Run *command*; one that goes on, in the first terminal until it is ready."""
        if not command.endswith(" runall"):
            subprocess.run(command, shell=True, check=True, cwd=self.site, env=self.environment)
            return
        with self.log.open("wb") as log:
            self.running = subprocess.Popen(
                f"exec {command}", shell=True, cwd=self.site, env=self.environment, stdout=log, stderr=log
            )
        self.wait_for(_READY)

    def wait_for(self, pattern: str) -> str:
        """Wait until the first terminal shows what matches *pattern*, and return it."""
        until = time.monotonic() + SECONDS
        while not (found := re.search(pattern, self.log.read_text())):
            if time.monotonic() > until or not self.running or self.running.poll() is not None:
                sys.exit(f"{pattern!r} was not said:\n{self.log.read_text()}")
            time.sleep(0.02)
        return found[0]

    def stop(self) -> None:
        """Press Ctrl-C in the first terminal."""
        if self.running:
            self.running.send_signal(signal.SIGINT)
            self.running.wait()

    def ask(self, code: str) -> str:
        """Return what Python in the environment prints."""
        return subprocess.check_output([".venv/bin/python", "-c", code], cwd=self.site, text=True).strip()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("python", nargs="?", type=Path, default=Path(sys.executable))
    parser.add_argument("--django", default="", help="5.2, or none for the newest")
    options = parser.parse_args()
    todo = list(steps(of_django(options.django, section())))
    number = sum(kind == "run" for kind, _ in todo)
    with TemporaryDirectory(prefix="first-task-") as folder:
        newcomer = Newcomer(Path(folder), options.python.absolute())
        began = time.monotonic()
        try:
            for kind, what in todo:
                if kind == "run":
                    print(f"{time.monotonic() - began:5.1f} s $ {what}", flush=True)
                    newcomer.do(what)
                else:
                    newcomer.write(kind, what)
            said = newcomer.wait_for(_DONE)
            took = time.monotonic() - began
        finally:
            newcomer.stop()
        computed = os.times().children_user + os.times().children_system
        versions = newcomer.ask(
            "import django, sys; print(django.__version__, 'Python', *sys.version_info[:2])"
        )
    print(said)
    print(
        f"Django {versions}: the first task has run after {number} commands and {took:.1f} seconds, of which the "
        f"commands computed {computed:.1f}.",
        flush=True,
    )
    if number > COMMANDS or took >= SECONDS or not versions.startswith(options.django):
        sys.exit(
            f"At most {COMMANDS} commands and {SECONDS} seconds were promised, and Django {options.django}."
        )


if __name__ == "__main__":
    main()
