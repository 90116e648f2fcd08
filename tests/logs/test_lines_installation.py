"""Logs where less is installed, or nothing may be written to: no numpy, no numba, no folder for what is compiled."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from components.exceptions import UnknownKernel
from components.services.logs.lines import choose_kernel

ROOT = Path(__file__).resolve().parents[2]
WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {missing!r}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
from importlib import util
find_spec = util.find_spec
util.find_spec = lambda name: None if name in {missing!r} else find_spec(name)
"""


def run(code: str, *missing: str) -> str:
    """What it prints in a process in which these packages are not installed."""
    program = WITHOUT.format(missing=missing) + dedent(code)
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_without_numpy_the_error_names_the_extra() -> None:
    code = """
        from components.exceptions import ExtraNotInstalled
        try:
            import components.services.logs.lines
        except ExtraNotInstalled as error:
            print(error)
    """

    assert run(code, "numpy", "numba") == (
        'Logs need numpy, which is not installed here. Install the extra: pip install "django-redis-components[logs]"'
    )


def test_without_numba_numpy_does_the_work_and_numba_is_refused() -> None:
    code = """
        from django.conf import settings
        settings.configure()
        from components.exceptions import ExtraNotInstalled
        from components.services.logs.lines import choose_kernel
        print(choose_kernel().name)
        try:
            choose_kernel("numba")
        except ExtraNotInstalled as error:
            print(error)
    """

    assert run(code, "numba").splitlines() == [
        "numpy",
        'The kernel numba is not installed. Install it: pip install "django-redis-components[logs]"',
    ]


def test_nothing_else_of_the_app_needs_what_the_extra_installs() -> None:
    importers = {
        path.parent.relative_to(ROOT).as_posix()
        for path in (ROOT / "components").rglob("*.py")
        if re.search(r"^\s*(import|from) (numpy|numba)\b", path.read_text(encoding="utf-8"), re.MULTILINE)
    }

    assert importers == {
        "components/services/logs/lines",
        "components/services/logs/lines/kernels",
        "components/services/logs/traffic",
    }


def test_the_fastest_that_is_installed_is_taken() -> None:
    assert choose_kernel().name == choose_kernel("auto").name == "numba"


def test_the_setting_forces_a_kernel_and_an_argument_goes_before_it(settings) -> None:
    settings.COMPONENTS = {**settings.COMPONENTS, "LOG_KERNEL": "naive"}

    assert choose_kernel().name == "naive"
    assert choose_kernel("numpy").name == "numpy"


def test_a_kernel_that_there_is_not_is_refused() -> None:
    with pytest.raises(UnknownKernel, match="no kernel 'cython'; there are: auto, numba, numpy, naive"):
        choose_kernel("cython")


def test_it_is_compiled_even_where_nothing_may_be_written() -> None:
    """numba finds no folder for code whose file is nowhere, as it finds none if all of them are read-only."""
    from components.services.logs.lines.kernels.compiling import compiled

    names: dict[str, object] = {}
    exec(compile("def twice(number):\n    return 2 * number", "/nowhere/twice.py", "exec"), names)

    twice = compiled(names["twice"])

    assert twice(21) == 42
    assert twice.nopython_signatures
