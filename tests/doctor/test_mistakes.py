"""
Usual mistakes of those who take this app into a project of theirs: in their settings, and in where Redis is. Each
is made in a project of its own, with a real server and real commands, and gets one sentence that names the cause,
with its remedy. What the doctor finds on a site that runs is in test_findings.py.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from components.embedded import EmbeddedServer

pytestmark = [pytest.mark.slow, pytest.mark.long]

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = """
import os

import django

BACKPORT = ["django_tasks"] if django.VERSION < (6, 0) else []
SECRET_KEY = os.environ.get("SECRET", "only for tests")
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ["FOLDER"] + "/db.sqlite3"}}
ROOT_URLCONF = "shop.urls"
USE_TZ = True
INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "components", "shop", *BACKPORT]
MIDDLEWARE = ["components.middleware.RedisUnavailableMiddleware"]
JSON = {"SERIALIZER": "django_redis.serializers.json.JSONSerializer"}
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
    "components": {
        "BACKEND": "django_redis.cache.RedisCache", "LOCATION": os.environ["REDIS_URL"], "OPTIONS": JSON,
    },
}
COMPONENTS = {"CACHE": "components"}
TASKS = {"default": {"BACKEND": "components.tasks.RedisBackend", "QUEUES": []}}
"""
TASKS = """
from components.services.queues import task


@task
def greet(name: str) -> str:
    return f"Hello {name}"
"""
ENQUEUE = "import django; django.setup(); from shop.tasks import greet; greet.enqueue('Ann')"
WORK = ["manage.py", "runworker", "--burst", "--no-reload", "--verbosity", "0"]


@dataclass
class Shop:
    """A project that is set up well, until a test spoils it."""

    folder: Path
    server: EmbeddedServer
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        (self.folder / "shop").mkdir()
        for name, text in {"__init__": "", "urls": "urlpatterns = []", "tasks": TASKS}.items():
            self.write(name, text)
        self.write("settings", SETTINGS)
        (self.folder / "manage.py").write_text((ROOT / "manage.py").read_text())
        self.environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "shop.settings",
            "FOLDER": str(self.folder),
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
            "REDIS_URL": self.server.url,
        }
        self.run("manage.py", "migrate", "--verbosity", "0", "--skip-checks")

    def write(self, module: str, text: str) -> None:
        (self.folder / "shop" / f"{module}.py").write_text(text)

    def set(self, text: str) -> None:
        """Add *text* to the end of the settings."""
        self.write("settings", f"{SETTINGS}\n{text}\n")

    def at(self, url: str) -> None:
        self.environment["REDIS_URL"] = url

    def run(self, *arguments: str) -> str:
        """Run Python with *arguments*, and return all that it says in one line."""
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        return " ".join(f"{done.stdout} {done.stderr}".split())


Spoil = Callable[[Shop], Any]


def forgotten(what: str) -> Spoil:
    """Leave out *what*, a pattern, from the settings."""
    return lambda shop: shop.write("settings", re.sub(what, "", SETTINGS, flags=re.DOTALL))


DOCTOR, CHECK = ["manage.py", "doctor"], ["manage.py", "check"]
#: The mistake; how it is made; the command that tells; the cause; the remedy.
MISTAKES: Mapping[str, tuple[Spoil, list[str], str, str]] = {
    "no server": (
        lambda shop: shop.at("redis://127.0.0.1:1/0"),
        DOCTOR,
        r"Redis does not answer: .*127\.0\.0\.1:1\. Connection refused",
        r"No server listens there: start it, or correct host and port in CACHES\['components'\]",
    ),
    "wrong host": (
        lambda shop: shop.at("redis://nowhere.invalid:6379/0"),
        DOCTOR,
        r"Redis does not answer: .*nowhere\.invalid",
        r"No host of that name is known here: correct it in CACHES\['components'\]",
    ),
    "wrong scheme": (
        lambda shop: shop.at("http://localhost:6379/0"),
        CHECK,
        r"LOCATION is not the URL of a Redis server: it begins with http://",
        r"must begin with redis://",
    ),
    "forgotten migrate": (
        lambda shop: (shop.folder / "db.sqlite3").unlink(),
        DOCTOR,
        r"Migrations of components are not applied",
        r"Run `manage.py migrate`",
    ),
    "forgotten TASKS": (
        forgotten(r"TASKS = .*"),
        CHECK,
        r"settings\.TASKS is not set, so Django runs each task at once",
        r'Set TASKS = \{"default": \{"BACKEND": "components\.tasks\.RedisBackend"',
    ),
    "forgotten CACHES": (
        forgotten(r"CACHES = \{.*?\n\}\n"),
        CHECK,
        r"settings\.CACHES has no alias 'components', where this app would find its Redis",
        r'Give it "BACKEND": "django_redis\.cache\.RedisCache"',
    ),
    "LocMem cache": (
        lambda shop: shop.set('COMPONENTS = {"CACHE": "default"}'),
        CHECK,
        r"settings\.CACHES\['default'\], .* is a django\.core\.cache\.backends\.locmem\.LocMemCache, and not one of",
        r'Give it "BACKEND": "django_redis\.cache\.RedisCache"',
    ),
}


@pytest.fixture
def shop(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Shop]:
    program = request.config.getoption("--redis-server")
    with EmbeddedServer(tmp_path / "redis", server=program) as server:
        yield Shop(tmp_path, server)


def test_a_project_without_mistakes_hears_of_none(shop: Shop) -> None:
    assert shop.run(*CHECK) == "System check identified no issues (0 silenced)."
    shop.run("-c", ENQUEUE)
    assert "ERROR" not in shop.run(*WORK)
    assert shop.run(*DOCTOR).endswith("1 finding.")  # no worker runs any more


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_a_sentence_with_its_cause_and_its_remedy(shop: Shop, mistake: str) -> None:
    spoil, command, cause, remedy = MISTAKES[mistake]

    spoil(shop)
    said = shop.run(*command)

    assert re.search(cause, said), said
    assert re.search(remedy, said), said
    assert "secret" not in said
    assert "Traceback" not in said
