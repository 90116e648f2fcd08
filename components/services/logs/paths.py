"""
Paths: finds the files for names of files, folders and patterns.

A folder stands for all files below it, in the order of their names; a pattern is one of the shell, with ** for
folders. Sockets and the like are left out unless they are named themselves. A folder that cannot be opened is
returned itself, so that reading it raises the error.

A link that is named itself is followed. A link that is found below a folder, or by a pattern, is followed only if it
leads into that folder, or into the folder where the pattern begins: people who may write there must not choose which
files of the machine are read. All other links are left out and reported.
"""

import glob
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from components.services.logs.sources import STDIN

Tell = Callable[[str], object]


def find_files(paths: Iterable[str], *, tell: Tell = lambda link: None) -> Iterator[str]:
    """
    Find the files, each once. A path without files is returned itself, so that reading it raises the error. Call
    *tell* for each link that is left out because it leads out of its folder.
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
    """Yield the files below *path*, without those to which links lead out of *root*."""
    if not os.path.isdir(path):  # noqa: PTH112  (a Path raises where it may not look)
        yield path
        return
    closed: list[str] = []
    for folder, folders, files in os.walk(path, onerror=lambda error: closed.append(error.filename)):
        folders.sort()
        for name in folders:  # a walk follows no links; files inside of the root are found where they are
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
    """Yield what a pattern finds. Like a walk, its ** follows no links; the ** of glob would leave *root*."""
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
    """Return the folder where a pattern begins: everything before the first part that has a wildcard."""
    parts = Path(pattern).parts
    count = next(at for at, part in enumerate(parts) if glob.has_magic(part))
    return str(Path(*parts[:count]))


def _leads_out(path: str, root: str) -> bool:
    """Return True if *path*, which was found below *root*, is a link that leads out of it."""
    return os.path.islink(path) and not _is_within(path, root)  # noqa: PTH114


def _is_within(path: str, root: str) -> bool:
    """Return True if *path* leads into the folder *root*, whose own path has no links."""
    return Path(os.path.realpath(path)).is_relative_to(root)
