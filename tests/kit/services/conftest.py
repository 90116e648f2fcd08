"""Every test of a service runs twice: on a plain server, and on one in cluster mode."""

from tests.fixtures.service import alarm, one_of_each, redis, server  # noqa: F401
