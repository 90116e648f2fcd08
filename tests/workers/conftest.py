"""Workers in this process."""

from tests.fixtures.worker import backend, make_worker, start  # noqa: F401
