"""Two servers, of which one is stopped (SIGSTOP): what is held on the other is renewed as if nothing had happened."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from components.embedded import EmbeddedServer
from components.kit import leases as renewals
from components.services.locks import Lock
from components.services.semaphores import Semaphore
from components.testing import empty, redis_at
from tests.support.waiting import eventually

LEASE = 1.5  # seconds, of what lies on the healthy server
SOCKET_TIMEOUT = 4.0  # seconds for which one renewal on the stopped one hangs: twice, as it is sent again
OTHERS = 3  # locks on the stopped server


@pytest.fixture
def healthy(redis_server: EmbeddedServer) -> Iterator[EmbeddedServer]:
    with empty(redis_server), redis_at(redis_server.url):
        yield redis_server


@pytest.fixture
def other(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[EmbeddedServer]:
    with EmbeddedServer(tmp_path / "other", server=request.config.getoption("--redis-server")) as server:
        yield server


@contextmanager
def stopped(server: EmbeddedServer) -> Iterator[None]:
    pid = server.pid
    assert pid
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.slow
def test_threads_renew_what_lies_on_a_healthy_server(healthy: EmbeddedServer, other: EmbeddedServer) -> None:
    client = Redis.from_url(healthy.url)
    far = Redis.from_url(other.url, socket_timeout=SOCKET_TIMEOUT, retry=Retry(NoBackoff(), 0))
    held = Lock(client, "a", timeout=LEASE, auto_renewal=True)
    permit = Semaphore("a", limit=1, lease=LEASE).acquire(auto_renewal=True)
    held.acquire()
    others = [Lock(far, f"b{number}", timeout=LEASE, auto_renewal=True) for number in range(OTHERS)]
    for each in others:
        each.acquire()
    lost = [each.lost for each in others]

    with stopped(other):
        until = renewals.clock() + 3 * LEASE
        assert not held.lost.wait(3 * LEASE)
        assert not permit.lost.is_set()
        assert held._holding.valid_until > until
        assert permit.valid_until > until
        assert all(event.is_set() for event in lost)  # this is told in time as well

    held.ensure_held()
    held.release()
    permit.release()
    client.close()
    far.close()


def test_a_thread_that_has_nothing_to_renew_any_more_ends(
    healthy: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def renewing() -> set[threading.Thread]:
        return {thread for thread in threading.enumerate() if thread.name == "renewals"}

    renewals._starter.get()  # it has a thread that keeps the time
    before = renewing()
    monkeypatch.setattr(renewals, "_IDLE", 0.05)
    monkeypatch.setattr(renewals, "_PART", 50)
    with Redis.from_url(healthy.url) as client:
        for _ in range(2):  # it begins again
            with Lock(client, "a", timeout=10, auto_renewal=True) as held:
                first = held._holding.valid_until
                assert eventually(lambda until=first: held._holding.valid_until > until)
            assert eventually(lambda: renewing() <= before)
