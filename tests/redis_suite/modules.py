"""
redis-py's test modules, imported as they are; only the class that they test is another.

They make each lock with `lock_class=Lock`, of their own global name, and that name is set to our class. The package
that they lie in has our clients.py in the place of their conftest.
"""

from __future__ import annotations

import sys
from importlib import import_module
from inspect import iscoroutinefunction
from pathlib import Path
from types import ModuleType

import pytest

from tests.redis_suite import clients
from tests.upstream import redis_suite

PACKAGE = "redis_tests"


def cases_of(lock: type, name: str) -> dict[str, type]:
    """Return the test classes of redis-py's module *name*, made to test *lock*."""
    module = _load(redis_suite().tests, name)
    assert issubclass(lock, module.Lock)
    module.Lock = lock  # type: ignore[attr-defined]
    cases = {name: case for name, case in vars(module).items() if name.startswith("Test")}
    for test, method in methods_of(cases).items():
        if iscoroutinefunction(method):  # redis-py has pytest-asyncio take all of them
            case, _, name = test.partition(".")
            setattr(cases[case], name, pytest.mark.asyncio(method))
    return cases


def methods_of(cases: dict[str, type]) -> dict[str, object]:
    """The test methods of *cases*, as `TestCase.test_name`."""
    return {
        f"{case.__name__}.{name}": method
        for case in cases.values()
        for name, method in vars(case).items()
        if name.startswith("test_")
    }


def _load(folder: Path, name: str) -> ModuleType:
    if not (folder / "test_lock.py").is_file():
        raise FileNotFoundError(
            f"No test_lock.py in {folder}. Delete {folder}, and run: python -m tests.upstream"
        )
    package = sys.modules.setdefault(PACKAGE, ModuleType(PACKAGE))
    package.__path__ = [str(folder)]
    sys.modules[f"{PACKAGE}.conftest"] = clients
    return import_module(f"{PACKAGE}.{name}")
