"""The tests of somebody else's project send nothing to its live Redis, under pytest and under manage.py test."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from components.embedded import EmbeddedServer
from components.locations import with_database

pytestmark = [pytest.mark.slow, pytest.mark.long]

ROOT = Path(__file__).resolve().parents[1]

MANAGE = """
import multiprocessing, os, sys

if __name__ == "__main__":
    if method := os.environ.get("START_METHOD"):
        multiprocessing.set_start_method(method)
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
"""
SETTINGS = """
import os

SECRET_KEY = "a"
USE_TZ = True
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
INSTALLED_APPS = ["components", "shop"]
CACHES = {
    alias: {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": os.environ[name]}
    for alias, name in {"default": "CACHE_URL", "components": "REDIS_URL"}.items()
}
COMPONENTS = {"CACHE": "components", "COUNT_SERVICES": True}
TASKS = {"default": {"BACKEND": "components.tasks.RedisBackend", "QUEUES": []}}
"""
TASKS = """
from components.services.queues import task


@task
def add(one: int, other: int) -> int:
    return one + other
"""
CONFTEST = 'pytest_plugins = ["components.testing"]'
RUNNER = 'TEST_RUNNER = "components.testing.runner.RedisRunner"'

WITH_PYTEST = """
import pytest
from django.core.cache import caches

from components.services.counters import Counter, count
from components.testing import run_tasks
from shop.tasks import add


@pytest.mark.parametrize("time", ["first", "second"])
def test_each_test_begins_with_an_empty_redis(redis, time):
    assert redis.dbsize() == 0
    caches["default"].set("sword", "sold")
    count("swords")
    Counter("swords").update()
    result = add.enqueue(1, 2)

    run_tasks()

    result.refresh()
    assert result.return_value == 3
"""
WITHOUT_THE_FIXTURE = """
import asyncio

import pytest

from components.exceptions import RedisNotPrivate
from components.services.counters import count
from components.services.locks import lock
from shop.tasks import add


def test_a_task_is_refused_and_the_error_says_what_to_do():
    with pytest.raises(RedisNotPrivate, match="pytest_plugins.*TEST_RUNNER.*TEST_RUN"):
        add.enqueue(1, 2)


def test_a_coroutine_and_a_lock_are_refused_as_well():
    with pytest.raises(RedisNotPrivate):
        asyncio.run(add.aenqueue(1, 2))
    with pytest.raises(RedisNotPrivate), lock("sword", timeout=10):
        pass


def test_counts_are_dropped():
    count("swords")
"""
BY_DJANGO = """
import os, time
from pathlib import Path

from django.conf import settings
from django.core.cache import caches
from django.test import TestCase

from components.services.counters import Counter
from components.services.queues import TaskQueue
from components.testing import run_tasks
from shop.tasks import add

SEEN = Path(os.environ["SEEN"])


class EachTest:
    def begins_with_an_empty_redis(self):
        self.assertEqual(TaskQueue().names(), [])
        self.assertIsNone(caches["default"].get("sword"))
        caches["default"].set("sword", "sold")
        Counter("swords").count()
        result = add.enqueue(1, 2)
        run_tasks()
        result.refresh()
        self.assertEqual(result.return_value, 3)

    def test_first(self):
        self.begins_with_an_empty_redis()

    test_second = test_first

    def test_that_all_processes_are_there(self):
        SEEN.joinpath(str(os.getpid())).write_text(settings.CACHES["components"]["LOCATION"])
        deadline = time.monotonic() + 60
        while len(list(SEEN.iterdir())) < int(os.environ["PROCESSES"]) and time.monotonic() < deadline:
            time.sleep(0.01)


class OneTest(EachTest, TestCase):
    pass


class OtherTest(EachTest, TestCase):
    pass
"""
BY_DJANGO_WITHOUT_THE_RUNNER = """
from django.test import SimpleTestCase

from components.exceptions import RedisNotPrivate
from components.services.counters import count
from shop.tasks import add


class Test(SimpleTestCase):
    def test_a_task_is_refused(self):
        with self.assertRaisesRegex(RedisNotPrivate, "TEST_RUNNER"):
            add.enqueue(1, 2)

    def test_counts_are_dropped(self):
        count("swords")
"""


class Shop:
    """The project in an empty folder, and the Redis that its site uses."""

    def __init__(self, folder: Path, live: EmbeddedServer) -> None:
        self.folder, self._live = folder, live
        self.seen = folder / "seen"
        for name in ("shop", "seen"):
            (folder / name).mkdir()
        files = {"shop/__init__.py": "", "shop/settings.py": SETTINGS, "shop/tasks.py": TASKS}
        self.write({"manage.py": MANAGE, **files})

    def write(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            (self.folder / name).write_text(text)

    def pytest(self, *options: str) -> str:
        return self._run("-m", "pytest", "-p", "no:cacheprovider", "-p", "no:asyncio", "-Werror", *options)

    def manage_test(self, *options: str, **environment: str) -> str:
        return self._run("-W", "error", "manage.py", "test", *options, **environment)

    def _run(self, *command: str, **environment: str) -> str:
        variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
        settings = {
            "DJANGO_SETTINGS_MODULE": "shop.settings",
            "PYTHONPATH": os.pathsep.join([str(self.folder), str(ROOT)]),
            "REDIS_URL": with_database(self._live.url, 1),
            "CACHE_URL": self._live.url,
            "SEEN": str(self.seen),
            "PROCESSES": "1",
        }
        done = subprocess.run(
            [sys.executable, *command],
            cwd=self.folder, env={**variables, **settings, **environment}, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr


@pytest.fixture
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Redis]:
    folder = tmp_path_factory.mktemp("live")
    with EmbeddedServer(folder, appendonly=False) as server, Redis.from_url(server.url) as client:
        client.config_resetstat()
        client.server = server
        yield client


@pytest.fixture
def shop(tmp_path: Path, live: Redis) -> Shop:
    return Shop(tmp_path, live.server)


def was_touched(live: Redis) -> bool:
    """Return whether the server was connected to, or got a command, besides those of this client."""
    commands = {
        name for name in live.info("commandstats") if not name.startswith(("cmdstat_config", "cmdstat_info"))
    }
    return bool(commands or live.info("stats")["total_connections_received"])


def test_pytest_gives_each_test_with_the_fixture_an_empty_server_and_sends_nothing_without(
    shop: Shop, live: Redis
) -> None:
    shop.write({"test_without.py": WITHOUT_THE_FIXTURE})
    assert "3 passed" in shop.pytest()
    assert "1 passed" in shop.pytest("-k", "counts")

    shop.write({"conftest.py": CONFTEST, "test_shop.py": WITH_PYTEST})
    for options in ((), ("-n", "2")):
        assert "5 passed" in shop.pytest(*options)
    assert not was_touched(live)


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_the_runner_gives_each_process_a_server_of_its_own_and_each_test_an_empty_one(
    shop: Shop, live: Redis, start: str
) -> None:
    shop.write({"shop/tests.py": BY_DJANGO, "shop/settings.py": f"{SETTINGS}\n{RUNNER}\n"})

    assert "Ran 6 tests" in shop.manage_test()
    (seen,) = shop.seen.iterdir()
    seen.unlink()
    assert "Ran 6 tests" in shop.manage_test("--parallel", "2", PROCESSES="2", START_METHOD=start)

    servers = {path.read_text() for path in shop.seen.iterdir()}
    assert len(servers) == 2
    assert not [url for url in servers if Path(url.removeprefix("unix://")).parent.exists()]
    assert not was_touched(live)


def test_djangos_own_runner_sends_nothing(shop: Shop, live: Redis) -> None:
    shop.write({"shop/tests.py": BY_DJANGO_WITHOUT_THE_RUNNER})

    assert "Ran 2 tests" in shop.manage_test()
    assert not was_touched(live)


def test_a_setting_says_that_the_redis_is_only_for_tests(shop: Shop, live: Redis) -> None:
    shop.write(
        {"shop/tests.py": BY_DJANGO, "shop/settings.py": f"{SETTINGS}\nCOMPONENTS['TEST_RUN'] = False\n"}
    )

    shop.manage_test("shop.tests.OneTest.test_first")

    assert was_touched(live)
