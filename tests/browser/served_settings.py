"""The settings of the site that tests/browser/served.py runs: the test's own Redis, and a database of its own."""

import os
from pathlib import Path

from tests.settings import *  # noqa: F403

CACHES["default"]["LOCATION"] = os.environ["SERVED_REDIS"]  # noqa: F405
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": Path(os.environ["SERVED_FOLDER"]) / "db.sqlite3",
    }
}
ALLOWED_HOSTS = ["127.0.0.1"]
