"""The wheel, installed into an empty Django project as the README says, opens the Queues page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from components.locations import with_database

ROOT = Path(__file__).resolve().parents[1]

OPEN_THE_PAGE = """
import django, components

django.setup()
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

call_command("check", fail_level="WARNING")
call_command("migrate", verbosity=0)
client = Client(SERVER_NAME="localhost")
client.force_login(get_user_model().objects.create_superuser("admin"))
response = client.get(reverse("admin:components_queue_changelist"))
print(components.__file__)
print(response.status_code)
print(response.content.decode())
"""


@pytest.fixture(scope="module")
def site_packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with nothing in it but the wheel's content."""
    wheels, site = tmp_path_factory.mktemp("wheels"), tmp_path_factory.mktemp("site")
    pip("wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", wheels, ROOT)
    pip("install", "--no-deps", "--target", site, *wheels.glob("*.whl"))
    return site


def pip(*args: str | Path) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *args]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def settings_from_readme() -> str:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^ *```python\n( *# settings\.py\n.*?)^ *```$", readme, re.DOTALL | re.MULTILINE)
    return dedent(block)


def test_it_carries_templates_scripts_static_files_and_types(site_packages):
    app = site_packages / "components"
    found = {path.relative_to(app).as_posix() for path in app.rglob("*.*")}

    assert {
        "py.typed",
        "services/queues/lua/advance.lua",
        "static/components/components.css",
        "static/components/live.js",
        "templates/admin/components/base.html",
        "templates/components/unavailable.html",
    } <= found
    assert {path.name.partition("-")[0] for path in site_packages.iterdir()} == {
        "components",
        "django_redis_components",
    }
    assert not any("market" in path for path in found)


@pytest.mark.slow
def test_an_empty_project_opens_the_queues_page(site_packages, tmp_path, redis_server):
    subprocess.run([sys.executable, "-m", "django", "startproject", "shop", tmp_path], check=True)
    with (tmp_path / "shop" / "settings.py").open("a") as settings:
        settings.write(settings_from_readme())
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "shop.settings",
        "PYTHONPATH": str(site_packages),
        "REDIS_URL": redis_server.url,
        "CACHE_URL": with_database(redis_server.url, 1),
    }
    command = [sys.executable, "-W", "error", "-c", OPEN_THE_PAGE]

    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    module, status, page = _answer(done.stdout)
    assert Path(module).is_relative_to(site_packages)
    assert status == "200"
    assert "Queues" in page


def _answer(output: str) -> tuple[str, str, str]:
    lines = output.splitlines()
    at = next(number for number, line in enumerate(lines) if line.endswith("components/__init__.py"))
    return lines[at], lines[at + 1], "\n".join(lines[at + 2 :])
