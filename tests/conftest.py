"""Fixtures for all tests; those for Redis come from the plugin that the app gives to its users."""

import gc
import os
from collections.abc import Generator, Iterator
from contextvars import copy_context
from signal import SIG_DFL, SIGHUP, signal

import pytest
from _pytest.runner import runtestprotocol
from asgiref.sync import SyncToAsync
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from hypothesis import HealthCheck, settings

from components.kit import test_guard as test_runs
from tests.support.postgres import PostgresServer, postgres
from tests.support.programs import NO_CHROMIUM, NO_POSTGRES, find_postgres, missing

# What an example may take is no promise of this project, and less of a busy machine; and examples share a server.
settings.register_profile(
    "components", parent=settings(), deadline=None, suppress_health_check=list(HealthCheck)
)
settings.load_profile("components")

pytest_plugins = ["components.testing", "tests.support.restricted", "pytester"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--complete", action="store_true", help="Fail at once where something is missing that tests need"
    )
    parser.addoption("--cluster", action="store_true", help="Run services' tests on a server in cluster mode")


def pytest_configure(config: pytest.Config) -> None:
    signal(SIGHUP, SIG_DFL)  # after nohup it is ignored, and workers that a test starts would ignore it too
    if config.getoption("complete") and (reasons := list(missing())):
        raise pytest.UsageError(
            "\n".join(["These are missing, and some tests would be skipped without them:", *reasons])
        )


def pytest_xdist_auto_num_workers() -> int:
    return (os.cpu_count() or 1) + 1  # since some tests wait


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest tests: one that began last would leave all other processes with nothing to do."""
    items.sort(key=lambda item: not item.nodeid.startswith("tests/chaos/"))


@pytest.hookimpl(tryfirst=True)
def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests that Chromium or PostgreSQL is needed for, by their fixtures."""
    assert isinstance(item, pytest.Function)
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    if {"browser", "served_site", "postgres_server"} & set(item.fixturenames) or "postgres" in parameters:
        item.add_marker("programs")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let a test fail that is skipped because a program is missing, but lacks the mark of those."""
    report = yield
    needs = report.skipped and any(reason in str(report.longrepr) for reason in (NO_CHROMIUM, NO_POSTGRES))
    if needs and "programs" not in item.keywords:
        report.outcome, report.longrepr = "failed", f"{item.nodeid} needs the mark 'programs'"
    return report


def pytest_collection_finish() -> None:
    """
    Keep what exists by now out of the garbage collection. It stays until the end, and tests that collect garbage
    would look at a million objects each time.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _no_test_run() -> Iterator[None]:
    """No Redis is refused in this run: that of the settings is nowhere, and many tests see what happens then."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(test_runs, "is_test_run", lambda: False)
        yield


@pytest.fixture
def redis_mode(request: pytest.FixtureRequest) -> str:
    """What the server of services' tests is: "plain", or "cluster" if the command line or a parameter says so."""
    return str(getattr(request, "param", "cluster" if request.config.getoption("cluster") else "plain"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    """
    Each test in a context of its own. With each test's CACHES Django makes a new variable in the context, and
    asgiref copies them all whenever a view goes from one thread to another: those of thousands of tests are slow.
    """
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    copy_context().run(runtestprotocol, item, nextitem=nextitem)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    SyncToAsync.single_thread_executor.submit(_forget_connections).result()
    return True


def _forget_connections() -> None:
    """
    In the thread in which what is not async in coroutines runs, and which all tests of a process share: a test that
    may not use a database shall find none open there.
    """
    for connection in connections.all(initialized_only=True):
        BaseDatabaseWrapper.close(connection)  # that of SQLite leaves one in memory open
        del connections[connection.alias]


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    with postgres(find_postgres() or pytest.skip(NO_POSTGRES)) as server:
        yield server


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The figures that tests have recorded; those of other processes come with their reports."""
    for report in [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]:
        for name, figures in report.user_properties:
            if name == "figures":
                terminalreporter.section(report.nodeid)
                for what, value in figures:
                    terminalreporter.write_line(f"{what:<44}{value}")
