"""
A test runner for manage.py test: each test has an empty private Redis, whatever it uses.

    TEST_RUNNER = "components.testing.runner.RedisRunner"

Each process of --parallel has a server of its own. A project with a runner of its own derives it from this one.
"""

import unittest
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.util import Finalize
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.test.runner import DiscoverRunner, ParallelTestSuite, RemoteTestResult, RemoteTestRunner

from components.embedded import EmbeddedServer
from components.testing import flush, forget, redis_at

#: The server of this process.
_server: EmbeddedServer | None = None


@contextmanager
def private_redis() -> Iterator[None]:
    """Start a server for this process, and lead the project's CACHES alias there."""
    global _server
    with (
        TemporaryDirectory(prefix="redis-") as folder,
        EmbeddedServer(Path(folder), appendonly=False) as server,
        redis_at(server.url),
    ):
        before, _server = _server, server
        try:
            yield
        finally:
            _server = before


class _EmptyFirst(unittest.TestResult):
    """A result that empties the server before each test."""

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        if _server:
            forget()
            flush(_server)
        super().startTest(test)


class _RemoteResult(_EmptyFirst, RemoteTestResult):
    pass


class _RemoteRunner(RemoteTestRunner):
    resultclass = _RemoteResult


def _begin_worker(*args: Any, **kwargs: Any) -> None:
    """Begin a process of --parallel as Django does, with a server of its own."""
    ParallelTestSuite.init_worker(*args, **kwargs)
    stack = ExitStack()
    stack.enter_context(private_redis())
    Finalize(None, stack.close, exitpriority=0)  # such a process ends without atexit


class _Suite(ParallelTestSuite):
    init_worker = _begin_worker
    runner_class = _RemoteRunner


class RedisRunner(DiscoverRunner):
    """Django's runner, with a private Redis for each process. Raises RedisNotFound if no server is installed."""

    parallel_test_suite = _Suite

    def setup_test_environment(self, **kwargs: Any) -> None:
        super().setup_test_environment(**kwargs)
        self._redis = ExitStack()
        self._redis.enter_context(private_redis())

    def teardown_test_environment(self, **kwargs: Any) -> None:
        self._redis.close()
        super().teardown_test_environment(**kwargs)

    def get_resultclass(self) -> Any:
        kind = super().get_resultclass() or unittest.TextTestResult
        return type(kind.__name__, (_EmptyFirst, kind), {})
