"""The connection that a thread keeps for scripts."""

import select
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from redis import ConnectionPool, Redis
from redis.exceptions import MaxConnectionsError

from components.kit.line import _kept, ask, keep
from components.kit.silence import guarded
from components.services.mailboxes import Mailbox
from tests.support.forks import fork_in_c, in_child


@pytest.fixture
def pool(redis: Redis) -> Iterator[ConnectionPool]:
    given = redis.connection_pool
    kind = guarded(given.connection_class)
    made = ConnectionPool(connection_class=kind, max_connections=4, **given.connection_kwargs)
    keep(made)
    yield made
    made.disconnect()


def test_a_thread_asks_on_one_connection_and_gives_it_back_when_it_ends(pool: ConnectionPool) -> None:
    with ThreadPoolExecutor(1) as threads:
        ids = {threads.submit(ask, pool, "CLIENT", "ID").result() for _ in range(3)}
        assert (len(ids), len(pool._in_use_connections)) == (1, 1)

    assert not pool._in_use_connections
    assert ask(pool, "CLIENT", "ID") in ids


def test_others_find_as_many_connections_as_if_threads_kept_none(pool: ConnectionPool) -> None:
    ready, done, turn = threading.Barrier(7), threading.Event(), threading.Lock()

    def work() -> bytes:
        with turn:
            ask(pool, "PING")
        ready.wait(20)
        done.wait(20)
        with turn:
            return bytes(ask(pool, "ECHO", "again"))

    with ThreadPoolExecutor(6) as threads:
        working = [threads.submit(work) for _ in range(6)]
        ready.wait(20)
        taken = [pool.get_connection() for _ in range(4)]
        with pytest.raises(MaxConnectionsError):
            pool.get_connection()
        for connection in taken:
            pool.release(connection)
        done.set()
        assert [each.result(20) for each in working] == [b"again"] * 6


def test_a_call_within_a_call_has_a_connection_of_its_own(
    redis: Redis, pool: ConnectionPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, within = pool.connection_class, []  # as that of a signal handler
    read = kind.read_response

    def read_late(self: object, *args: object, **options: object) -> object:
        monkeypatch.setattr(kind, "read_response", read)
        within.append(ask(pool, "ECHO", "inner"))
        return read(self, *args, **options)

    ask(pool, "PING")
    monkeypatch.setattr(kind, "read_response", read_late)

    assert [ask(pool, "ECHO", "outer"), *within, ask(pool, "ECHO", "next")] == [b"outer", b"inner", b"next"]


def test_a_connection_that_the_server_has_closed_is_replaced(redis: Redis, pool: ConnectionPool) -> None:
    Mailbox("jack").push("jill", "one")
    assert Redis(connection_pool=pool).client_kill_filter(_type="normal", skipme=True)
    Mailbox("jack").push("jill", "two")
    assert [mail.text for mail in Mailbox("jack").pull()] == ["one", "two"]


def test_an_answer_that_nobody_has_read_is_given_to_nobody(pool: ConnectionPool) -> None:
    ask(pool, "PING")
    _, connection = _kept[threading.get_ident()]
    connection._sock.sendall(b"ECHO stray\r\n")
    assert select.select([connection._sock], [], [], 10)[0]
    assert ask(pool, "ECHO", "mine") == b"mine"


def test_a_child_that_a_server_in_c_forks_has_a_connection_of_its_own(pool: ConnectionPool) -> None:
    mine = ask(pool, "CLIENT", "ID")
    assert in_child(lambda: ask(pool, "CLIENT", "ID") != mine, fork_in_c)
    assert ask(pool, "CLIENT", "ID") == mine
