"""The history of one lock and one semaphore on its page: what was measured in the last two hours."""

from __future__ import annotations

import pytest

from components.services.counters import flush
from components.services.locks import lock
from components.services.locks.named import key_of
from tests.control_room.pages import text_of

LOCKS, SEMAPHORES = "/admin/components/lock/", "/admin/components/semaphore/"


@pytest.fixture
def counting(settings):
    settings.COMPONENTS = {**settings.COMPONENTS, "COUNT_SERVICES": True}


def of_lock(client, name="item:42"):
    return text_of(client, LOCKS, "lock/", key=key_of(name))


def test_a_lock_shows_how_often_and_how_long_it_was_held_and_refused(staff, redis, counting):
    with lock("item:42", timeout=30):
        assert not lock("item:42", timeout=30).acquire(blocking_timeout=0.01)
    flush()

    html = of_lock(staff("view_lock", "view_counter"))

    for words in ("Given back", "Refused", "How long it was held", "How long callers waited in vain"):
        assert words in html
    assert "measured together, as item:*" in html


def test_the_history_needs_the_permission_to_view_counters(staff, redis, counting):
    assert "The last two hours" not in of_lock(staff("view_lock"))
