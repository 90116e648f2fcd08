"""
The contents of tasks that only some users may see: arguments, results and tracebacks.

They may hold secrets, such as the link in a queued mail that sets a password, so seeing them needs a separate
permission. The contents of a task that is declared as sensitive are shown to nobody. Hidden contents cannot be
searched either, because the results of a search would reveal them. Tracebacks are shown in parts, so that a page can
fold the frames of libraries and leave those of the project open.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TypeVar

from django.http import HttpRequest

from components.kit.compat import Task
from components.services.queues import TaskInfo
from components.services.queues.failures import Failure

_Task = TypeVar("_Task", TaskInfo, Failure)
_FRAME = re.compile(r'^(?P<indent>[ |]*)File "(?P<path>[^"]*)", line \d+')
_LIBRARIES = ("/site-packages/", "/dist-packages/", "/lib/python3", str(Path(__file__).parents[3]))


class Contents:
    """What one user may see of any task."""

    def __init__(self, request: HttpRequest) -> None:
        self.may_see = request.user.has_perm("components.view_arguments_queue")

    def shows(self, info: TaskInfo | Failure) -> bool:
        """Return whether the user may see the arguments, the result and the tracebacks of this task."""
        return self.may_see and not is_sensitive(info)

    def cut(self, info: _Task) -> _Task:
        """Return the task without the contents that this user may not see. The classes of errors stay."""
        return info if self.shows(info) else info.without_contents()


def is_sensitive(info: TaskInfo | Failure) -> bool:
    """Return whether the task was marked as sensitive when it was pushed, or is declared as sensitive now."""
    return info.sensitive or getattr(loaded(info.name), "sensitive", False) is True


def loaded(name: str) -> Task[..., object] | None:
    """Return the task *name* if this process has imported its module, else None. Pages import no modules."""
    module, _, attribute = name.rpartition(".")
    found = getattr(sys.modules.get(module), attribute, None)
    return found if isinstance(found, Task) else None


def parts_of(traceback: str) -> list[tuple[str, int]]:
    """
    Return the parts of *traceback*, and how many frames of libraries each is; 0 for other lines. If all frames are of
    libraries, it is one part.
    """
    frames = list(_frames(traceback.splitlines(keepends=True)))
    if not any(is_own for _text, is_own in frames if is_own is not None):
        return [(traceback, 0)]
    found = []
    for is_folded, lines in groupby(frames, key=lambda frame: frame[1] is False):
        texts = [text for text, _is_own in lines]
        found.append(("".join(texts), len(texts) if is_folded else 0))
    return found


def _frames(lines: list[str]) -> Iterator[tuple[str, bool | None]]:
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
