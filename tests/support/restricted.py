"""
A pytest plugin: the project uses Redis as a user with the rights that `manage.py acl` gives it, while what tests do
to the server themselves may do all.

    python -m pytest tests/queues --redis-user worker

A test of what processes of that user do not run is left out: it lies in the folder of such files, or imports from
them, itself or through its helpers. kit/rights.py names these files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from fnmatch import fnmatch
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.test.signals import setting_changed
from redis import Redis
from redis.exceptions import ConnectionError

import components
from components import testing
from components.kit.rights import USERS, rights

PASSWORD = "only-for-tests"
_TESTS = Path(__file__).parents[1]
_APP = Path(components.__file__).parent
_redis_at = testing.redis_at


def add_user(client: Redis, user: str, *, cluster: bool = False) -> None:
    client.execute_command("ACL SETUSER", user, "reset", "on", f">{PASSWORD}", *rights(user, cluster=cluster))


def as_user(url: str, user: str) -> str:
    """Return *url* with the name and the password of *user*."""
    parts = urlsplit(url)
    return parts._replace(netloc=f"{user}:{PASSWORD}@{parts.netloc.rpartition('@')[2]}").geturl()


def restricted_to(user: str) -> Callable[..., Any]:
    """Return a redis_at whose project is *user*, while the client that it yields may do all."""

    @contextmanager
    def redis_at(url: str, **options: Any) -> Iterator[Redis]:
        is_cluster = "cluster" in str(options.get("CLIENT_CLASS", "")).lower()
        with ExitStack() as stack:
            everything = stack.enter_context(Redis.from_url(url))
            stack.enter_context(_user(everything, user, cluster=is_cluster))
            if is_cluster:
                everything = stack.enter_context(_redis_at(url, **options))
            with _redis_at(as_user(url, user), **options):
                yield everything

    return redis_at


@contextmanager
def _user(everything: Redis, user: str, *, cluster: bool) -> Iterator[None]:
    """Give *user* its rights, and those to the keys of another prefix while a test sets one."""

    def add(*, setting: str, **kwargs: Any) -> None:
        if setting == "COMPONENTS":
            with suppress(ConnectionError):  # a server that is away on purpose
                add_user(everything, user, cluster=cluster)

    add(setting="COMPONENTS")
    setting_changed.connect(add, weak=False)
    try:
        yield
    finally:
        setting_changed.disconnect(add)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--redis-user", choices=[*USERS], help="Use Redis with the rights of this user only")


def pytest_configure(config: pytest.Config) -> None:
    if user := config.getoption("--redis-user"):
        testing.redis_at = restricted_to(user)


def pytest_unconfigure() -> None:
    testing.redis_at = _redis_at


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if user := config.getoption("--redis-user"):
        foreign = {item.path: _is_foreign(item, user) for item in items}
        config.hook.pytest_deselected(items=[item for item in items if foreign[item.path]])
        items[:] = [item for item in items if not foreign[item.path]]


def _is_foreign(item: pytest.Item, user: str) -> bool:
    """Return True if the file of *item* tests what processes of *user* do not run."""
    mirrored, module = item.path.relative_to(_TESTS), getattr(item, "module", None)
    is_there = any(_matches(f"{folder}{mirrored}", user) for folder in ("", "services/"))
    return is_there or (module is not None and _uses_foreign(module, user, set()))


def _uses_foreign(module: ModuleType, user: str, seen: set[str]) -> bool:
    from importlib import import_module

    seen.add(module.__name__)
    for value in vars(module).values():
        name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        if not isinstance(name, str) or name in seen:
            continue
        if name.startswith("tests."):
            if _uses_foreign(import_module(name), user, seen):
                return True
        elif name.startswith("components."):
            file = import_module(name).__file__ or ""
            if _matches(str(Path(file).relative_to(_APP)), user):
                return True
    return False


def _matches(path: str, user: str) -> bool:
    return any(fnmatch(path, pattern) for pattern in USERS[user])
