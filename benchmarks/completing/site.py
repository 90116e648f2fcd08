"""The site of names: the small production site with an admin, the API, and the database of this run."""

from __future__ import annotations

import os

from benchmarks.completing import DATABASE
from benchmarks.site import *  # noqa: F403

INSTALLED_APPS = [*INSTALLED_APPS, "benchmarks.completing"]  # noqa: F405
ROOT_URLCONF = "benchmarks.completing.urls"
if socket := os.environ.get(DATABASE):
    DATABASES = {
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "HOST": socket,
            "USER": "market",
            "NAME": "postgres",
            "CONN_MAX_AGE": None,
        }
    }
