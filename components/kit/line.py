"""
The line to the server: a command on a connection that the thread keeps.

Taking a connection from the pool of redis-py and giving it back takes longer than a command. So a thread keeps the
one that it has used, until it ends, needs one for something else, or the pool needs it for another thread. If the
server has closed one meanwhile, the command raises ConnectionError: send only what may be sent twice. Retries and
metrics of redis-py are left out.
"""

import threading
from contextlib import suppress
from threading import get_ident
from typing import Any

from redis import ConnectionPool
from redis.exceptions import MaxConnectionsError

from components.kit.forking import in_child
from components.kit.silence import Guarded

#: The pool and the connection that each thread keeps, while no command is under way on it.
_kept: dict[int, tuple[Any, Any]] = {}
_local = threading.local()


class Pool(ConnectionPool):
    """A pool of which threads keep connections. There are always as many for others as if they kept none."""

    def get_connection(self, *args: Any, **options: Any) -> Any:
        _give_back(get_ident())
        while True:
            try:
                return super().get_connection(*args, **options)
            except MaxConnectionsError:
                if not any(pool is self and _give_back(thread) for thread, (pool, _) in [*_kept.items()]):
                    raise


class _End:
    """Gives back what a thread keeps, when it ends."""

    def __init__(self) -> None:
        self._thread = get_ident()

    def __del__(self) -> None:
        with suppress(Exception):  # at the end of the interpreter
            _give_back(self._thread)


def has_line(client: Any) -> bool:
    """Return whether ask() can do what *client* does: it is of redis-py's own class, and its pool is guarded."""
    pool = getattr(client, "connection_pool", None)
    return not client.connection and issubclass(getattr(pool, "connection_class", object), Guarded)


def keep(pool: Any) -> None:
    """Let threads keep connections of *pool*, unless it is of another class: that may wait, or follow a master."""
    if type(pool) is ConnectionPool:
        pool.__class__ = Pool


def ask(pool: Any, *command: Any) -> Any:
    """Send a command, and return its answer. Raises redis-py's errors."""
    thread = get_ident()
    of, connection = _kept.pop(thread, (None, None))  # so a signal handler does not use it meanwhile
    if of is not pool:
        if of is not None:
            of.release(connection)
        connection = pool.get_connection()
    elif connection.should_reconnect():
        connection.disconnect()
    try:
        connection.send_packed_command(connection.pack_command(*command))
        return connection.read_response()
    finally:
        if type(pool) is Pool and thread not in _kept:
            _kept[thread] = pool, connection
            if not hasattr(_local, "end"):
                _local.end = _End()
        else:
            pool.release(connection)


def _give_back(thread: int) -> bool:
    """Give back what a thread keeps. Return False if it keeps nothing, or is using it."""
    pool, connection = _kept.pop(thread, (None, None))
    if pool is not None:
        pool.release(connection)
    return pool is not None


in_child(_kept.clear)
