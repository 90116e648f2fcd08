"""
Typed settings: the COMPONENTS dict of the app, and the OPTIONS of a TASKS alias for a task queue.

Both are read when they are first used, and again after `override_settings`. A wrong name or type is reported by the
system checks (checks.py), and raises ImproperlyConfigured when it is used.
"""

import difflib
import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

from django.apps import apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.utils.module_loading import import_string

#: The kernels that count log lines, fastest first. "auto" is the first of the others that is installed.
LOG_KERNELS = ("auto", "numba", "naive")


@dataclass(frozen=True)
class Conf:
    """The COMPONENTS setting; each key is the field's name in capitals."""

    #: The first part of every key. It keeps two environments on one Redis apart.
    prefix: str = "components"
    #: The CACHES alias (of django-redis) that says where Redis is.
    cache: str = "default"
    #: The folder of the embedded server, if the project uses one: `manage.py runall` starts it. None in production.
    embedded: Path | str | None = None
    #: The e-mail backend that the worker uses to send queued mail.
    mail_backend: str = "django.core.mail.backends.smtp.EmailBackend"
    #: The TASKS alias and the queue for mail.
    mail_tasks: str = "default"
    mail_queue: str = "default"
    #: The most long-polls that wait in one process; further ones are answered at once.
    max_waiters: int = 2_000
    #: The most long-polls of one person, in all tabs and on all devices; further ones are answered at once.
    max_waiters_per_person: int = 12
    #: Dotted path of a callable(request) -> user or None, for requests with "Authorization: Bearer …".
    api_authentication: str | None = None
    #: The dotted path of a class that knows people by their ids; people/__init__.py documents its methods.
    people: str = "components.people.Users"
    #: How many chats a person may create in how many seconds, and how many people they may add to chats, including
    #: themselves when they join; 0 means no limit. Redis counts for all processes together.
    chat_create_limit: int = 30
    chat_create_period: float = 3_600.0
    chat_add_limit: int = 1_000
    chat_add_period: float = 3_600.0
    #: The most chats that a person may have created, and the most that a person may be in; 0 means no limit.
    max_chats_created: int = 200
    max_chats_joined: int = 1_000
    #: The dotted path of a callable(by, ids) that returns those of *ids* who refuse to be added to chats by *by*.
    #: None means that nobody refuses.
    chat_consent: str | None = None
    #: Whether members see who has a chat open, who was there when, and who is typing. False stores nothing of it.
    chat_presence: bool = True
    #: The dotted path of a callable(user) that returns whether the others do not see this of a person. None means
    #: that everybody is shown.
    chat_hidden: str | None = None
    #: Dotted path of a class that decides who may search which address book: see services/autocomplete/access.py.
    books: str = "components.services.autocomplete.access.Readers"
    #: The TASKS alias and the queue of the rebuilds of address books that are requested in the admin.
    book_tasks: str = "default"
    book_queue: str = "default"
    #: The template that the pages for visitors extend.
    base_template: str = "components/base.html"
    #: The lengths of counter slices, in seconds. A slice that is the sum of shorter ones is not stored.
    counter_precisions: Sequence[int] = (1, 5, 60, 300, 3_600, 18_000, 86_400)
    #: How many slices of each length are kept, at least.
    counter_samples: int = 120
    #: Whether CountRequestsMiddleware counts, if it is in MIDDLEWARE.
    count_requests: bool = True
    #: Whether tasks, chats, mailboxes, address books, locks and semaphores count what happens to them.
    count_services: bool = False
    #: Whether tasks, chats, mailboxes, locks, semaphores and rows add up what happens to them, for /metrics.
    metrics: bool = False
    #: The bearer token that /metrics wants; without one, only staff who may view counters may read it.
    metrics_token: str | None = None
    #: Modules with tasks that belong to no installed app, such as "library.tasks". Workers import them.
    task_modules: Sequence[str] = ()
    #: The dotted paths of functions around enqueueing and around running, the outermost first: see queues.md.
    enqueue_middleware: Sequence[str] = ()
    run_middleware: Sequence[str] = ()
    #: The dotted paths of functions that are called after each wait for a lock or a semaphore: see observing.md.
    on_wait: Sequence[str] = ()
    #: The kernel that counts log lines: "numba", or "naive" in plain Python; "auto" is numba if it is installed.
    log_kernel: str = "auto"
    #: Whether this process runs tests, which may use private servers only. None: if Django's test environment is set
    #: up. False: tests may use the Redis of the settings, since it is theirs.
    test_run: bool | None = None


@dataclass(frozen=True)
class QueueOptions:
    """OPTIONS of a TASKS alias whose BACKEND is RedisBackend. Durations in seconds, sizes in bytes."""

    #: How long a claim on a task lasts without renewal; workers renew it after a third of that time.
    lease: float = 30.0
    #: How long the result of a successful task can be read, at least a minute: a push whose reply was lost is sent
    #: again, and recognised by the result of the first one.
    result_ttl: float = 86_400.0
    #: How many successful tasks of each queue the admin can list.
    successful_limit: int = 1_000
    #: Dead tasks are removed when they are this old, or when their queue has more than this many.
    dead_ttl: float = 180 * 86_400.0
    dead_limit: int = 10_000
    #: How often a task is started before a failure is final.
    max_attempts: int = 5
    #: The delay before the first retry; it doubles with each, up to max_backoff, and is shortened at random by up to
    #: half.
    backoff: float = 15.0
    max_backoff: float = 3_600.0
    #: Whether a call in a transaction is stored when that is committed: True, or the alias of the database. README
    #: has True; False is what Django's own backends do.
    on_commit: bool | str = False
    #: The tasks, by patterns of their paths, whose equal calls run one after another, in all workers together, since
    #: they read a row and store what follows from it: of two at once, the one that has read the older row may be the
    #: last to store. By default those of Wagtail. A concurrency that a task declares goes before.
    serial: Sequence[str] = (
        "modelsearch.tasks.*",
        "wagtail.tasks.update_reference_index_task",
        "wagtail.images.tasks.*",
    )
    #: How long a task may run; None for ever.
    timeout: float | None = None
    #: How many workers may die during a task before it goes to the dead set.
    max_crashes: int = 3
    #: The largest body (arguments as JSON) that is accepted. Store larger data elsewhere, and pass their key.
    max_body: int = 65_536
    #: The largest return value (as JSON) that is stored, and the limit for all errors of a task together.
    max_result: int = 1_048_576
    #: Whether delayed tasks that are due run before others of their priority: the book's "high-delayed" before
    #: "high".
    due_first: bool = False


_T = TypeVar("_T", Conf, QueueOptions)
_AT_LEAST: dict[str, float] = {
    **dict.fromkeys(("successful_limit", "dead_ttl", "backoff", "max_backoff"), 0),
    **dict.fromkeys(("max_waiters", "max_waiters_per_person", "max_chats_created", "max_chats_joined"), 0),
    **dict.fromkeys(("chat_create_limit", "chat_add_limit"), 0),
    **dict.fromkeys(("lease", "dead_limit", "max_attempts", "max_crashes", "max_body", "counter_samples"), 1),
    **dict.fromkeys(("chat_create_period", "chat_add_period"), 1),
    "timeout": 0.001,
    "result_ttl": 60,
    "max_result": 4_096,
}
_LONGEST_SLICE = 366 * 86_400  # seconds
_AT_MOST = {"counter_samples": 10_000}
#: Lists of dotted paths of functions.
FUNCTIONS = ("enqueue_middleware", "run_middleware", "on_wait")


def problems(cls: type[Conf] | type[QueueOptions], given: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each mistake in *given*, whose keys are spelled like the fields of *cls*."""
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
        if name in (*FUNCTIONS, "task_modules", "serial"):
            if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
                yield f"{name!r} is {value!r}; it must be a list of dotted paths."
            continue
        types = get_args(hints[name]) or (hints[name],)
        if float in types:
            types = (*types, int)
        if (isinstance(value, bool) and bool not in types) or not isinstance(value, types):
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
    """Return the COMPONENTS dict of the project, with its keys in lower case."""
    return {str(name).lower(): value for name, value in getattr(settings, "COMPONENTS", {}).items()}


def locked_late() -> Iterator[str]:
    """Yield the aliases of files of SQLite whose transactions do not take the lock for writing when they begin."""
    for alias, entry in settings.DATABASES.items():
        is_sqlite = entry.get("ENGINE", "").endswith(("sqlite3", "spatialite"))
        is_file = not re.search(":memory:|mode=memory", str(entry.get("NAME")))
        mode = str(entry.get("OPTIONS", {}).get("transaction_mode")).upper()
        if is_sqlite and is_file and mode not in ("IMMEDIATE", "EXCLUSIVE"):
            yield alias


def warn_unless_installed() -> None:
    """Warn of a project that uses this app and has not installed it, in which no check of it runs."""
    if apps.ready and not apps.is_installed("components"):
        warnings.warn(
            'This project uses components, but "components" is not in INSTALLED_APPS, so there are no commands such '
            "as runworker, no admin pages and no checks. Add it.",
            RuntimeWarning,
            stacklevel=2,
        )


@cache
def conf() -> Conf:
    """Return the current settings of the app. Raises ImproperlyConfigured."""
    warn_unless_installed()
    return _load(Conf, components_setting(), "settings.COMPONENTS")


@cache
def functions(name: str) -> tuple[Callable[..., Any], ...]:
    """Return the functions that the setting *name*, one of FUNCTIONS, lists. Raises ImproperlyConfigured."""
    found, setting = [], f'settings.COMPONENTS["{name.upper()}"]'
    for path in getattr(conf(), name):
        try:
            function = import_string(path)
        except ImportError as error:
            raise ImproperlyConfigured(f"{setting}: {error}") from error
        if not callable(function):
            raise ImproperlyConfigured(f"{setting}: {path} cannot be called.")
        found.append(function)
    return tuple(found)


@cache
def queue_options(alias: str) -> QueueOptions:
    """Return the current options of the task queue *alias*. Raises ImproperlyConfigured."""
    tasks = getattr(settings, "TASKS", {})
    if alias not in tasks:
        raise ImproperlyConfigured(
            f"settings.TASKS has no alias {alias!r}; it has: {', '.join(map(repr, tasks)) or 'none'}."
        )
    return _load(QueueOptions, tasks[alias].get("OPTIONS", {}), f'settings.TASKS[{alias!r}]["OPTIONS"]')


def _forget(*, setting: str, **kwargs: Any) -> None:
    if setting == "COMPONENTS":
        conf.cache_clear()
        functions.cache_clear()
    elif setting == "TASKS":
        queue_options.cache_clear()


setting_changed.connect(_forget, dispatch_uid="components.conf")
