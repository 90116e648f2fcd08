"""Staff, and a project of two admin sites."""

from tests.fixtures.admin import onlooker, operator, remover, staff, stranger, two_sites, viewer  # noqa: F401
from tests.fixtures.books import none_declared  # noqa: F401
