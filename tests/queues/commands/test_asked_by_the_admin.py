"""A real worker does what the control room asks it for."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.test import Client

from components.services.queues import TaskQueue
from tests.commands.processes import Held, run_worker
from tests.support.waiting import eventually

ROOT = "/admin/components/queue/"


@pytest.fixture
def admin(db):
    client = Client()
    client.force_login(User.objects.create_superuser("admin"))
    return client


@pytest.mark.slow
def test_it_becomes_quiet_and_then_stops_when_its_task_has_ended(server, queue: TaskQueue, held: Held, admin):
    with run_worker(server.url, LEASE="1") as worker:
        assert held.has_begun()
        [info] = queue.workers()
        query = urlencode({"alias": "default", "worker": info.id})

        admin.post(f"{ROOT}quiet/?{query}", secure=True)
        assert eventually(lambda: queue.workers()[0].is_quiet)
        later = queue.push("tests.tasks.echo")
        admin.post(f"{ROOT}stop/?{query}", secure=True)
        assert worker.says("Asked to stop.")
        held.end()

        assert worker.exit_code() == 0
    assert queue.workers() == []
    done, waiting = queue.get(held.id), queue.get(later)
    assert done
    assert waiting
    assert (done.state, waiting.state) == ("successful", "ready")
