"""
Fetch Django's own tests of django.tasks into a folder, for DJANGO_TESTS of test_tasks.py:

    DJANGO_TESTS=$(python -m tests.django_suite.fetch FOLDER)

Source distributions come through pip, from wherever it is told to look, and only tests/tasks is unpacked. The tests
are those of exactly the Django that is installed. Django 5.2 has none, and the backport's distribution has no tests:
there the backport has to stand those of Django 6.0, which it is the backport of.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

#: The line of Django whose tests the backport has to stand.
BACKPORTED = "6.0"


def wanted() -> str:
    """The requirement that names the distribution with the tests."""
    installed = version("Django")
    return f"Django=={BACKPORTED}.*" if installed.startswith("5.2") else f"Django=={installed}"


def download(folder: Path) -> Path:
    """The source distribution, in *folder*. pip lets it tell its metadata, and builds nothing else of it."""
    # Only its text is wanted: that Django 6.0 does not run on this Python is no hindrance.
    options = ["--quiet", "--no-deps", "--no-binary=Django", "--ignore-requires-python", f"--dest={folder}"]
    command = [sys.executable, "-m", "pip", "download", *options, wanted()]
    subprocess.run(command, check=True, stdout=sys.stderr)
    [found] = folder.iterdir()
    return found


def unpack(distribution: Path, folder: Path) -> Path:
    """The folder `tests`, with the modules of tests/tasks in it and nothing else."""
    tests = folder / "tests"
    (tests / "tasks").mkdir(parents=True, exist_ok=True)
    with tarfile.open(distribution) as archive:
        for member in archive:
            path = PurePosixPath(member.name)
            if path.parts[1:-1] == ("tests", "tasks") and (file := archive.extractfile(member)):
                (tests / "tasks" / path.name).write_bytes(file.read())
    return tests


def main(folder: Path) -> None:
    with TemporaryDirectory() as downloads:
        print(unpack(download(Path(downloads)), folder.resolve()))  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]))
