"""Workers in this process."""

from tests.fixtures.command import server  # noqa: F401
from tests.fixtures.worker import backend, make_worker, patient, start  # noqa: F401
