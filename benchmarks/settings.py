"""
A small production site: the queue and nothing else, with a database that tasks could use and do not.

Tasks log at WARNING and above, as those of every peer do here.
"""

from __future__ import annotations

import django

from benchmarks.bench import url

DEBUG = False
SECRET_KEY = "of no use: this site has no visitors"
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "components", "benchmarks"]
if django.VERSION < (6, 0):
    INSTALLED_APPS.append("django_tasks")
USE_TZ = True

DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
# One alias for all: nobody clears a cache here.
SILENCED_SYSTEM_CHECKS = ["components.W006"]
CACHES = {
    "default": {
        "BACKEND": "django_redis.cache.RedisCache",
        "LOCATION": url(),
        "OPTIONS": {"SERIALIZER": "django_redis.serializers.json.JSONSerializer"},
    }
}
TASKS = {"default": {"BACKEND": "components.tasks.RedisBackend", "QUEUES": []}}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "loggers": {name: {"level": "WARNING"} for name in ("django.tasks", "django_tasks")},
}
