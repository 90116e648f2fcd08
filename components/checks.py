"""System checks: report mistakes in the settings before they cause errors. No check opens a connection."""

import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, TypeAlias

import django
from django.apps import apps
from django.conf import settings
from django.core.cache import DEFAULT_CACHE_ALIAS
from django.core.checks import CheckMessage, Error, Info, Tags, Warning, register
from django.utils.module_loading import import_string

from components.cache import SparingMixin
from components.conf import FUNCTIONS, Conf, components_setting, locked_late, problems
from components.kit.declarations import HINT, unknown
from components.locations import client_class, connection_options, is_redis, mistakes, places
from components.services.queues.backend import redis_aliases
from components.services.queues.mail.checks import check_mail
from components.services.rows.models.checks import check_rows

register(check_mail, "components")
register(check_rows, "components")

Messages: TypeAlias = Callable[[], Iterator[CheckMessage]]

_SHORTEST_TIMEOUT = 2  # seconds; with less, blocking commands would time out while they wait


def _check(*tags: str, deploy: bool = False) -> Callable[[Messages], Callable[..., list[CheckMessage]]]:
    def add(messages: Messages) -> Callable[..., list[CheckMessage]]:
        def check(**kwargs: Any) -> list[CheckMessage]:
            return list(messages())

        return register(check, *tags, deploy=deploy)

    return add


@_check("components")
def check_settings() -> Iterator[CheckMessage]:
    """Check COMPONENTS (E001) and the CACHES alias that it names (E002, E010, W002, W003)."""
    if wrong := list(problems(Conf, components_setting())):
        yield from (Error(f"settings.COMPONENTS: {problem}", id="components.E001") for problem in wrong)
    else:
        yield from _check_cache(components_setting().get("cache", Conf.cache))


def _check_cache(alias: str) -> Iterator[CheckMessage]:
    cache = settings.CACHES.get(alias)
    backend = str(cache.get("BACKEND", "")) if cache is not None else ""
    if cache is None or not backend.startswith("django_redis."):
        yield Error(
            f"settings.CACHES has no alias {alias!r}, where this app would find its Redis."
            if cache is None
            else f"settings.CACHES[{alias!r}], where this app looks for its Redis, is a {backend or 'cache'}, "
            "and not one of django-redis.",
            hint='Give it "BACKEND": "django_redis.cache.RedisCache" and a redis:// or unix:// "LOCATION", '
            'or name another alias in COMPONENTS["CACHE"].',
            id="components.E002",
        )
        return
    if wrong := list(mistakes(cache)):
        yield from (Error(f"settings.CACHES[{alias!r}]: {each}", id="components.E010") for each in wrong)
        return
    options = connection_options(cache)
    if any(options.get(name) for name in ("retry", "retry_on_error", "retry_on_timeout")):
        yield Warning(
            f"settings.CACHES[{alias!r}] lets redis-py repeat commands by itself.",
            hint="A command whose reply was lost would be carried out again. Remove retry, retry_on_error and "
            "retry_on_timeout: the services repeat what may be repeated.",
            id="components.W002",
        )
    timeout = options.get("socket_timeout")
    if timeout is not None and timeout < _SHORTEST_TIMEOUT:
        yield Warning(
            f"settings.CACHES[{alias!r}] has a socket timeout of {timeout} s.",
            hint=f"Workers wait for tasks on the socket; give it {_SHORTEST_TIMEOUT} s or more.",
            id="components.W003",
        )


@_check("components")
def check_clearing() -> Iterator[CheckMessage]:
    """Warn if cache.clear() of some alias would empty the database of this app (W006)."""
    ours = components_setting().get("cache", Conf.cache)
    if not isinstance(ours, str) or not is_redis(settings.CACHES.get(ours, {})):
        return  # check_settings() reports this
    at = places(settings.CACHES[ours])
    for alias, cache in settings.CACHES.items():
        kind = client_class(cache)
        spares = kind is not None and issubclass(kind, SparingMixin)
        is_of_its_own = alias == ours and alias != DEFAULT_CACHE_ALIAS  # no other code uses that alias
        if not is_redis(cache) or spares or is_of_its_own or not at & places(cache):
            continue
        there = f"uses the server and the database of settings.CACHES[{ours!r}]"
        yield Warning(
            f"settings.CACHES[{alias!r}] {'is the cache' if alias == ours else there} in which this app stores its "
            f"queues, locks and messages:  caches[{alias!r}].clear() deletes them all.",
            hint='Give this app its own alias, with another database number in its "LOCATION", and name it in '
            'COMPONENTS["CACHE"]. On a cluster, whose client has one database, use "CLIENT_CLASS": '
            '"components.cache.ClusterClient" for both.',
            id="components.W006",
        )


@_check("components")
def check_closing() -> Iterator[CheckMessage]:
    """W016: caches that close connections while other threads use them."""
    always = getattr(settings, "DJANGO_REDIS_CLOSE_CONNECTION", False)
    for alias, cache in settings.CACHES.items():
        is_theirs = str(cache.get("BACKEND", "")).startswith("django_redis.")
        if is_theirs and cache.get("OPTIONS", {}).get("CLOSE_CONNECTION", always):
            yield Warning(
                f"settings.CACHES[{alias!r}] closes all its connections at the end of each request, also those that "
                "other threads are using.",
                hint="Remove DJANGO_REDIS_CLOSE_CONNECTION, and CLOSE_CONNECTION of its OPTIONS: the pool uses "
                "connections again.",
                id="components.W016",
            )


@_check("components", Tags.security)
def check_pickle() -> Iterator[CheckMessage]:
    """Warn of caches in Redis that unpickle what they read (W007)."""
    yield from (
        Warning(
            f"settings.CACHES[{alias!r}] reads pickled values from Redis.",
            hint="Whoever can write to that Redis can run code in this process. Give it "
            + (
                '"OPTIONS": {"SERIALIZER": "django_redis.serializers.json.JSONSerializer"}.'
                if str(cache["BACKEND"]).startswith("django_redis.")
                else 'a "SERIALIZER" in its OPTIONS that does not use pickle, or use django-redis and its JSON.'
            ),
            id="components.W007",
        )
        for alias, cache in settings.CACHES.items()
        if is_redis(cache) and _pickles(cache)
    )


def _pickles(cache: Mapping[str, Any]) -> bool:
    """Return True if the cache's serializer is pickle, the default of django-redis and of Django's own cache."""
    options = cache.get("OPTIONS", {})
    return "pickle" in str(options.get("SERIALIZER", options.get("serializer", "pickle"))).lower()


@_check("components")
def check_paths() -> Iterator[CheckMessage]:
    """Report dotted paths in COMPONENTS that cannot be imported (E006)."""
    given = components_setting()
    named = [
        (name, given.get(name))
        for name in ("people", "books", "api_authentication", "chat_consent", "chat_hidden")
    ]
    for name in (*FUNCTIONS, "task_modules"):
        paths = given.get(name)
        named += [(name, path) for path in (paths if isinstance(paths, list | tuple) else ())]
    for name, path in named:
        try:
            if name == "task_modules":
                import_module(str(path))
            elif isinstance(path, str) and not callable(import_string(path)):
                raise ImportError(f"{path} cannot be called.")
        except ImportError as error:
            yield Error(f'settings.COMPONENTS["{name.upper()}"]: {error}', id="components.E006")


@_check("components")
def check_name() -> Iterator[CheckMessage]:
    """E011: another distribution has put its files among this app's. W008: there is another package components."""
    for other in _namesakes():
        yield Warning(
            f"{other} is called components as well, so it cannot be imported beside this app.",
            hint="Which of the two Python imports depends on the order of sys.path, and that may differ between "
            "processes. Rename yours, or move it into another package.",
            id="components.W008",
        )
    if _shares_its_folder():
        yield Error(
            "The distribution called components has installed its files among those of django-redis-components.",
            hint="Run `pip uninstall components`, and then "
            "`pip install --force-reinstall --no-deps django-redis-components`.",
            id="components.E011",
        )


def _namesakes() -> Iterator[Path]:
    """Yield the modules and packages on sys.path that are called components, except this app."""
    ours = Path(__file__).with_name("__init__.py").resolve()
    for folder in dict.fromkeys(sys.path):
        spec = PathFinder.find_spec("components", [folder or str(Path.cwd())])
        # A folder without __init__.py has no origin, and hides nothing.
        if spec and spec.origin and (other := Path(spec.origin).resolve()) != ours:
            yield other.parent if other.name == "__init__.py" else other


def _shares_its_folder() -> bool:
    """Return True if the distribution components, which is a stranger's, has a package of that name."""
    try:
        files = distribution("components").files or []
    except PackageNotFoundError:
        return False
    return any(file.parts[0] == "components" for file in files)


@_check("components")
def check_commands() -> Iterator[CheckMessage]:
    """Warn if two apps have a command `runworker` (W001)."""
    if apps.is_installed("channels"):
        yield Warning(
            "Both channels and components have a command runworker; the app that comes first in "
            "INSTALLED_APPS hides the other's.",
            hint="`manage.py runworker --help` shows which one you get. Put the one you need first.",
            id="components.W001",
        )


@_check(Tags.security, deploy=True)
def check_embedded() -> Iterator[CheckMessage]:
    """Warn of the embedded server in production (W004)."""
    if components_setting().get("embedded"):
        yield Warning(
            "This project uses the embedded Redis server, which is for development and the demo.",
            hint="Nothing updates its binary when security fixes come out, and it ends with the process that started "
            "it. Run a Redis or Valkey of your own, name it in REDIS_URL, and leave EMBEDDED out of COMPONENTS.",
            id="components.W004",
        )


@_check("components")
def check_middleware() -> Iterator[CheckMessage]:
    """W009: pages answer 500 instead of 503 while Redis is away."""
    wanted = "components.middleware.RedisUnavailableMiddleware"
    if settings.MIDDLEWARE and wanted not in settings.MIDDLEWARE:
        yield Warning(
            f"settings.MIDDLEWARE lacks {wanted}, so a page that needs Redis fails with 500 while Redis is away.",
            hint="Put it last, and such a page answers 503 and asks to try again.",
            id="components.W009",
        )


@_check("components")
def check_tasks() -> Iterator[CheckMessage]:
    """W010: no queue. W011: on Django 5.2, what checks TASKS is missing. I015: nobody said when tasks are stored."""
    if not settings.is_overridden("TASKS"):  # type: ignore[misc]
        yield Warning(
            "settings.TASKS is not set, so Django runs each task at once, in the request that enqueues it.",
            hint='Set TASKS = {"default": {"BACKEND": "components.tasks.RedisBackend", "QUEUES": []}}.',
            id="components.W010",
        )
    for alias in redis_aliases():
        if "on_commit" not in settings.TASKS[alias].get("OPTIONS", {}):
            yield Info(
                f"TASKS[{alias!r}] does not say whether tasks wait for the commit of their caller.",
                hint='Without "OPTIONS": {"on_commit": True}, a worker may begin before it can see what was saved.',
                id="components.I015",
            )
    if django.VERSION < (6, 0) and not apps.is_installed("django_tasks"):
        yield Warning(
            "INSTALLED_APPS lacks django_tasks, the backport of django.tasks, so nothing checks settings.TASKS.",
            hint='Add "django_tasks" to INSTALLED_APPS. From Django 6.0 on it is not needed.',
            id="components.W011",
        )


@_check("components")
def check_sqlite() -> Iterator[CheckMessage]:
    """W015: two threads that write to SQLite can fail, however short their transactions are."""
    for alias in locked_late():
        yield Warning(
            f"DATABASES[{alias!r}] is SQLite, whose transactions take the lock for writing only when they write: "
            'beside a worker, a visitor may get "database is locked" at once.',
            hint='Set "OPTIONS": {"transaction_mode": "IMMEDIATE"} in it.',
            id="components.W015",
        )


@_check("components")
def check_declarations() -> Iterator[CheckMessage]:
    """W013: periodic tasks, cached rows, address books or receivers that workers do not know."""
    # With wrong settings (E001) the modules with tasks are not known.
    for file in () if any(problems(Conf, components_setting())) else unknown():
        yield Warning(
            f"{file} declares something, and workers do not import it.", hint=HINT, id="components.W013"
        )
