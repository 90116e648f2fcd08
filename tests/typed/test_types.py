"""
mypy --strict and pyright know the types of tasks, cached rows and fenced rows in somebody else's project.

Each runs on the sample project in an environment of its own, in which this app is installed and django-stubs are, or
are not.
"""

import json
import os
import re
import shutil
import subprocess
import sysconfig
import venv
from collections.abc import Sequence
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SHOP = Path(__file__).with_name("shop")
PLUGIN = """
[mypy]
plugins = mypy_django_plugin.main
[mypy.plugins.django-stubs]
django_settings_module = shop.settings
"""


class Environment:
    """What pip would have installed: links to the packages of this environment, and a copy of the app."""

    def __init__(self, folder: Path, *, stubs: bool) -> None:
        self.folder, self.has_stubs = folder, stubs
        venv.create(folder / "venv", symlinks=True)
        self.python = folder / "venv" / "bin" / "python"
        (site,) = folder.glob("venv/lib/python*/site-packages")
        for package in Path(sysconfig.get_path("purelib")).iterdir():
            is_stub = package.name.endswith("-stubs") or package.name.startswith("django_stubs")
            if package.suffix != ".pth" and package.name != "components" and (stubs or not is_stub):
                (site / package.name).symlink_to(package)
        shutil.copytree(ROOT / "components", site / "components")
        shutil.copytree(SHOP, folder / "shop")

    def run(self, *command: str | Path) -> str:
        environment = {**os.environ, "MYPYPATH": ".", "PYTHONPATH": "."}
        done = subprocess.run(
            [self.python, "-m", *command], cwd=self.folder, env=environment, capture_output=True, text=True
        )
        assert done.returncode in (0, 1), done.stdout + done.stderr
        return done.stdout

    def mypy(self, modules: Sequence[str], settings: str = "[mypy]") -> set[str]:
        """Return the lines that mypy refuses, as "tasks.py:60"."""
        (self.folder / "mypy.ini").write_text(settings)
        said = self.run("mypy", "--strict", *(f"shop/{name}" for name in modules))
        return {f"{name}:{line}" for name, line in re.findall(r"^shop/(\w+\.py):(\d+): error", said, re.M)}

    def pyright(self, modules: Sequence[str]) -> set[str]:
        include = [f"shop/{name}" for name in modules]
        settings = {"typeCheckingMode": "strict", "include": include, "extraPaths": ["."]}
        (self.folder / "pyrightconfig.json").write_text(json.dumps(settings))
        said = json.loads(self.run("basedpyright", "--outputjson", "--pythonpath", self.python))
        assert said["summary"]["filesAnalyzed"] == len(modules)
        return {
            f"{Path(each['file']).name}:{each['range']['start']['line'] + 1}"
            for each in said["generalDiagnostics"]
            if each["severity"] == "error"
        }


@pytest.fixture(scope="module", params=[True, False], ids=["with stubs", "without"])
def environment(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment(tmp_path_factory.mktemp("environment"), stubs=request.param)


ALL = ["tasks.py", "models.py"]


def refused(modules: Sequence[str]) -> set[str]:
    found = {
        f"{name}:{number}"
        for name in modules
        for number, line in enumerate((SHOP / name).read_text().splitlines(), start=1)
        if line.endswith("# refused")
    }
    assert len(found) > 5
    return found


def test_mypy_and_pyright_find_each_wrong_line(environment: Environment) -> None:
    """Without any types of Django, those of models are unknown."""
    checked = ALL if environment.has_stubs else ALL[:1]
    assert environment.mypy(checked) == refused(checked)
    assert environment.pyright(checked) == refused(checked)
    if environment.has_stubs:
        assert environment.mypy(checked, PLUGIN) == refused(checked)
