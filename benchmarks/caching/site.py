"""
The site of rows: the small production site with the database of this run, and a cache of Django's own.

cacheops patches all models of a process, so it is here only in the process that is measured with it.
"""

from __future__ import annotations

import os

from benchmarks.bench import url
from benchmarks.caching import CACHEOPS_HERE
from benchmarks.completing import DATABASE
from benchmarks.settings import *  # noqa: F403

INSTALLED_APPS = [*INSTALLED_APPS, "benchmarks.caching"]  # noqa: F405
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": os.environ[DATABASE],
        "USER": "market",
        "NAME": "postgres",
        "CONN_MAX_AGE": None,
    }
}
CACHES = {
    **CACHES,  # noqa: F405
    "rows": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": url(), "TIMEOUT": 3_600},
}
if CACHEOPS_HERE in os.environ:
    INSTALLED_APPS.append("cacheops")
    CACHEOPS_REDIS = url()
    CACHEOPS = {"caching.item": {"ops": {"get", "fetch"}, "timeout": 3_600}}
