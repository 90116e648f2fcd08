"""
Run a task again with other arguments.

The new task is checked as enqueue() checks it, and says in its metadata from which task it came. Its id follows from
that task and the new arguments, so that the same form sent twice, or again after an answer was lost, stores one task.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b
from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404, HttpRequest
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from components.control_room.pages import ControlRoomAdmin
from components.control_room.verbs import Action, Done, Verb, filled
from components.formatting import pretty_json
from components.kit.compat import Task
from components.services.queues import NewTask, TaskInfo
from components.services.queues.admin.contents import Contents
from components.services.queues.admin.lookups import find_service
from components.services.queues.admin.verbs import trail_of
from components.services.queues.backend import RedisBackend, redis_backend, resolve
from components.services.queues.new_task import CheckedTask
from components.services.queues.policy import check_call

#: The name in the metadata of a task under which it says from which task it came.
ORIGIN = "run_again_from"


class ArgumentsForm(forms.Form):
    """The arguments of one task."""

    args = forms.CharField(
        required=False, label=_("Positional arguments, a list in JSON"), widget=forms.Textarea({"rows": 6})
    )
    kwargs = forms.CharField(
        required=False, label=_("Keyword arguments, an object in JSON"), widget=forms.Textarea({"rows": 6})
    )
    #: Makes the new task of these arguments, or raises what is wrong with them.
    make: Callable[[list[Any], dict[str, Any]], NewTask]

    def clean_args(self) -> Any:
        return _parse(self.cleaned_data["args"] or "[]", list, _('This must be a list, such as [9, "Jill"].'))

    def clean_kwargs(self) -> Any:
        wrong = _('This must be an object, such as {"to": "Jill"}.')
        return _parse(self.cleaned_data["kwargs"] or "{}", dict, wrong)

    def clean(self) -> dict[str, Any]:
        given = self.cleaned_data
        if "args" in given and "kwargs" in given:
            try:
                given["new"] = self.make(given["args"], given["kwargs"])
            except Exception as error:  # noqa: BLE001  (importing the module of a task may raise anything)
                wrong = gettext("The task cannot be run with these arguments: %(reason)s")
                self.add_error("args", wrong % {"reason": error})
        return given


def _parse(text: str, kind: type, wrong: Promise) -> Any:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValidationError(gettext("This is not JSON: %(reason)s") % {"reason": error}) from error
    if not isinstance(found, kind):
        raise ValidationError(str(wrong))
    return found


def _successor(
    backend: RedisBackend, task: Task[..., Any], info: TaskInfo, args: list[Any], kwargs: dict[str, Any]
) -> NewTask:
    """Return the task that runs *info* again with other arguments. Raises what enqueue() raises, or TypeError."""
    check_call(task, args, kwargs)
    written = json.dumps([info.id, args, kwargs])
    new = replace(
        backend.new_task(task, args, kwargs),
        id=blake2b(written.encode(errors="surrogatepass"), digest_size=16).hexdigest(),
        queue=info.queue,
        priority=info.priority,
        at=None,
        delay=None,
        metadata={ORIGIN: info.id},
    )
    CheckedTask(new, backend.queue.options)
    return new


def _loaded(backend: RedisBackend, name: str) -> Task[..., Any]:
    """Return the task *name*, which may have to be imported. Raises anything."""
    task = resolve(name)
    backend.validate_task(task)
    return task


def _ask(pages: ControlRoomAdmin, request: HttpRequest) -> Action:
    contents, service, task_id = Contents(request), find_service(request), request.GET.get("id", "")
    if not contents.may_see:
        raise PermissionDenied
    info, backend = service.get(task_id), redis_backend(service.alias)
    if info is None or info.state not in ("dead", "successful"):
        raise Http404(gettext("There is no task %(id)r that has ended.") % {"id": task_id})
    if not contents.shows(info):
        raise PermissionDenied
    form = filled(ArgumentsForm, request, args=pretty_json(info.args), kwargs=pretty_json(info.kwargs))
    form.make = lambda args, kwargs: _successor(backend, _loaded(backend, info.name), info, args, kwargs)

    def run() -> Done:
        new: NewTask = form.cleaned_data["new"]
        facts = {"old": info.id, "new": new.id, "queue": info.queue}
        onward = pages.url("task", alias=service.alias, id=new.id)
        if service.get(str(new.id)):
            known = gettext(
                "The task %(old)s was run again with these arguments before, as the task %(new)s."
            )
            return Done(idle=known % facts, onward=onward)
        [result] = backend.store(_loaded(backend, info.name), [new])
        if result.id != new.id:
            rival = gettext("The task is unique, and %(id)s is unfinished, so no second one was added.")
            return Done(but=[rival % {"id": result.id}])
        said = gettext("Ran the task %(old)s of the queue %(queue)s again, as the task %(new)s.")
        return Done(said % facts, onward=onward)

    return Action(
        of=f"{service.alias}/{info.queue}",
        trail=trail_of(pages, service.alias, info.queue),
        title=gettext("Run the task %(id)s again with other arguments") % {"id": info.id},
        effects=[
            gettext(
                "A new task of %(task)s is put into the queue %(queue)s. It says from which task it came."
            )
            % {"task": info.name, "queue": info.queue},
            gettext("The old task stays as it is."),
        ],
        run=run,
        form=form,
        origin=pages.url("task", alias=service.alias, id=info.id),
    )


RERUN = Verb("rerun", _("Run again with other arguments"), _ask)
