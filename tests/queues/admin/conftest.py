"""Staff, and a project of two admin sites."""

from collections.abc import Callable

import pytest
from django.test import Client

from components.testing.fixtures import redis  # noqa: F401  (a plain server only)
from tests.fixtures.admin import onlooker, operator, remover, staff, stranger, two_sites, viewer  # noqa: F401


@pytest.fixture
def manager(staff: Callable[..., Client]) -> Client:  # noqa: F811
    """Staff that may do everything with tasks."""
    return staff("change_queue", "delete_queue", "view_arguments_queue")
