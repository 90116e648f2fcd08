"""Staff, and a project of two admin sites."""

from tests.control_room.every_page import one_periodic_task, query  # noqa: F401
from tests.fixtures.admin import onlooker, operator, remover, staff, stranger, two_sites, viewer  # noqa: F401
