"""
Settings, typed: the COMPONENTS dict for the app, OPTIONS of a TASKS alias for a task queue.

Both are read when first used, and anew after `override_settings`. A wrong name or type is an
ImproperlyConfigured error in use and a system check error before (checks.py).
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed

#: What can count log lines, the fastest first; "auto" is the first of the others that is installed.
LOG_KERNELS = ("auto", "numba", "numpy", "naive")


@dataclass(frozen=True)
class Conf:
    """The COMPONENTS setting; each key is the field's name in capitals."""

    #: First part of every key: keeps two environments on one Redis apart.
    prefix: str = "components"
    #: The CACHES alias (of django-redis) that says where Redis is.
    cache: str = "default"
    #: The folder of the embedded server, where the project uses one; None in production.
    embedded: Path | None = None
    #: What components.services.queues.mail.backend hands each message to, in the worker.
    mail_backend: str = "django.core.mail.backends.smtp.EmailBackend"
    #: The TASKS alias and the queue that mail travels through.
    mail_tasks: str = "default"
    mail_queue: str = "default"
    #: How many long-polls one process keeps waiting; more are answered at once.
    max_waiters: int = 2_000
    #: How many of them one person may have: as many tabs and devices wait; more are answered at once.
    max_waiters_per_person: int = 12
    #: Dotted path of a callable(request) -> user or None, for requests with "Authorization: Bearer …".
    api_authentication: str | None = None
    #: Dotted path of a class that knows people by their ids: people.py says which methods it has.
    people: str = "components.people.Users"
    #: How many chats a person may create in so many seconds, and how many people they may put into chats (oneself, by
    #: joining, among them); 0 for any number. Counted in Redis, for all processes.
    chat_create_limit: int = 30
    chat_create_period: float = 3_600.0
    chat_add_limit: int = 1_000
    chat_add_period: float = 3_600.0
    #: How many chats there may be that a person has created, and in how many a person may be; 0 for any number.
    max_chats_created: int = 200
    max_chats_joined: int = 1_000
    #: Dotted path of a callable(by, ids): who of *ids* does not let *by* put them into a chat. None: everybody does.
    chat_consent: str | None = None
    #: Dotted path of a class that knows who may search which address book: books.py says how it is asked.
    books: str = "components.services.autocomplete.access.Readers"
    #: The TASKS alias and the queue in which address books are rebuilt that the admin asks for.
    book_tasks: str = "default"
    book_queue: str = "default"
    #: The template that the pages for visitors extend.
    base_template: str = "components/base.html"
    #: The slices, in seconds, in which counters can be read; those that are sums of others are not stored.
    counter_precisions: Sequence[int] = (1, 5, 60, 300, 3_600, 18_000, 86_400)
    #: How many slices of each are kept, at least.
    counter_samples: int = 120
    #: Whether CountRequestsMiddleware counts, where it stands in MIDDLEWARE.
    count_requests: bool = True
    #: Whether tasks, chats, mailboxes, address books, locks and semaphores count what happens to them.
    count_services: bool = False
    #: What counts log lines: "numba", "numpy" or "naive"; "auto" is the fastest that is installed.
    log_kernel: str = "auto"


@dataclass(frozen=True)
class QueueOptions:
    """OPTIONS of a TASKS alias whose BACKEND is RedisBackend. Durations in seconds, sizes in bytes."""

    #: How long a claimed task is the worker's own without renewal; workers renew at a third of it.
    lease: float = 30.0
    #: How long the result of a successful task can be read. At least a minute: a push whose reply was
    #: lost is sent again, and recognised by the result of the first.
    result_ttl: float = 86_400.0
    #: How many successful tasks of each queue the admin can list.
    successful_limit: int = 1_000
    #: Failed tasks rest in the dead set until they are this old, or this many in their queue.
    dead_ttl: float = 180 * 86_400.0
    dead_limit: int = 10_000
    #: How often a task is started before a failure is final.
    max_attempts: int = 5
    #: The delay before the first retry; it doubles with each, up to max_backoff, and a random half is taken off.
    backoff: float = 15.0
    max_backoff: float = 3_600.0
    #: How long a task may run; None for ever.
    timeout: float | None = None
    #: A task under which this many workers died kills them: it goes to the dead set.
    max_crashes: int = 3
    #: The largest body (arguments as JSON) taken. Larger data belong elsewhere, with their key in the task.
    max_body: int = 65_536
    #: The largest return value (as JSON) that is stored, and the most that the errors of a task take together.
    max_result: int = 1_048_576
    #: Matured delayed tasks run before others of their priority: the book's "high-delayed" before "high".
    due_first: bool = False


_T = TypeVar("_T", Conf, QueueOptions)
_AT_LEAST = {
    "lease": 1,
    "result_ttl": 60,
    "successful_limit": 0,
    "dead_ttl": 0,
    "dead_limit": 1,
    "max_attempts": 1,
    "backoff": 0,
    "max_backoff": 0,
    "timeout": 0.001,
    "max_crashes": 1,
    "max_body": 1,
    "max_result": 4_096,
    "max_waiters": 0,
    "max_waiters_per_person": 0,
    "counter_samples": 1,
    "chat_create_limit": 0,
    "chat_create_period": 1,
    "chat_add_limit": 0,
    "chat_add_period": 1,
    "max_chats_created": 0,
    "max_chats_joined": 0,
}
_LONGEST_SLICE = 366 * 86_400  # seconds
_AT_MOST = {"counter_samples": 10_000}


def problems(cls: type[Conf] | type[QueueOptions], given: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with *given*, a sentence each; keys in the spelling of the class's fields."""
    names = [field.name for field in fields(cls)]
    hints = get_type_hints(cls)
    for name, value in given.items():
        if name not in names:
            close = difflib.get_close_matches(str(name), names, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known are: {', '.join(names)}."
            yield f"{name!r} is not known; {hint}"
            continue
        if name == "counter_precisions":
            yield from _wrong_precisions(value)
            continue
        types = get_args(hints[name]) or (hints[name],)
        if float in types:
            types = (*types, int)
        if isinstance(value, bool) != (types == (bool,)) or not isinstance(value, types):
            wanted = " or ".join(kind.__name__ for kind in types)
            yield f"{name!r} is {value!r} ({type(value).__name__}); it must be {wanted}."
        elif name in _AT_LEAST and value is not None and not _AT_LEAST[name] <= value < math.inf:
            yield f"{name!r} is {value!r}; it must be a finite number, at least {_AT_LEAST[name]}."
        elif name in _AT_MOST and value > _AT_MOST[name]:
            yield f"{name!r} is {value!r}; it must be {_AT_MOST[name]:,} at most."
        elif name == "prefix" and (not value or set(value) & set("{} \n")):
            yield f"'prefix' is {value!r}; it must be a word without braces or blanks."
        elif name == "log_kernel" and value not in LOG_KERNELS:
            yield f"'log_kernel' is {value!r}; it must be one of {', '.join(LOG_KERNELS)}."


def _wrong_precisions(value: Any) -> Iterator[str]:
    is_good = isinstance(value, list | tuple) and bool(value)
    if not is_good or not all(type(each) is int and 1 <= each <= _LONGEST_SLICE for each in value):
        yield (
            f"'counter_precisions' is {value!r}; it must be a list of whole numbers of seconds, "
            f"1 to {_LONGEST_SLICE:,}."
        )


def _load(cls: type[_T], given: Mapping[str, Any], where: str) -> _T:
    for problem in problems(cls, given):
        raise ImproperlyConfigured(f"{where}: {problem}")
    return cls(**given)


def components_setting() -> dict[str, Any]:
    """The COMPONENTS dict as written by the project, its keys in lower case."""
    return {str(name).lower(): value for name, value in getattr(settings, "COMPONENTS", {}).items()}


@cache
def conf() -> Conf:
    """The app's settings, as of now. Raises ImproperlyConfigured."""
    return _load(Conf, components_setting(), "settings.COMPONENTS")


@cache
def queue_options(alias: str) -> QueueOptions:
    """The options of the task queue *alias*, as of now. Raises ImproperlyConfigured."""
    tasks = getattr(settings, "TASKS", {})
    if alias not in tasks:
        raise ImproperlyConfigured(
            f"settings.TASKS has no alias {alias!r}; it has: {', '.join(map(repr, tasks)) or 'none'}."
        )
    return _load(QueueOptions, tasks[alias].get("OPTIONS", {}), f'settings.TASKS[{alias!r}]["OPTIONS"]')


def _forget(*, setting: str, **kwargs: Any) -> None:
    if setting == "COMPONENTS":
        conf.cache_clear()
    elif setting == "TASKS":
        queue_options.cache_clear()


setting_changed.connect(_forget, dispatch_uid="components.conf")
