"""
Tests of others, which are in their source distributions only.

Those come through pip, from wherever it is told to look; only the wanted files are unpacked.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory


def fetch(requirement: str, folder: Path, is_wanted: Callable[[PurePosixPath], bool]) -> Path:
    """
    Unpack of the distribution *requirement* what *is_wanted*, asked with the path below its topmost folder.

    It stands in *folder* under the same path.
    """
    with TemporaryDirectory() as downloads, tarfile.open(_download(requirement, Path(downloads))) as archive:
        for member in archive:
            path = PurePosixPath(*PurePosixPath(member.name).parts[1:])
            if is_wanted(path) and (file := archive.extractfile(member)):
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_bytes(file.read())
    return folder.resolve()


def _download(requirement: str, folder: Path) -> Path:
    """The source distribution, in *folder*. pip lets it tell its metadata, and builds nothing else of it."""
    name = requirement.partition("==")[0]
    # Only its text is wanted: that it may not run on this Python is no hindrance.
    options = ["--quiet", "--no-deps", f"--no-binary={name}", "--ignore-requires-python", f"--dest={folder}"]
    command = [sys.executable, "-m", "pip", "download", *options, requirement]
    subprocess.run(command, check=True, stdout=sys.stderr)
    [found] = folder.iterdir()
    return found
