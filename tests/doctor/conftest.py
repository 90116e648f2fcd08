"""The doctor needs a database, in which it looks for migrations."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _database(db: None) -> None: ...
