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

#: For each room the tests to try for a defect, as patterns: the first row is quick, the second is asked after it.
ROOMS: dict[str, tuple[str, str]] = {
    "mailboxes": (
        "services/test_mailboxes*.py backends/test_messages.py views/test_mailbox.py admin/test_mailboxes_page.py",
        "backends/test_mail.py views/test_unreadable.py guilds/test_mail.py",
    ),
    "locks": (
        "services/test_locks*.py services/test_fences.py services/test_cache_locks.py db/test_fences.py",
        "admin/test_locks_page.py services/test_holdings_*.py db/test_fence_races.py test_keys.py test_client.py",
    ),
    "semaphores": (
        "services/test_semaphores*.py admin/test_semaphores_page.py",
        "services/test_holdings_*.py test_renewals*.py",
    ),
    "counters": (
        "services/test_counters*.py services/test_tallies.py charts/test_*.py",
        "admin/test_counter*.py commands/test_counters.py commands/test_counting_ends.py test_counting_requests.py "
        "admin/test_traffic_page.py admin/test_rows_page.py",
    ),
    "chat": (
        "services/test_chat*.py services/test_contacts.py views/test_*.py backends/test_books.py",
        "services/test_message_growth.py services/test_full_messages.py admin/test_chats_page.py "
        "admin/test_reading_messages.py guilds/test_*.py test_people.py",
    ),
    "rows": (
        "services/test_rows*.py services/test_unreadable_rows.py db/test_row*.py",
        "workers/test_rows*.py admin/test_rows_page.py views/test_rows.py test_row_tags.py market/test_*.py",
    ),
    "autocomplete": (
        "services/test_books*.py services/test_contacts.py db/test_books.py db/test_many_books*.py "
        "backends/test_books.py",
        "views/test_books*.py views/test_contacts.py guilds/test_books.py admin/test_books_page.py test_book*.py "
        "services/test_lines_formats.py test_forms.py test_widgets.py",
    ),
    "geo": (
        "services/test_geo*.py",
        "commands/test_importgeoip.py players/test_geography.py admin/test_traffic_page.py "
        "services/test_traffic_reports.py",
    ),
    "logs": (
        "services/test_logs*.py services/test_lines*.py services/test_traffic_reports.py workers/test_logs.py",
        "commands/test_copylogs*.py commands/test_aggregatelogs.py commands/test_bad_logs.py "
        "commands/test_logreport.py admin/test_logs_page.py admin/test_traffic_page.py players/test_*.py",
    ),
    "queues": (
        "services/test_queues*.py backends/test_tasks.py test_schedules.py test_periodic.py",
        "admin/test_queues_page.py admin/test_task*.py admin/test_periodic.py admin/test_contents.py "
        "workers/test_*.py commands/test_queues.py",
    ),
    "worker": (
        "workers/test_*.py",
        "backends/test_tasks.py services/test_queues*.py commands/test_runworker.py commands/test_threads.py "
        "commands/test_timeouts.py commands/test_processes.py",
    ),
    "kit": (
        "test_client.py test_async_client.py test_scripts*.py test_silence.py test_renewals*.py "
        "services/test_news.py services/test_together.py test_embedded.py test_sentinels.py "
        "services/test_asked_again.py",
        "test_unavailable.py test_unsuitable.py test_cluster_nodes.py test_testing.py services/test_servers.py "
        "services/test_unreadable*.py services/test_chat_waiting.py services/test_mailboxes_waiting.py "
        "services/test_locks_clients.py",
    ),
    "control_room": ("admin/test_*.py", "market/test_*.py players/test_*.py"),
}
#: For scripts of all rooms, at last.
COMMON = (
    "test_lost_replies.py services/test_unreadable*.py services/test_growth.py services/test_full_server.py"
)

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
    quick, wide = (row.split() for row in ROOMS[room])
    words = set(re.split(r"\W|_", file)) - {"components", "services", "py", "lua", room, f"{room}s"}
    tests = sorted(
        str(path.relative_to(ROOT / "tests")) for row in quick for path in ROOT.glob(f"tests/{row}")
    )
    yield [test for test in tests if words & set(re.split(r"\W|_", test))], ()
    yield tests, ("-n", "2")
    yield wide + (COMMON.split() if file.endswith(".lua") else []), ("-n", "2")


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
