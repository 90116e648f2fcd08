"""
Paths: which files are meant by names of files, folders and patterns.

A folder means all files below it, in the order of their names; a pattern is one of the shell, with ** for folders.
What is no file, such as a socket, is left out, unless it is named itself. What cannot be looked into is given back as
it is, so that reading it says why.

A link that is named itself is followed. One that is found below a folder, or by a pattern, is followed only to what
lies in that folder, or in the one where the pattern begins: whoever may write there must not choose which files of
the machine are read. All other links are left out, and told.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from components.services.logs.sources import STDIN

Tell = Callable[[str], object]


def find_files(paths: Iterable[str], *, tell: Tell = lambda link: None) -> Iterator[str]:
    """
    Find the files, each once; a path that leads to none is given back as it is, so that reading it says why.

    Each link that is left out because it leads out of its folder is told to *tell*.
    """
    seen = set[str]()
    for path in paths:
        for found in _files_of(path, tell):
            if found not in seen:
                seen.add(found)
                yield found


def is_pattern(path: str) -> bool:
    return glob.has_magic(path) and not os.path.lexists(path)


def _files_of(path: str, tell: Tell) -> Iterator[str]:
    if path == STDIN:
        yield path
    elif is_pattern(path):
        root = os.path.realpath(_beginning(path))
        matches = sorted(_matches(path, root))
        for match in matches:
            if not _is_within(match, root):
                tell(match)
            elif os.path.isdir(match) or os.path.isfile(match):  # noqa: PTH112, PTH113  (a Path raises)
                yield from _below(match, root, tell)
        if not matches:
            yield path
    else:
        yield from _below(path, os.path.realpath(path), tell)


def _below(path: str, root: str, tell: Tell) -> Iterator[str]:
    """The files below *path*, without what links lead to out of *root*."""
    if not os.path.isdir(path):  # noqa: PTH112  (a Path raises where it may not look)
        yield path
        return
    closed: list[str] = []
    for folder, folders, files in os.walk(path, onerror=lambda error: closed.append(error.filename)):
        folders.sort()
        for name in folders:  # a walk follows no links: what lies within is found where it lies
            found = str(Path(folder, name))
            if _leads_out(found, root):
                tell(found)
        for name in sorted(files):
            found = str(Path(folder, name))
            if _leads_out(found, root):
                tell(found)
            elif os.path.isfile(found):  # noqa: PTH113
                yield found
    yield from closed


def _matches(pattern: str, root: str) -> Iterator[str]:
    """What a pattern finds. Its ** goes through no links, as a walk does not; those of glob would leave *root*."""
    parts = Path(pattern).parts
    if "**" not in parts:
        yield from glob.glob(pattern)  # noqa: PTH207  (the pattern may be absolute)
        return
    at = parts.index("**")
    rest = [part for part in parts[at:] if part != "**"]
    for beginning in glob.glob(str(Path(*parts[:at]))):  # noqa: PTH207
        if not rest or not _is_within(beginning, root):
            yield beginning
            continue
        for folder, folders, _files in os.walk(beginning):
            folders[:] = sorted(each for each in folders if not each.startswith("."))
            yield from glob.glob(str(Path(glob.escape(folder), *rest)))  # noqa: PTH207


def _beginning(pattern: str) -> str:
    """The folder where a pattern begins: all before the first part that has a sign in it."""
    parts = Path(pattern).parts
    count = next(at for at, part in enumerate(parts) if glob.has_magic(part))
    return str(Path(*parts[:count]))


def _leads_out(path: str, root: str) -> bool:
    """Whether *path*, which was found by a walk below *root*, is a link to what does not lie there."""
    return os.path.islink(path) and not _is_within(path, root)  # noqa: PTH114


def _is_within(path: str, root: str) -> bool:
    """Whether what *path* leads to lies in the folder *root*, which has no links in it."""
    return Path(os.path.realpath(path)).is_relative_to(root)
