from __future__ import annotations

import pytest

from tests.redis_suite.clients import kind, url
from tests.redis_suite.modules import PACKAGE

__all__ = ["kind", "url"]
pytest.register_assert_rewrite(PACKAGE)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "onlynoncluster: redis-py's; here these tests run on a cluster as well"
    )


@pytest.fixture(autouse=True)
def always_of_some_kind(kind: object) -> None:
    """redis-py's tests ask for it at run time only, so pytest would not know."""
