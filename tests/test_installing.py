"""
The wheel, the source distribution and an editable checkout, each installed into an environment of its own: an empty
Django project that is set up as README says finds all that the app brings, and runs a task on the embedded server.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from components import __version__
from components.embedded import EmbeddedServer

pytestmark = [pytest.mark.slow, pytest.mark.long]

ROOT = Path(__file__).resolve().parents[1]

#: A module with a task, as an app of the project has it.
TASKS = """
from components.services.queues import task


@task
def greet(name: str) -> str:
    return f"Hello {name}"
"""
LOOK = """
import json
import subprocess
import sys
from importlib.metadata import metadata

import components
from django.contrib.auth import get_user_model
from django.contrib.staticfiles.finders import find
from django.core.management import call_command
from django.template.loader import get_template
from django.test import Client
from django.urls import reverse
from django.utils import translation
from components.kit.lua_headers import contract
from components.services.queues import TaskQueue
from mysite.tasks import greet

call_command("check", fail_level="WARNING")
call_command("migrate", verbosity=0)
result = greet.enqueue("Ann")
subprocess.run([sys.executable, "-W", "error", "manage.py", "runworker", "--burst", "--no-reload"], check=True)
client = Client(SERVER_NAME="localhost")
client.force_login(get_user_model().objects.create_superuser("admin"))
page = client.get(reverse("admin:components_queue_changelist"))
with translation.override("de"):
    german = client.get(reverse("admin:components_queue_changelist"))
print(json.dumps({
    "package": components.__file__,
    "licence": metadata("django-redis-components")["License-Expression"],
    "state": str(TaskQueue().get(result.id).state),
    "page": [page.status_code, page.text],
    "german": german.text,
    "templates": [
        get_template(name).origin.name for name in ("components/unavailable.html", "admin/components/base.html")
    ],
    "static": [find(f"components/{name}") for name in ("room.css", "live.js", "openapi.json")],
    "script": contract("queues/advance").source,
}))
"""


def run(*command: str | Path, **options: Any) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def pip(python: Path, *args: str | Path) -> None:
    """Run pip for the environment of *python*, without network."""
    run(sys.executable, "-m", "pip", "--python", python, "--quiet", "--disable-pip-version-check", *args)


def environment(folder: Path) -> Path:
    """Make an environment that has what this one has, except the app; return its interpreter."""
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / "bin" / "python"
    packages = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    (packages / "ours.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    return python


@pytest.fixture(scope="module", params=["wheel", "sdist", "editable"])
def python(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment into which the app was installed in this way."""
    folder = tmp_path_factory.mktemp(request.param)
    python = environment(folder / "environment")
    kind = request.param
    if kind == "editable":
        what: list[str | Path] = ["--editable", ROOT]
    else:
        run(sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", folder, cwd=ROOT)
        what = [next(folder.glob("django_redis_components-*"))]
    pip(python, "install", "--no-build-isolation", "--no-deps", *what)
    return python


def settings_from_readme() -> str:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```python\n(# mysite/settings\.py\n.*?)^```$", readme, re.DOTALL | re.MULTILINE)
    return str(block)


@pytest.fixture(scope="module")
def found(python: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What an empty project finds of the app."""
    site = tmp_path_factory.mktemp("site")
    run(python, "-m", "django", "startproject", "mysite", site)
    with (site / "mysite" / "settings.py").open("a") as settings:
        settings.write(f"\n{settings_from_readme()}")
    (site / "mysite" / "tasks.py").write_text(TASKS)
    with EmbeddedServer(site / "redis") as server:
        variables = {**os.environ, "DJANGO_SETTINGS_MODULE": "mysite.settings", "REDIS_URL": server.url}
        code = f"import django\n\ndjango.setup()\n{LOOK}"
        output = run(python, "-W", "error", "-c", code, cwd=site, env=variables)
    answer: dict[str, Any] = json.loads(output.splitlines()[-1])
    return answer


def test_an_empty_project_finds_all_that_the_app_brings_and_runs_a_task(
    found: dict[str, Any], python: Path
) -> None:
    app = Path(found["package"]).parent

    assert app == ROOT / "components" or app.is_relative_to(python.parents[1])
    assert all(Path(path).is_relative_to(app) for path in found["templates"] + found["static"])
    assert "redis.call" in found["script"]
    assert (app / "py.typed").exists()
    assert found["licence"] == "BSD-3-Clause"
    assert found["page"][0] == 200
    assert "Queues" in found["page"][1]
    assert "<h1>Warteschlangen</h1>" in found["german"]
    assert found["state"] == "successful"


def test_what_is_installed_is_the_app_and_nothing_of_the_demo(python: Path) -> None:
    code = "from importlib.metadata import files; print(*files('django-redis-components'), sep='\\n')"
    files = run(python, "-c", code).splitlines()

    tops = {file.partition("/")[0] for file in files}
    if python.parents[1].parent.name.startswith("editable"):
        assert all(top.endswith((".pth", ".dist-info")) for top in tops)
    else:
        assert tops == {"components", f"django_redis_components-{__version__}.dist-info"}
        assert not any("market" in file for file in files)
    assert {"LICENSE", "NOTICE"} <= {Path(file).name for file in files}
