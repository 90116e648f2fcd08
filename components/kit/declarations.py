"""
Declarations that nothing imports.

What @periodic, CachedRows and ModelBook declare, and the receivers of tasks' signals, exist only in processes that
have imported their module. Django imports models, and what ready() imports; workers also import the "tasks" modules
of all apps and those of COMPONENTS["TASK_MODULES"]. A declaration elsewhere does nothing there, in silence, so it is
looked for in the source of the project.
"""

import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

from django.apps import apps
from django.utils.module_loading import module_has_submodule

from components.conf import conf

logger = logging.getLogger(__name__)

HINT = (
    "What it declares is unknown in other processes. If it declares periodic tasks, name it in "
    'COMPONENTS["TASK_MODULES"], or import it in the tasks.py of an app; otherwise, import it in ready() of an app.'
)
#: How a line of a module declares something.
_DECLARES = re.compile(
    r"^(@|\w+(: \w+)? = )?([\w.]+\.)?(periodic|CachedRows|ModelBooks?)\(|^([\w.]+\.)?task_\w+\.connect\("
    r"|^@([\w.]+\.)?receiver\([^)]*\btask_(enqueued|started|finished)\b",
    re.MULTILINE,
)
_OURS = re.compile(r"\bcomponents\.|\btasks(\.| import )signals\b")
_SKIPPED = re.compile(
    r"\.|(migrations|tests|node_modules|(site|dist)-packages|__pycache__)$|test_|conftest\.py$"
)
_real_path = cache(os.path.realpath)  # of thousands of modules, in each check
_WORKER = "import django; django.setup(); from {0} import *; import_tasks(); print(*imported(), sep='\\n')"


@cache
def import_tasks() -> dict[str, Exception]:
    """Import all modules with tasks that are known by name. Return, and log, the errors of those that cannot be."""
    broken = dict[str, Exception]()
    for name in task_modules():
        try:
            import_module(name)
        except Exception as error:
            broken[name] = error
            logger.exception("%s cannot be imported; its periodic tasks do not tick here.", name)
    for file in _sources().difference(imported()):
        logger.warning("%s is not imported. %s", file, HINT)
    return broken


def task_modules() -> list[str]:
    """Return the names of the "tasks" modules of all apps, and those of COMPONENTS["TASK_MODULES"]."""
    having = (
        app for app in apps.get_app_configs() if app.module and module_has_submodule(app.module, "tasks")
    )
    return [*(f"{app.name}.tasks" for app in having), *conf().task_modules]


def unknown() -> list[str]:
    """Return the files of the project that declare something and that workers do not import."""
    if not _sources():
        return []
    before, start = set(imported()), set(imported(at_start=True))
    import_tasks()
    lost = _sources().difference(imported())
    if (
        doubtful := _sources() & before - start
    ):  # imported by views, for example: see what a new worker imports
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        code = [sys.executable, "-c", _WORKER.format(__name__)]
        asked = subprocess.run(code, env=environment, capture_output=True, text=True)
        lost |= doubtful.difference(asked.stdout.splitlines()) if asked.returncode == 0 else set()
    return sorted(lost)


def imported(*, at_start: bool = False) -> Iterator[str]:
    """Yield the files of the modules that this process has imported, or had when its command was loaded."""
    for name, module in list(sys.modules.items()):
        if at_start and ".management.commands." in name:
            return
        if isinstance(file := getattr(module, "__file__", None), str):
            yield _real_path(file)


@cache
def _sources() -> frozenset[str]:
    """Return the files of the project that declare something, other than the tasks modules of apps."""
    folders = {app.path for app in apps.get_app_configs() if app.name != "components"}
    if settings := sys.modules.get(os.environ.get("DJANGO_SETTINGS_MODULE", "").partition(".")[0]):
        folders |= set(getattr(settings, "__path__", None) or [str(Path(str(settings.__file__)).parent)])
    usual = {f"{app.path}/tasks{end}" for app in apps.get_app_configs() for end in (".py", "/__init__.py")}
    files = {file for folder in folders for file in _files(folder)} - usual
    texts = {_real_path(file): Path(file).read_text(errors="replace") for file in files}
    return frozenset(file for file, text in texts.items() if _OURS.search(text) and _DECLARES.search(text))


def _files(folder: str) -> Iterator[str]:
    if not _SKIPPED.match(Path(folder).name) and not re.search(r"\b(site|dist)-packages\b", folder):
        for place, inner, names in os.walk(folder):
            inner[:] = [name for name in inner if not _SKIPPED.match(name)]
            yield from (
                f"{place}/{name}" for name in names if name.endswith(".py") and not _SKIPPED.match(name)
            )
