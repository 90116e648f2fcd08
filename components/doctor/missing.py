"""The settings that a project lacks, as Python that can be put at the end of its settings."""

from collections.abc import Mapping
from itertools import count
from typing import Any

import django
from django.apps import apps
from django.conf import settings

from components.conf import Conf, components_setting, locked_late
from components.kit.compat import task_backends
from components.locations import Place, client_class, is_redis, places
from components.services.queues.backend import RedisBackend

_MIDDLEWARE = "components.middleware.RedisUnavailableMiddleware"
_CACHE = """\
{{
    "BACKEND": "django_redis.cache.RedisCache",
    "LOCATION": os.environ.get("REDIS_URL", "redis://localhost:6379/{number}"),
    "KEY_PREFIX": "{name}",
    "OPTIONS": {{"SERIALIZER": "django_redis.serializers.json.JSONSerializer"}},
}}"""


def missing_settings() -> str:
    """Return them; "" if there are none. Settings that are there but wrong are the affair of the checks."""
    parts = []
    if django.VERSION < (6, 0) and not apps.is_installed("django_tasks"):
        parts.append('INSTALLED_APPS += ["django_tasks"]  # the backport of django.tasks, until Django 6.0')
    if settings.MIDDLEWARE and _MIDDLEWARE not in settings.MIDDLEWARE:
        parts.append(f'MIDDLEWARE += ["{_MIDDLEWARE}"]  # the last one: 503 while Redis is away')
    parts += [
        f'DATABASES["{alias}"].setdefault("OPTIONS", {{}})["transaction_mode"] = "IMMEDIATE"  # for many writers'
        for alias in locked_late()
    ]
    alias = components_setting().get("cache", Conf.cache)
    if not str(settings.CACHES.get(alias, {}).get("BACKEND", "")).startswith("django_redis."):
        parts.append(_cache_of_its_own())
    elif "cache" not in components_setting() and (beside := _database_of_its_own(settings.CACHES[alias])):
        parts.append(beside)
    if not any(isinstance(task_backends[each], RedisBackend) for each in task_backends):
        backend = '{"BACKEND": "components.tasks.RedisBackend", "QUEUES": [], "OPTIONS": {"on_commit": True}}'
        parts.append(_entry("TASKS", "default", backend))
    if not parts:
        return ""
    return "\n".join([*(["import os\n"] if any("os.environ" in part for part in parts) else []), *parts, ""])


def _cache_of_its_own() -> str:
    """Return an alias of django-redis with a database that no other alias uses, and the setting that names it."""
    used = {place for cache in settings.CACHES.values() if is_redis(cache) for place in places(cache)}
    number = next(each for each in count(1) if Place("localhost:6379", str(each)) not in used)
    name = components_setting().get("cache", "components")
    lines = ["# cache.clear() empties a whole database, so queues, locks and messages have their own."]
    if not settings.is_overridden("CACHES"):  # type: ignore[misc]
        lines.append('CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}')
    lines.append(f'CACHES["{name}"] = {_CACHE.format(number=number, name=name)}')
    if "cache" not in components_setting():
        lines.append(_entry("COMPONENTS", "CACHE", f'"{name}"'))
    return "\n".join(lines)


def _database_of_its_own(cache: Mapping[str, Any]) -> str:
    """Return an alias on the server of the default one; "" if its clear() spares others, or a cluster has no room."""
    found, kind = places(cache), client_class(cache)
    spares = kind is not None and any(each.__module__ == "components.cache" for each in kind.__mro__)
    is_one = len(found) == 1 and isinstance(cache["LOCATION"], str)
    if not is_one or spares or "luster" in str(kind):
        return ""
    [place] = found
    used = {each for other in settings.CACHES.values() if is_redis(other) for each in places(other)}
    number = next(each for each in count(1) if Place(place.server, str(each)) not in used)
    location = f'with_database(CACHES["default"]["LOCATION"], {number})'
    return (
        "# caches['default'].clear() empties a whole database, so queues, locks and messages have their own.\n"
        "from components.locations import with_database\n\n"
        f'CACHES["components"] = {{**CACHES["default"], "LOCATION": {location}, "KEY_PREFIX": "components"}}\n'
        + _entry("COMPONENTS", "CACHE", '"components"')
    )


def _entry(setting: str, key: str, value: str) -> str:
    if settings.is_overridden(setting):  # type: ignore[misc]
        return f'{setting}["{key}"] = {value}'
    return f'{setting} = {{"{key}": {value}}}'
