"""
The doctor looks at a running site and says what is wrong with it, each finding with its remedy: `manage.py doctor`.

A finding is a message as system checks have it. Those that need no server are system checks (checks.py), and come
first; then the server is examined, the rights of its user, and the services, each by the report.py in its folder.
Nothing is changed: a lock is taken for a moment, to see whether Redis can be written to.
"""

from collections.abc import Iterable, Iterator

from django.core.checks import CheckMessage, Error, run_checks
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.utils.translation import override
from redis.exceptions import NoPermissionError

from components.doctor.rights import examine_rights, not_permitted, user_of
from components.doctor.server import examine_server, unusable
from components.exceptions import RedisUnavailable
from components.kit.client import get_client
from components.kit.errors import translated
from components.kit.readings import gather
from components.reports import finding_of, reports

#: Checks without whose consent the settings lead to no server.
_SETTINGS = ("components.E001", "components.E002", "components.E010")


def diagnose() -> list[CheckMessage]:
    """Return what is wrong with this site. Whatever is away or broken is a finding, and not an error."""
    checked = run_checks(include_deployment_checks=True)
    found = [*(message for message in checked if str(message.id).startswith("components.")), *_migrations()]
    if not any(message.id in _SETTINGS for message in found):
        try:
            with override(None):
                found += examine_server()
        except RedisUnavailable as error:
            found.append(unusable(error))  # all others would say the same
        else:
            found += _each("rights", examine_rights())
            found += _services()
    once = {(message.id, message.msg): message for message in found}
    return [message for message in once.values() if not message.is_silenced()]


def _services() -> Iterator[CheckMessage]:
    """Yield what services say: the lines of their cards, in English as all findings, and what else they look for."""
    if (
        user_of(get_client()) == "web"
    ):  # who may not ask for all of it: each refusal would be an entry of ACL LOG
        yield not_permitted("services")
        return
    with override(None):
        gathered = gather({model.__name__: report.card() for model, report in reports().items()})
        for model, report in reports().items():
            name = str(model._meta.verbose_name_plural)
            if card := gathered.found.get(model.__name__):
                yield from (finding_of(line, name) for line in card.lines)
            else:
                yield _unread(name, gathered.missing[model.__name__])
            if hasattr(report, "examine"):
                yield from _each(name, report.examine())


def _each(name: str, examination: Iterable[CheckMessage]) -> Iterator[CheckMessage]:
    try:
        yield from examination
    except RedisUnavailable as error:
        yield _unread(name, error)


def _unread(name: str, error: Exception) -> CheckMessage:
    if isinstance(error, NoPermissionError) or isinstance(error.__cause__, NoPermissionError):
        return not_permitted(name)
    return unusable(translated(error))


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
