"""A plugin for the process that runs django-redis' tests: only those of its settings sqlite."""

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = [item for item in items if item.name.endswith("[sqlite]")]
