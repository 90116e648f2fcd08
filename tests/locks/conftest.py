"""The server of these tests, and who waits in them."""

import pytest

from components.services.locks import drop_ins
from tests.fixtures.service import alarm, one_of_each, redis, server  # noqa: F401


@pytest.fixture
def no_heartbeats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits in a test does not tell again that they are alive."""
    monkeypatch.setattr(drop_ins, "ALIVE", 60_000_000)
