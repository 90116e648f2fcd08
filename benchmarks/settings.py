"""
The Django site beside a benchmark, chosen by BENCHMARK_SITE.

By default it is a small production site: the queue, and a database that tasks could use but do not. "admin" adds the
control room as a project would have it, and "shop" adds tables in PostgreSQL, two admins of them and the HTTP API. On
"pages" the services are counted, too, so that pages have their charts.
Tasks log at WARNING and above, as those of every peer do here.
"""

from __future__ import annotations

import os

import django

from benchmarks.harness import COUNTED, DATABASE, ROOT, SITE, url

DEBUG = False
SECRET_KEY = "not secret: this site has no visitors"
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "components", "benchmarks"]
if django.VERSION < (6, 0):
    INSTALLED_APPS.append("django_tasks")
USE_TZ = True
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
# One alias is used for everything, because nobody clears a cache here.
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

if os.environ.get(SITE):
    INSTALLED_APPS += [
        f"django.contrib.{name}" for name in ("admin", "sessions", "messages", "staticfiles", "humanize")
    ]
    MIDDLEWARE = [
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.common.CommonMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
        "components.middleware.RedisUnavailableMiddleware",
    ]
    ROOT_URLCONF = "benchmarks.urls"
    ALLOWED_HOSTS = ["testserver"]  # the host name of the test client
    STATIC_URL = "static/"
    processors = ["template.context_processors.request", "contrib.auth.context_processors.auth"]
    processors += ["contrib.messages.context_processors.messages"]
    TEMPLATES = [
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "DIRS": [ROOT / "templates"],
            "APP_DIRS": True,
            "OPTIONS": {"context_processors": [f"django.{name}" for name in processors]},
        }
    ]

if os.environ.get(SITE) == "pages" or COUNTED in os.environ:
    COMPONENTS = {"COUNT_SERVICES": True}

if os.environ.get(SITE) == "shop":
    INSTALLED_APPS.append("benchmarks.shop")
    ROOT_URLCONF = "benchmarks.shop.urls"
    if DATABASE in os.environ:
        DATABASES["default"] = {
            "ENGINE": "django.db.backends.postgresql",
            "HOST": os.environ[DATABASE],
            "USER": "market",
            "NAME": "postgres",
            "CONN_MAX_AGE": None,
        }
    CACHES["rows"] = {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": url(),
        "TIMEOUT": 3_600,
    }
    # cacheops patches all models of a process, so only its own process loads it.
    if "BENCHMARK_CACHEOPS" in os.environ:
        INSTALLED_APPS.append("cacheops")
        CACHEOPS_REDIS = url()
        CACHEOPS = {"shop.item": {"ops": {"get", "fetch"}, "timeout": 3_600}}
