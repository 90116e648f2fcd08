"""
A pytest plugin: the project uses Redis as a user with the rights that `manage.py acl` gives it, while what tests do
to the server themselves may do all.

    python -m pytest --redis-user roles                 each test as the user whose processes do what it is about
    python -m pytest --redis-user worker tests/queues   all as this user

ROLES says which user that is. Processes that a test starts, and servers that it starts without redis_at, are its own.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.test.signals import setting_changed
from redis import Redis
from redis.exceptions import ConnectionError

from components import services, testing
from components.embedded import EmbeddedServer
from components.kit.client import get_client
from components.kit.rights import USERS, rights

PASSWORD = "only-for-tests"
#: The keys of a cache without a prefix, and of locks that a project makes with redis-py, which it adds itself.
OWN_KEYS = ("~:*", "~a", "~report")
SERVICES = sorted(path.parent.name for path in Path(services.__file__).parent.glob("*/keys.py"))
#: The user of each test, by its id without "tests/": the first pattern that fits counts. "" may do all.
ROLES: tuple[tuple[str, str], ...] = (
    # Locks at keys that no pattern describes.
    ("control_room/*test_pages_go_on_where_somebody_else_has_written_odd_names_and_scores*", ""),
    ("locks/*test_a_key_of_the_callers_own_is_found_by_it*", ""),
    ("locks/*test_a_lock_may_be_called_anything_and_be_at_any_key*", ""),
    # Replicas, which do not have the users.
    ("autocomplete/*test_a_replica*", ""),
    # It takes a right from the user that may do all.
    ("overview/*test_a_server_that_does_not_permit_info*", ""),
    # A worker in the same process.
    ("rows/api/*test_a_row_that_is_not_loaded_in_time_is_a_problem*", "worker"),
    # What is about this user's processes.
    ("*/admin/*", "admin"),
    ("control_room/*", "admin"),
    ("overview/*", "admin"),
    ("api/*", "web"),
    ("*/api/*", "web"),
    ("*/page/*", "web"),
    ("autocomplete/forms/*", "web"),
    ("counters/middleware/*", "web"),
    ("observing/test_metrics.py::test_health*", "web"),
    ("observing/test_metrics.py::test_ready*", "web"),
    ("observing/test_metrics.py::test_without_*not_ready*", "web"),
    *((f"{service}/*", "worker") for service in SERVICES),
    ("observing/*", "worker"),
    ("kit/test_lost_replies*", "worker"),
    # What serves or proves all of it: processes, servers and users of its own.
    ("*", ""),
)
_redis_at, _run = testing.redis_at, EmbeddedServer._run
_option = ""
#: The user of the present test; "" may do all.
_user = ""
#: The clients of the servers that the project uses now, which may do all.
_operators: list[Redis] = []


def operator() -> Redis:
    """Return a client of the project's present server that may do all."""
    return _operators[-1] if _operators else get_client()


def add_user(client: Redis, user: str, *more: str, cluster: bool = False) -> None:
    client.execute_command("ACL SETUSER", *_rules(user, *more, cluster=cluster))


def _rules(user: str, *more: str, cluster: bool) -> list[str]:
    return [user, "reset", "on", f">{PASSWORD}", *rights(user, cluster=cluster), *more]


def as_user(url: str, user: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=f"{user}:{PASSWORD}@{parts.netloc.rpartition('@')[2]}").geturl()


@contextmanager
def redis_at(url: str, **options: Any) -> Iterator[Redis]:
    """Let the project be the user of the present test, while the client that this yields may do all."""
    # Several nodes have no users, and a URL with a user is that of a redis_at around this one.
    user = "" if "," in url or f":{PASSWORD}@" in url else _user
    if not user:
        with _redis_at(url, **options) as client:
            yield client
        return
    is_cluster = "cluster" in str(options.get("CLIENT_CLASS", "")).lower()
    with ExitStack() as stack:
        everything = stack.enter_context(Redis.from_url(url))
        stack.enter_context(_added(everything, user, cluster=is_cluster))
        if is_cluster:
            everything = stack.enter_context(_redis_at(url, **options))
        with _redis_at(as_user(url, user), **options):
            _operators.append(everything)
            try:
                yield everything
            finally:
                _operators.remove(everything)


@contextmanager
def _added(everything: Redis, user: str, *, cluster: bool) -> Iterator[None]:
    """Give *user* its rights, and those to the keys of another prefix while a test sets one."""

    def add(*, setting: str, **kwargs: Any) -> None:
        if setting == "COMPONENTS":
            with suppress(ConnectionError):  # a server that is away on purpose
                add_user(everything, user, *OWN_KEYS, cluster=cluster)

    add(setting="COMPONENTS")
    setting_changed.connect(add, weak=False)
    try:
        yield
    finally:
        setting_changed.disconnect(add)


def run(self: EmbeddedServer, server: Path, url: str, options: Mapping[str, str]) -> None:
    """Start a server that has the users, also when it comes back from a crash; one with a password has no others."""
    if "requirepass" not in options:
        lines = (["user", *_rules(user, *OWN_KEYS, cluster="cluster-enabled" in options)] for user in USERS)
        users = self.folder / "users.acl"
        users.write_text("".join(f"{' '.join(line)}\n" for line in lines))
        options = {"aclfile": str(users), **options}
    _run(self, server, url, options)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--redis-user", choices=[*USERS, "roles"], help="Use Redis with the rights of this user only"
    )


def pytest_configure(config: pytest.Config) -> None:
    global _option
    if option := config.getoption("--redis-user"):
        _option = option
        testing.redis_at = redis_at
        EmbeddedServer._run = run  # type: ignore[method-assign]


def pytest_unconfigure() -> None:
    testing.redis_at = _redis_at
    EmbeddedServer._run = _run  # type: ignore[method-assign]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    global _user
    _user = _option if _option != "roles" else role(item.nodeid)


def role(test: str) -> str:
    """Return the user of Redis as whom the test of this id runs; "" for one that may do all."""
    name = test.removeprefix("tests/")
    return next(user for pattern, user in ROLES if fnmatch(name, pattern))
