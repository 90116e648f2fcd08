"""Turn the errors of redis-py into RedisUnavailable or RedisUnsuitable, with a message in plain words."""

import re

from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    BusyLoadingError,
    ClusterError,
    ConnectionError,
    InvalidResponse,
    MasterDownError,
    MaxConnectionsError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisClusterException,
    RedisError,
    ResponseError,
    SlotNotCoveredError,
    TimeoutError,
    TryAgainError,
)

from components.conf import conf
from components.exceptions import ComponentsError, RedisRefused, RedisUnavailable, RedisUnsuitable
from components.kit.silence import WrongTLS

#: It is unknown whether the command was carried out, because its reply did not arrive.
REPLY_LOST = (ConnectionError, TimeoutError)

#: All errors that Redis may cause. Those of a cluster client share no base class with the others.
REDIS_FAILED = (ComponentsError, RedisError, RedisClusterException)

#: Error replies of a server that is running but cannot take a command now. redis-py has classes for some of them, and
#: removes the word from the message; errors inside scripts, and all others, have the word somewhere in their text.
_NOT_NOW_CLASSES = (ClusterError, OutOfMemoryError, ReadOnlyError, TryAgainError)
_NOT_NOW = re.compile(r"\b(OOM|MISCONF|READONLY|LOADING|CLUSTERDOWN|MASTERDOWN|NOREPLICAS|BUSY|UNBLOCKED)\b")

#: Error replies, to a client or inside a script, of a server older than 6.2, and of one without the requested
#: database.
_UNKNOWN_COMMAND = re.compile(r"unknown command|Unknown Redis command", re.IGNORECASE)
_WRONG_DATABASE = re.compile(
    r"(DB index is out of range|invalid DB index|SELECT is not allowed in cluster mode)", re.I
)

#: Error replies inside a script to a user who lacks a permission. Outside of scripts redis-py has a class for them.
_NO_PERMISSION = re.compile(r"user executing the script|ACL failure in script")

_LOGIN = (AuthenticationError, AuthorizationError)

#: Descriptions of why a running server cannot take a command now: by redis-py's class, or by the word that the
#: server's reply begins with.
_REFUSALS: tuple[tuple[tuple[type[Exception], ...], str, str], ...] = (
    ((ReadOnlyError,), "READONLY", "it is a read-only replica, and the CACHES alias must name its master"),
    ((OutOfMemoryError,), "OOM", "its memory is full; delete data or raise its maxmemory"),
    ((BusyLoadingError,), "LOADING", "it was started a moment ago and is loading its data"),
    ((), "MISCONF", "it could not save its data to disk, and refuses writes until it can"),
    ((), "NOREPLICAS", "too few of its replicas are connected"),
    ((MasterDownError,), "MASTERDOWN", "it is a replica that has lost its master"),
    ((), "BUSY", "it is busy running a script"),
    ((), "max number of clients reached", "it has as many clients as its maxclients allows"),
)

#: Errors of redis-py, which has no class for them, when it finds that a cluster is incomplete.
_NOT_WHOLE = re.compile(r"slots are not covered|could not agree on a valid slots cache")


def is_moving(error: object) -> bool:
    """Return True if *error* says that the keys of a call lie on two nodes, while their slot moves."""
    return isinstance(error, TryAgainError) or (
        isinstance(error, ClusterError) and "TTL exhausted" in str(error)
    )


class redis_errors:  # noqa: N801  (used as a function is)
    """
    Turn redis-py's errors that mean "not now", raised in a with block, into RedisUnavailable; other errors pass.

    It is a class because a generator would cost a microsecond each time, and each call of Redis enters two of these.
    """

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None and (wrong := _wrong(error)):
            raise RedisUnsuitable(wrong) from error
        if error is not None and (reason := _reason(error)):
            is_there = isinstance(error, MaxConnectionsError | ResponseError) or _refusal(error)
            raise (RedisRefused if is_there else RedisUnavailable)(reason) from error


class unblocked:  # noqa: N801  (used as a function is)
    """Leave a with block whose blocking command a server has ended because another one has or gets the key."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        return is_moving(error) or (isinstance(error, ResponseError) and "UNBLOCKED" in str(error))


class ended_early(unblocked):  # noqa: N801
    """
    Leave a with block whose blocking command has ended without an answer, as all do when their server is replaced.

    Whoever waits asks again, and then the new master answers, or the reason why there is none is raised.
    """

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        is_lost = isinstance(error, REPLY_LOST) and not isinstance(error, MaxConnectionsError)
        return is_lost or super().__exit__(kind, error, trace)


def translated(error: Exception) -> Exception:
    """Return the RedisUnavailable that redis_errors raises for *error*, or *error* itself if it would pass."""
    try:
        with redis_errors():
            raise error
    except Exception as away:  # noqa: BLE001  (which it is that is wanted)
        return away


def _reason(error: BaseException) -> str | None:
    """Return why Redis is unavailable; None if *error* means something else."""
    if isinstance(error, MaxConnectionsError):
        return (
            "All connections of this process to Redis are in use. Raise max_connections in the "
            "CONNECTION_POOL_KWARGS of the CACHES alias, or let fewer threads or coroutines use Redis at "
            "once."
        )
    if said := _refusal(error):
        return said
    if isinstance(error, REPLY_LOST) or (isinstance(error, RedisClusterException) and _is_outage(error)):
        return f"Redis does not answer: {error}"
    if is_moving(error):
        return (
            "Redis does not take commands now: a slot of the cluster moves to another node, and its keys lie on "
            f"both. If nobody moves it any more, end that with `redis-cli --cluster fix HOST:PORT`: {error}"
        )
    if _is_not_now(error):
        return f"Redis does not take commands now: {error}"
    return None


def _wrong(error: BaseException) -> str | None:
    """Return a message for an *error* that the server's version or the settings cause; None for any other."""
    if isinstance(error, InvalidResponse):
        return (
            f"The server at the LOCATION of CACHES[{conf().cache!r}] does not speak the Redis protocol: "
            f"{error}"
        )
    if isinstance(error, RedisClusterException):
        reason = error.__cause__
        error = (reason.__context__ if isinstance(reason, RedisClusterException) else reason) or error
    if isinstance(error, ConnectionError) and isinstance(error.__cause__, ResponseError | WrongTLS):
        # The asynchronous client wraps errors while it connects like this.
        error = error.__cause__
    if isinstance(error, WrongTLS):
        return f"CACHES[{conf().cache!r}] cannot be used. {error}"
    if not isinstance(error, ResponseError):
        return None
    text = str(error).partition(", with args")[0]  # the arguments may include a password
    where = f"CACHES[{conf().cache!r}]"
    if _UNKNOWN_COMMAND.search(text) and "hello" in text.lower():
        return (
            f"The Redis of {where} does not know HELLO or does not allow it: {text.rstrip('.')}. Install Redis 6.2 "
            "or newer; if it is that, add ?protocol=2 to its URL."
        )
    if _UNKNOWN_COMMAND.search(text):
        return (
            f"The Redis of {where} does not know or does not allow a command that this app needs: "
            f"{text.rstrip('.')}. Install Redis 6.2 or newer, or Valkey, and do not disable commands."
        )
    if isinstance(error, NoPermissionError) or _NO_PERMISSION.search(text):
        return (
            f"The user that {where} names may not use a command, key or channel that this app needs: "
            f"{text.rstrip('.')}. Grant the user all commands, and the keys and channels that begin with "
            "COMPONENTS['PREFIX'] (default: 'components')."
        )
    if _WRONG_DATABASE.search(text):
        return (
            f"The LOCATION of {where} names a database that the server does not have: {text.rstrip('.')}. "
            "A server has the databases 0 to 15 unless its configuration says otherwise, and redis-py's client of a "
            "cluster has 0 only."
        )
    return None


def _refusal(error: BaseException | None) -> str | None:
    """Return a description of *error* if it is a refusal by a running server; else None."""
    if isinstance(error, RedisClusterException) and isinstance(error.__cause__, _LOGIN):
        error = error.__cause__
    if isinstance(error, _LOGIN):
        return f"Redis does not accept the user name or password that the CACHES alias gives: {error}"
    for classes, word, words in _REFUSALS:
        by_word = isinstance(error, ResponseError | ConnectionError) and re.search(rf"\b{word}\b", str(error))
        if isinstance(error, classes) or by_word:
            return f"Redis does not take commands now: {words}: {error}"
    return None


def _is_not_now(error: BaseException | None) -> bool:
    return isinstance(error, _NOT_NOW_CLASSES) or (
        isinstance(error, ResponseError) and bool(_NOT_NOW.search(str(error)))
    )


def _is_outage(error: RedisClusterException) -> bool:
    """Return True if the cluster is at fault, and not the caller, whose keys may lie in several slots."""
    if isinstance(error, SlotNotCoveredError) or _NOT_WHOLE.search(str(error)):
        return True
    reason = error.__cause__  # why the last node could not list the others
    # redis-py raises a RedisClusterException, "cluster mode is not enabled", for any error reply of a node.
    if isinstance(reason, RedisClusterException):
        reason = reason.__context__
    return isinstance(reason, REPLY_LOST) or _is_not_now(reason)
