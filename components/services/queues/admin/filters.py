"""
The filters of a list of tasks: text, task, error, message, argument and time. All are in the query, and combine.

They look at a task as the user may see it, so that nobody finds out by filtering what the page does not show them. A
filter that cannot be understood matches nothing, so that an action on "all that were found" cannot become an action
on all.
"""

import inspect
import json
from datetime import datetime
from typing import Any

from django import forms
from django.http import Http404, HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from components.kit.calls import signature_of
from components.kit.decoding import typed_instant
from components.services.queues import State, TaskInfo
from components.services.queues.admin.contents import Contents, loaded
from components.services.queues.admin.lookups import QueuePage
from components.services.queues.facts import Look
from components.services.queues.failures import Failure

WINDOW = 1_000  # tasks that one request looks at, however long the queue is


class InstantField(forms.DateTimeField):
    """An instant as all pages read it, also within the hour that comes twice when clocks are set back."""

    def __init__(self, *, is_end: bool = False, **more: Any) -> None:
        super().__init__(**more)
        self._is_end = is_end

    def to_python(self, value: Any) -> datetime | None:
        return typed_instant(str(value or ""), is_end=self._is_end) or super().to_python(value)


class Filters(forms.Form):
    """The filters that the query of a request names, for one user."""

    q = forms.CharField(required=False, max_length=1_000, label=_("Text"))
    task = forms.CharField(required=False, max_length=500, label=_("Task"))
    error = forms.CharField(required=False, max_length=500, label=_("Error"))
    message = forms.CharField(required=False, max_length=500, label=_("Message contains"))
    argument = forms.CharField(required=False, max_length=500, label=_("Argument"))
    since = InstantField(required=False, label=_("From"))
    until = InstantField(required=False, label=_("To"), is_end=True)

    def __init__(self, request: HttpRequest) -> None:
        super().__init__(request.GET)
        self.is_valid()
        self.contents = Contents(request)
        #: The place in the list where an earlier look ended.
        self.after = request.GET.get("after", "")
        #: Tasks that have died alike, which all other filters leave alone.
        self.group = request.GET.get("group", "")

    @property
    def given(self) -> dict[str, str]:
        """Return the filters as the query has them, without empty ones."""
        if self.group:
            return {"group": self.group}
        typed = {name: str(self.data.get(name, "")).strip() for name in self.fields}
        return {name: text for name, text in typed.items() if text}

    @property
    def text(self) -> str:
        return self._text("q")

    @property
    def is_text_alone(self) -> bool:
        """Whether text is all that is searched for, from the start of the list."""
        return not self.after and self.given.keys() == {"q"}

    @property
    def in_words(self) -> str:
        """Return the filters as people read them: "Task: send, Argument: 9"."""
        given = {name: text for name, text in self.given.items() if name in self.fields}
        return ", ".join(f"{self.fields[name].label}: {text}" for name, text in given.items())

    def look(self, page: QueuePage, state: State) -> Look[TaskInfo]:
        """Look at the next tasks of a queue for those that all filters match."""
        if not self.is_valid():
            return Look([], 0, 0, "")
        time = {name: self.cleaned_data[name] for name in ("since", "until")}
        return page.service.look(page.name, state, self.match, most=WINDOW, after=self.after, **time)

    def look_at_group(self, page: QueuePage, state: State, most: int) -> Look[Failure]:
        """Look at dead tasks for those of the group, as the user may see them. Raises Http404 for another *state*."""
        if state != "dead":
            raise Http404(gettext("Only dead tasks are grouped by their error."))
        return page.failures.look(most=most, after=self.after, cut=self.contents.cut, group=self.group)

    def match(self, info: TaskInfo) -> bool:
        """Return whether all filters match the task, as far as the user may see it."""
        seen = self.contents.cut(info)
        return (
            (not self.text or seen.contains(self.text))
            and _is_called(seen.name, self._text("task"))
            and self._match_error(seen)
            and self._match_argument(seen)
            and self._match_time(seen)
        )

    def _match_error(self, info: TaskInfo) -> bool:
        kind, message = self._text("error"), self._text("message")
        if not kind and not message:
            return True
        if not info.errors:
            return False
        error = info.errors[-1]
        return _is_called(error.exception_class_path, kind) and message.casefold() in error.message.casefold()

    def _match_argument(self, info: TaskInfo) -> bool:
        wanted = self._text("argument")
        if not wanted:
            return True
        name, equals, value = wanted.partition("=")
        try:
            if equals and name.strip().isidentifier():
                given = arguments_by_name(info)
                return name.strip() in given and _holds(given[name.strip()], value.strip())
            return _holds([info.args, info.kwargs], wanted)
        except RecursionError:  # too deeply nested to be looked at
            return False

    def _match_time(self, info: TaskInfo) -> bool:
        """Return whether the task was enqueued, or started, in time. TaskQueue.look() sees to other states."""
        at = {"ready": info.enqueued_at, "running": info.last_attempted_at}.get(info.state)
        since, until = self.cleaned_data["since"], self.cleaned_data["until"]
        return at is None or ((not since or at >= since) and (not until or at <= until))

    def _text(self, name: str) -> str:
        return str(self.cleaned_data.get(name) or "").strip()


def _is_called(path: str, wanted: str) -> bool:
    """Return whether *wanted* is the dotted *path* or its end: "send" and "tasks.send" of "shop.tasks.send"."""
    return not wanted or path == wanted or path.endswith(f".{wanted}")


def _holds(value: Any, wanted: str) -> bool:
    """Return whether *value* is *wanted* as JSON, is text that contains it, or holds such a value."""
    if isinstance(value, dict):
        return any(_holds(each, wanted) for each in value.values())
    if isinstance(value, list):
        return any(_holds(each, wanted) for each in value)
    if isinstance(value, str):
        return wanted.casefold() in value.casefold() or json.dumps(value, ensure_ascii=False) == wanted
    return json.dumps(value) == wanted


def arguments_by_name(info: TaskInfo) -> dict[str, Any]:
    """Return the arguments by name; of positional ones, those whose names this process knows."""
    task = loaded(info.name)
    if task is None or not info.args:
        return info.kwargs
    names = list(signature_of(inspect.unwrap(task.func)).parameters)[int(task.takes_context) :]
    return dict(zip(names, info.args, strict=False)) | info.kwargs
