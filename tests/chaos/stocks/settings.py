"""The settings of the processes that write, load and read stocks. DATABASE_URL names their PostgreSQL."""

from __future__ import annotations

import os

import environ

from tests.commands.settings import *  # noqa: F403

INSTALLED_APPS.append("tests.chaos.stocks")  # noqa: F405
DATABASES = {"default": {**environ.Env.db_url_config(os.environ["DATABASE_URL"]), "CONN_MAX_AGE": None}}
