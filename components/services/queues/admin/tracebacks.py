"""Tracebacks in parts, so that a page can fold the frames of libraries and leave those of the project open."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

_FRAME = re.compile(r'^(?P<indent>[ |]*)File "(?P<path>[^"]*)", line \d+')
_LIBRARIES = ("/site-packages/", "/dist-packages/", "/lib/python3", str(Path(__file__).parents[3]))


@dataclass(frozen=True)
class Part:
    """Some lines of a traceback."""

    text: str
    #: How many frames of libraries these are; 0 for other lines.
    frames: int


def parts_of(traceback: str) -> list[Part]:
    """Return the parts of *traceback*. If all its frames are of libraries, it is one part."""
    frames = list(_frames(traceback.splitlines(keepends=True)))
    if not any(is_own for _text, is_own in frames if is_own is not None):
        return [Part(traceback, 0)]
    found = []
    for is_folded, lines in groupby(frames, key=lambda frame: frame[1] is False):
        texts = [text for text, _is_own in lines]
        found.append(Part("".join(texts), len(texts) if is_folded else 0))
    return found


def _frames(lines: list[str]) -> Iterator[tuple[str, bool | None]]:
    """Yield the frames of a traceback, and whether each is of the project; None for lines that are no frame."""
    text, is_own, indent = "", None, 0
    for line in lines:
        frame = _FRAME.match(line)
        goes_on = is_own is not None and not frame and line[: indent + 1].strip(" |") == "" and line.strip()
        if goes_on:
            text += line
            continue
        if text:
            yield text, is_own
        text, is_own = line, None
        if frame:
            is_own, indent = not _is_of_a_library(frame["path"]), len(frame["indent"])
    if text:
        yield text, is_own


def _is_of_a_library(path: str) -> bool:
    path = path.replace("\\", "/")
    return path.startswith("<frozen ") or any(each in path for each in _LIBRARIES)
