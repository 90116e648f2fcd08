"""Whether this app's migrations were applied."""

from __future__ import annotations

from collections.abc import Iterator

from django.core.checks import CheckMessage, Error
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor


def examine_migrations() -> Iterator[CheckMessage]:
    """Yield a finding if migrations of this app are missing in the default database, or it does not answer."""
    try:
        executor = MigrationExecutor(connection)
        plan = executor.migration_plan(
            [key for key in executor.loader.graph.leaf_nodes() if key[0] == "components"]
        )
    except ImproperlyConfigured:
        return  # a project without a database has no admin that needs the permissions
    except DatabaseError as error:
        yield Error(
            f"The default database does not answer, so migrations were not looked at: {str(error).strip()}",
            hint="Start it, or correct settings.DATABASES.",
            id="components.E109",
        )
        return
    missing = [migration.name for migration, _backwards in plan if migration.app_label == "components"]
    if missing:
        yield Error(
            f"Migrations of components are not applied ({', '.join(missing)}), so the admin knows no permissions for "
            "its pages.",
            hint="Run `manage.py migrate`.",
            id="components.E110",
        )
