"""
The settings of the processes that tests start: this app and nothing else, on the server that REDIS_URL names.

LEASE, MAX_ATTEMPTS, BACKOFF and MAX_CRASHES are the options of the queue, APPS the names of more apps; with
COUNT_SERVICES services count what happens to them. DATABASE is the file of a database of SQLite, EMBEDDED the folder
of the embedded server.
"""

import os
from pathlib import Path

import django

SECRET_KEY = "only-for-tests"
INSTALLED_APPS = ["components", "tests", *os.environ.get("APPS", "").split()]
DJANGO_TASKS = "django.tasks"
if django.VERSION < (6, 0):
    DJANGO_TASKS = "django_tasks"
    INSTALLED_APPS.append(DJANGO_TASKS)
COMPONENTS = {"COUNT_SERVICES": "COUNT_SERVICES" in os.environ, "LOG_KERNEL": "naive"}
if "EMBEDDED" in os.environ:
    COMPONENTS["EMBEDDED"] = Path(os.environ["EMBEDDED"])
if "DATABASE" in os.environ:
    DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ["DATABASE"]}}
USE_TZ = True
TIME_ZONE = "UTC"
# One alias for all: nobody clears a cache here.
SILENCED_SYSTEM_CHECKS = ["components.W006"]
CACHES = {
    "default": {
        "BACKEND": "django_redis.cache.RedisCache",
        "LOCATION": os.environ["REDIS_URL"],
        "OPTIONS": {"on_commit": False, "SERIALIZER": "django_redis.serializers.json.JSONSerializer"},
    }
}
TASKS = {
    "default": {
        "BACKEND": "components.tasks.RedisBackend",
        "QUEUES": [],
        "OPTIONS": {
            "on_commit": True,
            "lease": float(os.environ.get("LEASE", "30")),
            "max_attempts": int(os.environ.get("MAX_ATTEMPTS", "1")),
            "backoff": float(os.environ.get("BACKOFF", "15")),
            "max_crashes": int(os.environ.get("MAX_CRASHES", "3")),
        },
    },
    "plain": {"BACKEND": f"{DJANGO_TASKS}.backends.dummy.DummyBackend"},
}
