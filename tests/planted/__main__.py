"""
Plant known defects in a copy of the project, and see whether the tests still catch them.

    python -m tests.planted [ROOM ...]          run the test that is noted for each defect
    python -m tests.planted --find [ROOM ...]   look for a test for each defect that has none, and note it

The defects of a room are in <room>.json beside this file. In `file`, `old` is replaced by `new`; `says` tells what
is broken by that; `caught_by` is the id of a test that fails then, or does not end, or the path of such tests.
The copy is a clone of HEAD. What is not committed is not in it, except for the defects themselves.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent.parent

#: For each room the tests to try for a defect, as patterns below tests/.
ROOMS: dict[str, str] = {
    "mailboxes": "mailboxes",
    "locks": "locks",
    "semaphores": "semaphores locks/test_holdings_*.py",
    "counters": "counters",
    "chat": "chat api",
    "rows": "rows",
    "autocomplete": "autocomplete",
    "geo": "geo",
    "logs": "logs",
    "queues": "queues",
    "worker": "queues/worker queues/commands kit/worker commands",
    "kit": "kit test_embedded.py test_testing.py",
    "control_room": "control_room */admin",
}
#: For those of every room, at last.
COMMON = "kit api project"

#: So many seconds in which no test begins or ends mean that the running ones hang.
SILENCE = 90


@dataclass
class Outcome:
    """What came of a run of tests: nothing, or what has failed or hung first."""

    is_good: bool
    culprit: str | None
    output: str


class Scratch:
    """A clone of HEAD in a folder for temporary files, which is kept for the next time."""

    def __init__(self) -> None:
        head = _git("rev-parse", "HEAD", cwd=ROOT)
        self.path = Path(tempfile.gettempdir()) / f"planted-{os.getuid()}-{ROOT.name}"
        if not (self.path / ".git").exists():
            _git("clone", "--quiet", "--shared", "--no-checkout", str(ROOT), str(self.path), cwd=ROOT)
        _git("fetch", "--quiet", str(ROOT), "HEAD", cwd=self.path)
        _git("checkout", "--quiet", "--force", "--detach", head, cwd=self.path)
        self._forget()

    def plant(self, defect: dict[str, Any]) -> None:
        """Apply a defect. Its `old` must be there exactly once."""
        path = self.path / defect["file"]
        text = path.read_text()
        if (found := text.count(defect["old"])) != 1:
            sys.exit(f"{defect['file']} has {found} times what is to be replaced: {defect['old']!r}")
        path.write_text(text.replace(defect["old"], defect["new"]))

    def restore(self) -> None:
        """Undo all defects."""
        _git("checkout", "--quiet", "--force", "HEAD", "--", ".", cwd=self.path)
        self._forget()

    def test(self, tests: Sequence[str], *options: str) -> Outcome:
        """Run tests until the first of them fails or hangs."""
        notes = self.path.with_suffix(".notes")
        notes.write_text("")
        env = os.environ | {"PYTHONPATH": str(HERE), "PLANTED_NOTES": str(notes)}
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "--tb=line",
            "--hypothesis-seed=0",
            "-p",
            "noting",
        ]
        command += ["-p", "no:randomly", "-p", "no:cacheprovider", *options, *tests]
        with tempfile.TemporaryFile("w+") as output:
            process = subprocess.Popen(
                command, cwd=self.path, env=env, stdout=output, stderr=output, start_new_session=True
            )
            try:
                is_hanging = not _wait(process, notes)
            finally:
                _end(process)
            output.seek(0)
            text = output.read()
        words = [line.split(" ", 1) for line in notes.read_text().splitlines()]
        culprits = [test for word, test in words if word == "failed"]
        if is_hanging and not culprits:
            ended = {test for word, test in words if word == "ended"}
            culprits = [test for word, test in words if word == "begun" and test not in ended]
        if process.returncode == 0:
            return Outcome(True, None, text)
        return Outcome(False, culprits[0] if culprits else tests[0], text)

    def _forget(self) -> None:
        """Let no file of an earlier run, such as Hypothesis's examples, change the next one."""
        _git("clean", "--quiet", "-fdx", "--exclude=__pycache__", cwd=self.path)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.planted")
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=", ".join(ROOMS))
    parser.add_argument("--find", action="store_true", help="look for tests of those defects that have none")
    options = parser.parse_args()
    if unknown := set(options.rooms) - set(ROOMS):
        parser.error(f"There is no room {', '.join(sorted(unknown))}.")
    # A shell may have it ignored, and tests would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    scratch = Scratch()
    run = find if options.find else verify
    missed = sum([run(scratch, room) for room in options.rooms or ROOMS if _file(room).exists()])
    sys.exit(1 if missed else 0)


def verify(scratch: Scratch, room: str) -> int:
    """Plant each defect of a room and run the test that shall catch it. Return how many were missed."""
    defects = _read(room)
    tests = sorted({defect["caught_by"] for defect in defects if defect["caught_by"]})
    if tests and not (clean := scratch.test(tests)).is_good:
        sys.exit(f"{clean.output}\n{room}: {clean.culprit} fails without a defect, and so tells nothing.")
    missed = 0
    for defect in defects:
        outcome = _planted(scratch, defect, [defect["caught_by"]]) if defect["caught_by"] else None
        is_caught = outcome is not None and not outcome.is_good
        missed += not is_caught
        _say(room, "caught" if is_caught else "MISSED", defect)
    return missed


def find(scratch: Scratch, room: str) -> int:
    """For each defect of a room that no test is noted for look for one. Return for how many there is none."""
    defects = _read(room)
    for defect in defects:
        if defect["caught_by"] is None:
            begun = time.monotonic()
            defect["caught_by"] = _find(scratch, room, defect)
            _write(room, defects)
            _say(room, f"{defect['caught_by'] or 'NONE'} ({time.monotonic() - begun:.0f} s)", defect)
    return sum(defect["caught_by"] is None for defect in defects)


def _find(scratch: Scratch, room: str, defect: dict[str, Any]) -> str | None:
    tried: set[str] = set()
    for patterns, options in _stages(room, defect["file"]):
        paths = [
            str(path.relative_to(ROOT))
            for pattern in patterns
            for path in sorted(ROOT.glob(f"tests/{pattern}"))
        ]
        paths = [path for path in paths if path not in tried]
        tried.update(paths)
        if paths and not (outcome := _planted(scratch, defect, paths, *options)).is_good:
            return outcome.culprit
    return None


def _stages(room: str, file: str) -> Iterator[tuple[list[str], tuple[str, ...]]]:
    """Tests by what they are named for: what the file is, what the room is, and then those of others."""
    words = set(re.split(r"\W|_", file)) - {"components", "services", "py", "lua", room, f"{room}s"}
    tests = [
        str(path.relative_to(ROOT / "tests"))
        for pattern in ROOMS[room].split()
        for found in sorted(ROOT.glob(f"tests/{pattern}"))
        for path in ([found] if found.is_file() else sorted(found.rglob("test_*.py")))
    ]
    yield [test for test in tests if words & set(re.split(r"\W|_", test))], ()
    yield tests, ("-n", "2")
    yield COMMON.split(), ("-n", "2")


def _planted(scratch: Scratch, defect: dict[str, Any], tests: Sequence[str], *options: str) -> Outcome:
    scratch.plant(defect)
    try:
        return scratch.test(tests, *options)
    finally:
        scratch.restore()


def _wait(process: subprocess.Popen[bytes], notes: Path) -> bool:
    """Return whether tests have come to an end, rather than to a silence."""
    seen, since = -1, time.monotonic()
    while process.poll() is None:
        if (size := notes.stat().st_size) != seen:
            seen, since = size, time.monotonic()
        elif time.monotonic() - since > SILENCE:
            return False
        time.sleep(0.1)
    return True


def _end(process: subprocess.Popen[bytes]) -> None:
    """End tests with all that they have started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(10)
        except ProcessLookupError:
            break
        except subprocess.TimeoutExpired:
            continue
    process.wait()


def _git(*words: str, cwd: Path) -> str:
    return subprocess.run(["git", *words], cwd=cwd, check=True, capture_output=True, text=True).stdout.strip()


def _say(room: str, word: str, defect: dict[str, Any]) -> None:
    what = defect["says"] or defect["new"].strip()
    sys.stdout.write(f"{room}: {word}: {defect['file']}: {what}\n")
    sys.stdout.flush()


def _file(room: str) -> Path:
    return HERE / f"{room}.json"


def _read(room: str) -> list[dict[str, Any]]:
    defects: list[dict[str, Any]] = json.loads(_file(room).read_text())
    return defects


def _write(room: str, defects: list[dict[str, Any]]) -> None:
    _file(room).write_text(json.dumps(defects, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
