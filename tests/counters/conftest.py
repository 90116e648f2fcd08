"""The server of services' tests; and no test leaves counts, or a thread that waits for long, to the next one."""

from collections.abc import Iterator

import pytest

from components.services.counters import forget
from tests.fixtures.service import alarm, one_of_each, redis, server  # noqa: F401


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    yield
    forget()
