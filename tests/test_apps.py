"""Apps and packages that collide with this one, or that it needs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SETUP = """
import sys
import django
from django.conf import settings

settings.configure(INSTALLED_APPS=sys.argv[1].split())
django.setup()
"""
#: Django 5.2 without the backport, whatever is installed.
WITHOUT_BACKPORT = """
import sys
import django

django.VERSION, django.__version__ = (5, 2, 9, "final", 0), "5.2.9"
sys.modules["django_tasks"] = None
import components.kit.compat
"""


def run(folder: Path, code: str, *args: str) -> str:
    """Run *code* with this checkout and *folder* on its path, and return the last line of its error, or ""."""
    command = [
        sys.executable,
        "-c",
        f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(folder)!r}]\n{code}",
        *args,
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return done.stderr.strip().rpartition("\n")[2]


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A project with an app shop.components, and another one that has a label of its own."""
    app = 'from django.apps import AppConfig\n\n\nclass Config(AppConfig):\n    name = "{}"\n{}'
    for name, label in (("shop.components", ""), ("shop.parts.components", '    label = "parts"\n')):
        folder = tmp_path.joinpath(*name.split("."))
        folder.mkdir(parents=True)
        (folder / "__init__.py").touch()
        (folder / "apps.py").write_text(app.format(name, label))
    return tmp_path


@pytest.mark.parametrize("apps", ["components shop.components", "shop.components.apps.Config components"])
def test_an_app_with_the_same_label_is_named_with_what_to_do(shop: Path, apps: str) -> None:
    said = run(shop, SETUP, apps)

    (entry,) = {*apps.split()} - {"components"}
    assert (
        f"two apps with the label 'components': 'components' of django-redis-components, and '{entry}'"
        in said
    )
    assert 'label = "shop_components"' in said
    assert run(shop, SETUP, "components shop.parts.components") == "", (
        "one with a label of its own is no matter"
    )


def test_a_missing_backport_is_named_with_what_to_do(tmp_path: Path) -> None:
    said = run(tmp_path, WITHOUT_BACKPORT)

    assert "Django 5.2.9 has no django.tasks" in said
    assert "pip install 'django-redis-components[django52]'" in said


def test_settings_may_import_any_service(tmp_path: Path) -> None:
    """A text that is looked up while a module is imported would read the settings, which are not there yet."""
    services = sorted(path.name for path in (ROOT / "components" / "services").iterdir() if path.is_dir())
    imports = [f"import components.services.{each}\n" for each in services if each != "__pycache__"]
    imports += ["from django.conf import settings\n", "assert not settings.configured\n"]
    (tmp_path / "early.py").write_text("".join(imports) + 'INSTALLED_APPS = ["components"]\n')

    done = subprocess.run(
        [sys.executable, "-c", "import django; django.setup()"],
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "early", "PYTHONPATH": f"{tmp_path}:{ROOT}"},
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr
