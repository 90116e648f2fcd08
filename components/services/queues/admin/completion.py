"""
Completion in the fields of the filters: the queues, tasks, errors, messages and arguments that there are.

All but queues are those of the first tasks of the list, as the user may see them; the most frequent come first. Names
are matched as those of address books are, because <complete-field> narrows what it was answered by these rules.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, JsonResponse
from django.utils.translation import gettext

from components.services.autocomplete import finds
from components.services.queues import State, TaskInfo
from components.services.queues.admin.contents import Contents, declared_tasks
from components.services.queues.admin.filters import arguments_by_name
from components.services.queues.admin.lookups import QueuePage, find_service, find_state
from components.services.queues.failures import Failure, Failures

LOOKED_AT = 500  # tasks
LONGEST = 200  # characters of what is offered, and of what was typed
_MOST = 100


def complete(request: HttpRequest) -> JsonResponse:
    """Answer as an address book does: with what is found by the text *q*, at most *limit* of it."""
    field, typed = request.GET.get("field", ""), request.GET.get("q", "")[:LONGEST]
    limit = request.GET.get("limit", "")
    most = min(int(limit), _MOST) if limit.isascii() and limit.isdecimal() else 10
    found = [*islice((name for name in _offered(request, field) if finds(typed, name)), most + 1)]
    entries = [{"id": name, "label": name} for name in found[:most]]
    return JsonResponse({"entries": entries, "is_complete": len(found) <= most})


def _offered(request: HttpRequest, field: str) -> Sequence[str]:
    """Return what there is for the field, the most frequent first. Raises Http404 and PermissionDenied."""
    if field == "queue":
        return find_service(request).all_names()
    contents = Contents.of(request)
    if field in ("message", "argument") and not contents.may_see:
        raise PermissionDenied
    page, state = QueuePage.of(request, may_be_all=True), find_state(request)
    if field == "argument":
        return _by_frequency(text for info in _tasks(page, state, contents) for text in _arguments(info))
    seen = _failures(page, contents) if state == "dead" else _tasks(page, state, contents)
    if field == "task":
        names = _by_frequency(each.name for each in seen)
        return [*names, *sorted(declared_tasks().difference(names))]
    if field in ("error", "message"):
        errors = [
            each.error if isinstance(each, Failure) else each.errors[-1] for each in seen if _failed(each)
        ]
        texts = (each.message if field == "message" else each.exception_class_path for each in errors)
        return _by_frequency(texts)
    raise Http404(gettext("There is no field %(name)r to complete.") % {"name": field})


def _failed(task: TaskInfo | Failure) -> bool:
    return isinstance(task, Failure) or bool(task.errors)


def _tasks(page: QueuePage, state: State, contents: Contents) -> list[TaskInfo]:
    if page.every:
        found = page.every.read(state, page.every.places(state, most=LOOKED_AT).found)
    else:
        found = page.service.tasks(page.name, state, limit=LOOKED_AT)
    return [contents.cut(info) for info in found]


def _failures(page: QueuePage, contents: Contents) -> list[Failure]:
    return Failures(page.alias, page.name, page.every).look(most=LOOKED_AT, cut=contents.cut).found


def _by_frequency(texts: Iterable[str]) -> list[str]:
    """Return the different *texts* that fit in a field, the most frequent first."""
    counts = Counter(text for text in texts if text and len(text) <= LONGEST and text.isprintable())
    return sorted(counts, key=lambda text: (-counts[text], text))


def _arguments(info: TaskInfo) -> Iterator[str]:
    """Yield the arguments of a task as the filter takes them: "sale=9" if their name is known, or else "9"."""
    named = arguments_by_name(info)
    for name, value in named.items():
        if (text := _written(value)) and name.isidentifier():
            yield f"{name}={text}"
    if len(named) < len(info.args) + len(info.kwargs):
        yield from filter(None, map(_written, info.args))


def _written(value: Any) -> str:
    """Return a text as it is, a number or a boolean as JSON; "" for lists and objects."""
    return value if isinstance(value, str) else "" if isinstance(value, list | dict) else json.dumps(value)
