"""Staff, and a project of two admin sites."""

from components.testing.fixtures import redis  # noqa: F401  (a plain server only)
from tests.fixtures.admin import onlooker, operator, remover, staff, stranger, two_sites, viewer  # noqa: F401
