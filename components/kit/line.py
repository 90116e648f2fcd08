"""
The line to the server: a command on a connection that the thread keeps.

Taking a connection from the pool of redis-py and giving it back takes longer than a command. So a thread keeps the
one that it has used, until it ends or asks another pool; up to half of the connections of a pool are kept. If the
server has closed one meanwhile, the command raises ConnectionError: send only what may be sent twice. Retries and
metrics of redis-py are left out.
"""

import threading
from collections import Counter
from contextlib import suppress
from typing import Any

from redis import ConnectionPool

from components.kit.forking import in_child
from components.kit.silence import Guarded

_local = threading.local()
#: How many connections threads keep, by the id of their pool.
_kept: Counter[int] = Counter()
_guard = threading.Lock()


class _Kept:
    """A connection that was taken from a pool, and goes back when this is forgotten."""

    __slots__ = ("connection", "is_kept", "pool")

    def __init__(self, pool: Any) -> None:
        self.is_kept = False
        self.pool, self.connection = pool, pool.get_connection()
        if type(pool) is ConnectionPool:  # others wait for a connection, or follow a master
            with _guard:
                self.is_kept = 2 * _kept[id(pool)] < pool.max_connections
                _kept[id(pool)] += self.is_kept

    def __del__(self) -> None:
        if self.is_kept:
            with _guard:
                _kept[id(self.pool)] -= 1
        with suppress(Exception):  # at the end of the interpreter; or there is none
            self.pool.release(self.connection)


def has_line(client: Any) -> bool:
    """Return whether ask() can do what *client* does: it is of redis-py's own class, and its pool is guarded."""
    pool = getattr(client, "connection_pool", None)
    return not client.connection and issubclass(getattr(pool, "connection_class", object), Guarded)


def ask(pool: Any, *command: Any) -> Any:
    """Send a command, and return its answer. Raises redis-py's errors."""
    kept: _Kept | None = _local.__dict__.pop("kept", None)  # nobody else has it now, such as a signal handler
    if kept is None or kept.pool is not pool:
        kept = _Kept(pool)
    connection = kept.connection
    if connection.should_reconnect():
        connection.disconnect()
    try:
        connection.send_packed_command(connection.pack_command(*command))
        return connection.read_response()
    finally:
        if kept.is_kept:
            _local.kept = kept


def _begin_anew() -> None:
    global _local, _guard
    _guard = threading.Lock()
    _local = threading.local()
    _kept.clear()


in_child(_begin_anew)
