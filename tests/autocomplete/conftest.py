"""The server of services' tests, and an empty book."""

import pytest
from redis import Redis

from components.services.autocomplete import AddressBook
from tests.fixtures.service import alarm, one_of_each, redis, server  # noqa: F401


@pytest.fixture
def book(redis: Redis) -> AddressBook:  # noqa: F811
    return AddressBook("guild:7")
