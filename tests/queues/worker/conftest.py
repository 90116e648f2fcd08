"""Workers in this process."""

from components.testing.fixtures import redis  # noqa: F401  (a plain server only)
from tests.fixtures.worker import backend, make_worker, patient, start  # noqa: F401
