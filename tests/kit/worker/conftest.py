"""Workers in this process."""

from __future__ import annotations

from tests.fixtures.worker import backend, make_worker, patient, start  # noqa: F401
