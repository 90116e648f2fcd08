"""Workers in this process."""

from tests.fixtures.worker import backend, make_worker, patient, start  # noqa: F401
