"""
django-redis' own tests, against our cache clients.

They are in its source distribution only, which tests/upstream.py gets, and run in a process of their own, since they
set up Django by themselves. They are copied because one of their modules of settings is replaced.
"""

import os
import re
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from components.embedded import EmbeddedServer, find_server
from components.testing import _free_port
from tests.kit.test_silence import sentinel_of
from tests.support.masters import masters
from tests.upstream import django_redis_suite

pytestmark = [pytest.mark.slow, pytest.mark.long]

HERE = Path(__file__).parent
for needed in ("pytest_mock", "msgpack"):  # theirs
    pytest.importorskip(needed)
SUITE = django_redis_suite().tests
#: Those that name the class of another client, or expect no key of ours in the database, and those of closing
#: connections, which the caches of a cluster share.
OF_OTHERS = "not (EscapePrefix or custom_key_function or close_disconnect)"


def run(folder: Path, url: str, client: str, **more: str) -> int:
    """Run them, with *more* environment, and return how many have passed. All must."""
    shutil.copytree(SUITE, folder / "tests")
    shutil.copy(HERE / "sqlite.py", folder / "tests" / "settings")
    shutil.copy(HERE / "selection.py", folder)
    plugins = ["-p", "no:django", "-p", "no:randomly", "-p", "no:cacheprovider", "-p", "selection"]
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--import-mode=importlib", *plugins]
    environment = {"REDIS_URL": url, "CLIENT_CLASS": client, "DJANGO_SETTINGS_MODULE": "settings.sqlite"}
    done = subprocess.run(
        [*command, "--rootdir", folder, folder / "tests", "-k", OF_OTHERS],
        env={**os.environ, **environment, **more, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])},
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-5_000:] + done.stderr[-1_000:]
    [passed] = re.findall(r"(\d+) passed", done.stdout)
    return int(passed)


def test_the_client_of_a_single_server(tmp_path: Path, redis_server: object) -> None:
    url = f"{redis_server.url}?db=1"  # type: ignore[attr-defined]
    assert run(tmp_path, url, "components.cache.Client") >= 155


def test_the_client_of_a_service_that_a_sentinel_knows(tmp_path: Path) -> None:
    port, options = _free_port(), {"port": str(_free_port()), "bind": "127.0.0.1", "protected-mode": "no"}
    with (
        EmbeddedServer(tmp_path / "redis", appendonly=False, options=options) as server,
        sentinel_of(find_server(), tmp_path, port, server) as sentinel,
        ExitStack() as stack,
    ):
        stack.callback(sentinel.kill)
        client = "components.cache.SentinelClient"
        assert run(tmp_path, "redis://shop/1", client, SENTINEL=str(port)) >= 155


def test_the_client_of_a_cluster(tmp_path: Path) -> None:
    with masters(tmp_path / "masters", None) as made:
        url = made.urls.split(",")[0]
        assert run(tmp_path, url, "components.cache.ClusterClient") >= 155
