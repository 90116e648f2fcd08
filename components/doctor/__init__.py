"""
The doctor looks at a running site and says what is wrong with it, each finding with its remedy: `manage.py doctor`.

A finding is a message as system checks have it. Those that need no server are system checks (checks.py), and come
first; then the server is examined, the rights of its user, and the services, each by the findings.py in its folder.
Nothing is changed: a lock is taken for a moment, to see whether Redis can be written to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from django.core.checks import CheckMessage, Error, run_checks
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from redis.exceptions import NoPermissionError

from components.doctor.rights import examine_rights, not_permitted
from components.doctor.server import examine_server, unusable
from components.exceptions import RedisUnavailable
from components.services.logs.findings import examine as examine_logs
from components.services.queues.findings import examine as examine_queues
from components.services.rows.findings import examine as examine_rows

_EXAMINATIONS: Mapping[str, Callable[[], Iterable[CheckMessage]]] = {
    "server": examine_server,
    "rights": examine_rights,
    "queues": examine_queues,
    "rows": examine_rows,
    "logs": examine_logs,
}
#: Checks without whose consent the settings lead to no server.
_SETTINGS = ("components.E001", "components.E002", "components.E010")


def diagnose() -> list[CheckMessage]:
    """Return what is wrong with this site. Whatever is away or broken is a finding, and not an error."""
    found = [*_system_checks(), *_migrations()]
    if not any(message.id in _SETTINGS for message in found):
        for name, examine in _EXAMINATIONS.items():
            try:
                found += examine()
            except RedisUnavailable as error:
                if name != "server" and isinstance(error.__cause__, NoPermissionError):
                    found.append(not_permitted(name))
                    continue
                found.append(unusable(error))
                if name == "server":  # all others would say the same
                    break
    return [message for message in _each_once(found) if not message.is_silenced()]


def _system_checks() -> Iterator[CheckMessage]:
    for message in run_checks(include_deployment_checks=True):
        if str(message.id).startswith("components."):
            yield message


def _each_once(messages: Iterable[CheckMessage]) -> list[CheckMessage]:
    return list({(message.id, message.msg): message for message in messages}.values())


def _migrations() -> Iterator[CheckMessage]:
    """Yield a finding if migrations of this app are missing in the default database, or it does not answer."""
    try:
        executor = MigrationExecutor(connection)
        plan = executor.migration_plan(executor.loader.graph.leaf_nodes("components"))
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
