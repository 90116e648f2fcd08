"""The finder of queues by name, of tasks by id or by the name of what they run, and of periodic tasks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

from django.apps import apps
from django.utils.translation import gettext

from components.kit.cards import Link
from components.kit.compat import Task
from components.kit.figures import Ask
from components.kit.finders import FinderReading, Found, best
from components.kit.stored import text_of
from components.services.queues.backend import redis_aliases
from components.services.queues.keys import BackendKeys
from components.services.queues.periodic_tasks import declared
from components.services.queues.queue import FIND
from components.templatetags.control_room import legible

#: The queues of an alias that are looked at, as on the overview.
_MOST = 1_000
_EACH = 3  # questions for each alias


def find(text: str) -> FinderReading:
    """Find queues, the task with the id *text*, and declared tasks of modules that this process has loaded."""
    aliases = redis_aliases()
    answers = yield [ask for alias in aliases for ask in _asks(BackendKeys(alias), text)]
    found = list[Found]()
    for alias, names, is_there, stored in zip(
        aliases, answers[::_EACH], answers[1::_EACH], answers[2::_EACH], strict=True
    ):
        record, _run, _errors, _progress, result = stored
        if record or result:
            found.append(Found(Link("task", legible(text), alias=alias, id=text), gettext("Task")))
        queues = best([*map(text_of, names), *([text] if is_there else [])], text)
        found += [Found(Link("tasks", legible(name), alias=alias, queue=name)) for name in queues]
        found += _periodic(alias, text)
        found += _declared(alias, text)
    return found


def _asks(keys: BackendKeys, text: str) -> list[Ask]:
    return [
        Ask(keys.names, lambda pipe: pipe.srandmember(keys.names, _MOST)),
        Ask(keys.names, lambda pipe: pipe.sismember(keys.names, text)),
        Ask(keys.tasks, partial(FIND.put, keys=keys, id=text)),
    ]


def _periodic(alias: str, text: str) -> Iterator[Found]:
    for name in best((entry.name for entry in declared(alias)), text):
        yield Found(Link("periodic", legible(name)), gettext("Periodic task"))


def _declared(alias: str, text: str) -> Iterator[Found]:
    queues = {task.module_path: task.queue_name for task in loaded_tasks() if task.backend == alias}
    for name in best(queues, text):
        page = Link("tasks", legible(name), alias=alias, queue=queues[name], task=name)
        yield Found(page, gettext("Tasks by name"))


def loaded_tasks() -> Iterator[Any]:
    """Yield the tasks in the modules "tasks" of apps that this process has imported."""
    for app in apps.get_app_configs():
        module = sys.modules.get(f"{app.name}.tasks")
        yield from (each for each in vars(module).values() if isinstance(each, Task)) if module else ()
