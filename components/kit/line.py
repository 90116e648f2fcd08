"""
The line to the server: a command on a connection that the thread keeps.

Taking a connection from the pool of redis-py and giving it back takes longer than a command. So a thread keeps the
one that it has used, until it ends, needs one for something else, or the pool needs it for another thread. The
connection is replaced if the server has closed it, or if somebody has left an answer unread. Retries and metrics of
redis-py are left out: send only what may be sent twice.
"""

import select
import threading
from contextlib import suppress
from ssl import SSLSocket
from threading import get_ident
from typing import Any

from redis import ConnectionPool
from redis.exceptions import MaxConnectionsError, RedisError

from components.kit.forking import in_child, notice
from components.kit.resp import pack_command

#: The pool and the connection that each thread keeps, while no command is under way on it.
_kept: dict[int, tuple[Any, Any]] = {}
_local = threading.local()


class LinePool(ConnectionPool):
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


def keep(pool: Any) -> None:
    """Let threads keep connections of *pool*, unless it is of another class: that may wait, or follow a master."""
    if type(pool) is ConnectionPool:
        pool.__class__ = LinePool


def ask(pool: LinePool, *command: Any) -> Any:
    """Send a command, and return its answer. Raises redis-py's errors."""
    notice()  # a caller may have its client from before a fork
    thread = get_ident()
    of, connection = _kept.pop(thread, (None, None))  # so a signal handler does not use it meanwhile
    if of is not pool:
        if of is not None:
            of.release(connection)
        connection = pool.get_connection()
    elif connection.should_reconnect() or _is_stale(connection):
        connection.disconnect()
    try:
        try:
            packed = [pack_command(command)]
        except TypeError:  # an argument that redis-py converts, or refuses
            packed = connection.pack_command(*command)
        connection.send_packed_command(packed)
        return connection.read_response()
    finally:
        if thread in _kept:
            pool.release(connection)
        else:
            _kept[thread] = pool, connection
            if not hasattr(_local, "end"):
                _local.end = _End()


def _is_stale(connection: Any) -> bool:
    """Return whether there is something to read before anything was sent: the end, or the answer to nothing."""
    if (sock := connection._sock) is None:
        return False
    try:
        reader = getattr(connection._parser, "_reader", None)  # of hiredis
        if reader is None or isinstance(sock, SSLSocket) or not hasattr(select, "poll"):  # TLS, or eventlet
            return bool(connection.can_read())
        if reader.has_data():
            return True
        poll = select.poll()
        poll.register(sock, select.POLLIN)
        return bool(poll.poll(0))
    except (OSError, ValueError, RedisError):
        return True


def _give_back(thread: int) -> bool:
    """Give back what a thread keeps. Return False if it keeps nothing, or is using it."""
    pool, connection = _kept.pop(thread, (None, None))
    if pool is not None:
        pool.release(connection)
    return pool is not None


in_child(_kept.clear)
