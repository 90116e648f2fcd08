"""
Paths: which files are meant by names of files, folders and patterns.

A folder means all files below it, in the order of their names; a pattern is one of the shell, with ** for folders.
What is no file, such as a socket, is left out, unless it is named itself. What cannot be looked into is given back as
it is, so that reading it says why.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from components.services.logs.sources import STDIN


def find_files(paths: Iterable[str]) -> Iterator[str]:
    """The files, each once; a path that leads to none is given back as it is, so that reading it says why."""
    seen = set[str]()
    for path in paths:
        for found in _files_of(path):
            if found not in seen:
                seen.add(found)
                yield found


def is_pattern(path: str) -> bool:
    return glob.has_magic(path) and not os.path.lexists(path)


def _files_of(path: str) -> Iterator[str]:
    if path == STDIN:
        yield path
    elif is_pattern(path):
        matches = sorted(glob.glob(path, recursive=True))  # noqa: PTH207  (the pattern may be absolute)
        for match in matches:
            yield from _below(match)
        if not matches:
            yield path
    else:
        yield from _below(path)


def _below(path: str) -> Iterator[str]:
    if not os.path.isdir(path):  # noqa: PTH112  (a Path raises where it may not look)
        yield path
        return
    closed: list[str] = []
    for folder, folders, files in os.walk(path, onerror=lambda error: closed.append(error.filename)):
        folders.sort()
        for name in sorted(files):
            found = str(Path(folder, name))
            if os.path.isfile(found):  # noqa: PTH113
                yield found
    yield from closed
