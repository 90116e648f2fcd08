"""
redis-py's test modules, imported as they are; only the class that they test is another.

They make each lock with `lock_class=Lock`, of their own global name, and that name is set to our class. The package
that they lie in has our clients.py in the place of their conftest.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from inspect import iscoroutinefunction
from pathlib import Path
from types import ModuleType

import pytest

from tests.redis_suite import clients

PACKAGE = "redis_tests"


def cases_of(lock: type, name: str) -> dict[str, type]:
    """The test classes of their module *name*, testing *lock*. Without REDIS_TESTS the caller's module is skipped."""
    if "REDIS_TESTS" not in os.environ:
        pytest.skip(
            "REDIS_TESTS does not say where redis-py's own tests are; .ci/run fetches them "
            "(tests/redis_suite/fetch.py)",
            allow_module_level=True,
        )
    module = _load(Path(os.environ["REDIS_TESTS"]), name)
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
            f"{folder} has no test_lock.py; REDIS_TESTS must be the folder `tests` of redis-py."
        )
    package = sys.modules.setdefault(PACKAGE, ModuleType(PACKAGE))
    package.__path__ = [str(folder)]
    sys.modules[f"{PACKAGE}.conftest"] = clients
    return import_module(f"{PACKAGE}.{name}")
