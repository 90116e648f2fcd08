"""Real databases with the tables of tests.db, for writers in several threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import environ
import pytest
from django.apps import apps
from django.db import connections
from django.db.models.signals import post_delete, post_save, pre_delete, pre_save
from pytest_django import DjangoDbBlocker

from components.services.rows.models import CachedRows
from tests.db.models import Box, Crate, Shelf

ALIAS = "arena"


@pytest.fixture(params=["sqlite", "postgres"])
def arena(
    request: pytest.FixtureRequest, tmp_path: Path, django_db_blocker: DjangoDbBlocker
) -> Iterator[str]:
    """The alias of an empty database that several threads may write to; its transactions are their own."""
    is_postgres = request.param == "postgres"
    url = (
        request.getfixturevalue("postgres_server").url()
        if is_postgres
        else f"sqlite:///{tmp_path}/db.sqlite3"
    )
    # IMMEDIATE is not set: the fences must hold without it.
    options: dict[str, Any] = {} if is_postgres else {"timeout": 20}
    connections.settings[ALIAS] = {
        **connections.settings["default"],
        **environ.Env.db_url_config(url),
        "OPTIONS": options,
        "CONN_MAX_AGE": None,
    }
    with django_db_blocker.unblock(), _tables():
        yield ALIAS
    del connections.settings[ALIAS]


@contextmanager
def _tables() -> Iterator[None]:
    models = [Shelf, Box, Crate]
    with connections[ALIAS].schema_editor() as editor:
        for model in models:
            editor.create_model(model)
    try:
        yield
    finally:
        with connections[ALIAS].schema_editor() as editor:
            for model in reversed(models):
                editor.delete_model(model)
        connections[ALIAS].close()
        del connections[ALIAS]


def alone(work: Callable[[], Any]) -> Callable[[], Any]:
    """*work* for a thread of its own, which closes its connection at the end."""

    def run() -> Any:
        try:
            return work()
        finally:
            connections[ALIAS].close()

    return run


def forget(rows: CachedRows) -> None:
    """Let nothing be known of these cached rows, nor writes be told."""
    from components.services.rows.models import models

    del models._declared[rows.name]
    for sender in apps.get_models():
        for signal in (pre_save, pre_delete, post_save, post_delete):
            for uid in (f"components.rows:{rows.name}", f"components.rows:{rows.name}:referred"):
                signal.disconnect(sender=sender, dispatch_uid=uid)
