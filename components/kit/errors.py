"""Say in plain words, and as RedisUnavailable or RedisUnsuitable, what redis-py raises."""

from __future__ import annotations

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

#: The command may or may not have been carried out: its reply did not arrive.
REPLY_LOST = (ConnectionError, TimeoutError)

#: All that may be raised because of Redis: the errors of a cluster client have no class in common with others.
REDIS_FAILED = (ComponentsError, RedisError, RedisClusterException)

#: Answers of a server that is there and cannot take a command now. redis-py has classes for some, which
#: leave the word out; errors inside scripts, and all others, have it somewhere in their text.
_NOT_NOW_CLASSES = (ClusterError, OutOfMemoryError, ReadOnlyError, TryAgainError)
_NOT_NOW = re.compile(r"\b(OOM|MISCONF|READONLY|LOADING|CLUSTERDOWN|MASTERDOWN|NOREPLICAS|BUSY|UNBLOCKED)\b")

#: What a server older than 6.2 says, to a client or inside a script, and one that has no such database.
_UNKNOWN_COMMAND = re.compile(r"unknown command|Unknown Redis command", re.IGNORECASE)
_WRONG_DATABASE = re.compile(
    r"(DB index is out of range|invalid DB index|SELECT is not allowed in cluster mode)", re.I
)

#: What a server says inside a script to a user who may not do all that it does; outside there is a class for it.
_NO_PERMISSION = re.compile(r"user executing the script|ACL failure in script")

_LOGIN = (AuthenticationError, AuthorizationError)

#: What a server says that is there and cannot take a command now, in our words: by redis-py's class, or by the word
#: that the server begins with.
_REFUSALS: tuple[tuple[tuple[type[Exception], ...], str, str], ...] = (
    (
        (ReadOnlyError,),
        "READONLY",
        "it is a read-only replica, and the CACHES alias has to lead to its master",
    ),
    ((OutOfMemoryError,), "OOM", "it is full, until data have gone or its maxmemory is raised"),
    ((BusyLoadingError,), "LOADING", "it was started a moment ago and is loading its data"),
    ((), "MISCONF", "it could not save its data to disk, and takes no writes until it can"),
    ((), "NOREPLICAS", "too few of its replicas are connected"),
    ((MasterDownError,), "MASTERDOWN", "it is a replica that has lost its master"),
    ((), "BUSY", "it is busy running a script"),
)

#: What redis-py finds out by itself about a cluster that is not whole now. It has a class for neither.
_NOT_WHOLE = re.compile(r"slots are not covered|could not agree on a valid slots cache")


class redis_errors:  # noqa: N801  (used as a function is)
    """
    Turn redis-py's ways to say "not now", awaited or not, into RedisUnavailable; other errors pass.

    A class, since a generator costs a microsecond each time, and a call of Redis passes two.
    """

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None and (wrong := _wrong(error)):
            raise RedisUnsuitable(wrong) from error
        if error is not None and (reason := _reason(error)):
            is_there = isinstance(error, MaxConnectionsError | ResponseError) or _refusal(error)
            raise (RedisRefused if is_there else RedisUnavailable)(reason) from error


def translated(error: Exception) -> Exception:
    """RedisUnavailable for what redis_errors turns into that, with *error* as its cause; else *error* itself."""
    try:
        with redis_errors():
            raise error
    except Exception as away:  # noqa: BLE001  (which it is that is wanted)
        return away


def _reason(error: BaseException) -> str | None:
    """Why Redis is unavailable; None if *error* says something else."""
    if isinstance(error, MaxConnectionsError):
        return (
            "All connections of this process to Redis are in use: give max_connections in the "
            "CONNECTION_POOL_KWARGS of the CACHES alias, or let fewer threads or coroutines use it at once."
        )
    if said := _refusal(error):
        return said
    if isinstance(error, REPLY_LOST) or (isinstance(error, RedisClusterException) and _is_outage(error)):
        return f"Redis does not answer: {error}"
    if _is_not_now(error):
        return f"Redis does not take commands now: {error}"
    return None


def _wrong(error: BaseException) -> str | None:
    """Return the sentence for an *error* that the server's version or the settings cause; None for any other."""
    if isinstance(error, InvalidResponse):
        return (
            f"What answers at the LOCATION of CACHES[{conf().cache!r}] does not speak as Redis does: {error}"
        )
    if isinstance(error, RedisClusterException):
        reason = error.__cause__
        error = (reason.__context__ if isinstance(reason, RedisClusterException) else reason) or error
    if isinstance(error, ConnectionError) and isinstance(error.__cause__, ResponseError):
        # So the asynchronous client wraps what a server on a unix socket says at once.
        error = error.__cause__
    if not isinstance(error, ResponseError):
        return None
    text = str(error).partition(", with args")[0]  # which may be a password
    where = f"CACHES[{conf().cache!r}]"
    if _UNKNOWN_COMMAND.search(text):
        return (
            f"The Redis of {where} does not know a command that this app needs, as before Redis 6.2, or lets nobody "
            f"use it: {text.rstrip('.')}. Install Redis 6.2 or newer, or Valkey."
        )
    if isinstance(error, NoPermissionError) or _NO_PERMISSION.search(text):
        return (
            f"The user whom {where} names may not use a command, key or channel that this app needs: "
            f"{text.rstrip('.')}. Grant the user all commands, and the keys and channels that "
            "begin with COMPONENTS['PREFIX'], which is 'components' unless it is set."
        )
    if _WRONG_DATABASE.search(text):
        return (
            f"The LOCATION of {where} names a database that the server does not have: {text.rstrip('.')}. "
            "A server has the databases 0 to 15 unless its configuration says otherwise, and a cluster has 0 only."
        )
    return None


def _refusal(error: BaseException | None) -> str | None:
    """Return what a server that is there has said by *error*, in our words; None if it is not among those."""
    if isinstance(error, RedisClusterException) and isinstance(error.__cause__, _LOGIN):
        error = error.__cause__
    if isinstance(error, _LOGIN):
        return f"Redis does not accept the user name or password that the CACHES alias gives: {error}"
    for classes, word, words in _REFUSALS:
        by_word = isinstance(error, ResponseError) and re.search(rf"\b{word}\b", str(error))
        if isinstance(error, classes) or by_word:
            return f"Redis does not take commands now: {words}: {error}"
    return None


def _is_not_now(error: BaseException | None) -> bool:
    return isinstance(error, _NOT_NOW_CLASSES) or (
        isinstance(error, ResponseError) and bool(_NOT_NOW.search(str(error)))
    )


def _is_outage(error: RedisClusterException) -> bool:
    """Whether the cluster is at fault, and not the caller, whose keys may lie in several slots."""
    if isinstance(error, SlotNotCoveredError) or _NOT_WHOLE.search(str(error)):
        return True
    reason = error.__cause__  # why the last node asked could not tell of the others
    if isinstance(
        reason, RedisClusterException
    ):  # "cluster mode is not enabled": so it calls any error reply
        reason = reason.__context__
    return isinstance(reason, REPLY_LOST) or _is_not_now(reason)
