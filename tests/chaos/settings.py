"""The settings of the cast. DATABASE_URL names its PostgreSQL."""

import os

import environ

from tests.commands.settings import *  # noqa: F403

INSTALLED_APPS.append("tests.chaos")  # noqa: F405
DATABASES = {"default": {**environ.Env.db_url_config(os.environ["DATABASE_URL"]), "CONN_MAX_AGE": None}}
COMPONENTS["LOG_KERNEL"] = "auto"  # noqa: F405
TASKS["default"]["OPTIONS"] = {  # noqa: F405
    "lease": 1.0,
    "max_crashes": 12,  # so that only those die of it that kill each worker
    "backoff": 0.2,
    "max_backoff": 0.5,
    "successful_limit": 1_000_000,
    "dead_limit": 1_000_000,
}
