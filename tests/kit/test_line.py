"""The connection that a thread keeps for scripts."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from redis import ConnectionPool, Redis

from components.kit.line import ask
from components.kit.silence import guarded
from components.services.mailboxes import Mailbox


@pytest.fixture
def pool(redis: Redis) -> ConnectionPool:
    given = redis.connection_pool
    return ConnectionPool(
        connection_class=guarded(given.connection_class), max_connections=4, **given.connection_kwargs
    )


def test_a_thread_asks_on_one_connection_and_gives_it_back_when_it_ends(pool: ConnectionPool) -> None:
    with ThreadPoolExecutor(1) as threads:
        ids = {threads.submit(ask, pool, "CLIENT", "ID").result() for _ in range(3)}
        assert len(ids) == 1
        assert len(pool._in_use_connections) == 1

    assert not pool._in_use_connections
    assert ask(pool, "CLIENT", "ID") in ids
    pool.disconnect()


def test_threads_keep_no_more_than_half_of_a_pool(pool: ConnectionPool) -> None:
    barrier, turn = threading.Barrier(8), threading.Lock()

    def work() -> set[int]:
        found = set()
        for _ in range(20):
            with turn:
                found.add(ask(pool, "CLIENT", "ID"))
        barrier.wait(20)
        return found

    with ThreadPoolExecutor(8) as threads:
        each = [threads.submit(work) for _ in range(8)]
        assert len(set.union(*(some.result() for some in each))) <= 3
    pool.disconnect()


def test_a_call_within_a_call_has_a_connection_of_its_own(
    redis: Redis, pool: ConnectionPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As that of a signal handler, which runs between the sending and the answer."""
    kind, within = pool.connection_class, []
    read = kind.read_response

    def read_late(self: object, *args: object, **options: object) -> object:
        monkeypatch.setattr(kind, "read_response", read)
        within.append(ask(pool, "ECHO", "inner"))
        return read(self, *args, **options)

    ask(pool, "PING")
    monkeypatch.setattr(kind, "read_response", read_late)

    assert [ask(pool, "ECHO", "outer"), *within, ask(pool, "ECHO", "next")] == [b"outer", b"inner", b"next"]
    pool.disconnect()


def test_a_connection_that_the_server_has_closed_is_replaced(redis: Redis) -> None:
    Mailbox("jack").push("jill", "one")
    assert redis.client_kill_filter(_type="normal", skipme=True)

    Mailbox("jack").push("jill", "two")

    assert [mail.text for mail in Mailbox("jack").pull()] == ["one", "two"]
