"""Logs where less is installed, or nothing may be written to: no numpy, no numba, no folder for what is compiled."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from components.exceptions import UnknownKernel
from components.services.logs.lines import choose_kernel

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import sys
from importlib import util

missing, find_spec = {"numpy", "numba"}, util.find_spec
util.find_spec = lambda name: None if name in missing else find_spec(name)
from django.conf import settings
settings.configure()
from components.exceptions import ExtraNotInstalled

import components.management.commands.logreport  # which needs nothing of what counting does
assert not {"numpy", "numba", "zstandard", "maxminddb"} & sys.modules.keys()
try:
    import components.services.logs.lines
except ExtraNotInstalled as error:
    print(error)
missing.remove("numpy")
from components.services.logs.lines import Counting, PlaceTable, Ranges, choose_kernel, find_format
counting = Counting(PlaceTable(Ranges()), find_format("book"))
print(counting.reader.kernel.name, len(counting.add(b"1.2.3.4 2011-10-10")), "numba" in sys.modules)
try:
    choose_kernel("numba")
except ExtraNotInstalled as error:
    print(error)
"""


def test_without_numpy_the_extra_is_named_and_without_numba_plain_python_does_the_work() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    without_numpy, counted, without_numba = done.stdout.splitlines()
    assert counted == "naive 1 False"
    for said, name in ((without_numpy, "numpy"), (without_numba, "numba")):
        assert name in said
        assert 'pip install "django-redis-components[logs]"' in said


def test_nothing_else_of_the_app_needs_what_the_extra_installs() -> None:
    importers = {
        path.parent.relative_to(ROOT).as_posix()
        for path in (ROOT / "components").rglob("*.py")
        if re.search(r"^\s*(import|from) (numpy|numba)\b", path.read_text(encoding="utf-8"), re.MULTILINE)
    }

    logs = "components/services/logs"
    assert importers == {f"{logs}/lines", f"{logs}/lines/kernels", f"{logs}/traffic"}


def test_the_setting_forces_a_kernel_and_an_argument_goes_before_it(settings) -> None:
    for setting, argument, expected in (
        ("auto", None, "numba"),
        ("naive", None, "naive"),
        ("naive", "auto", "numba"),
        ("naive", "numba", "numba"),
        ("numba", "naive", "naive"),
    ):
        settings.COMPONENTS = {**settings.COMPONENTS, "LOG_KERNEL": setting}
        assert choose_kernel(argument).name == expected
    for unknown in ("numpy", "cython"):
        with pytest.raises(UnknownKernel):
            choose_kernel(unknown)


def test_it_is_compiled_even_where_nothing_may_be_written() -> None:
    """numba finds no folder for code whose file is nowhere, as it finds none if all of them are read-only."""
    from components.services.logs.lines.kernels.scanning import compiled

    names: dict[str, object] = {}
    exec(compile("def twice(number):\n    return 2 * number", "/nowhere/twice.py", "exec"), names)

    twice = compiled(names["twice"])

    assert twice(21) == 42
    assert twice.nopython_signatures
