"""
What the user of the settings may not do in Redis although this app needs it, by the lists of kit/rights.py.

Redis checks the rights to a command when it is queued in a transaction. So each is queued, with a key of a service,
and the transaction is discarded: nothing is carried out. So no list may have DISCARD.
"""

from collections.abc import Iterator
from typing import Any

from django.core.checks import CheckMessage, Info, Warning
from redis import RedisCluster
from redis.exceptions import NoPermissionError, ResponseError

from components.conf import conf
from components.kit.client import get_client
from components.kit.errors import redis_errors
from components.kit.keyspace import stem
from components.kit.rights import KEYS, USERS


def examine_rights() -> Iterator[CheckMessage]:
    """Yield a finding for what the user lacks. Raises RedisUnavailable."""
    client: Any = get_client()
    if isinstance(client, RedisCluster):
        client = client.get_redis_connection(client.get_default_node())  # type: ignore[no-untyped-call]
    user = user_of(client)
    with redis_errors():
        try:
            lacks = _lacks(client, [each for each in USERS.get(user, USERS["worker"]) if "|" not in each])
        except NoPermissionError:
            return  # to MULTI or COMMAND: a user of such least right was made for this site
    if lacks:
        rules = " ".join(lacks)
        yield Warning(
            f"The user {user!r} of CACHES[{conf().cache!r}] lacks rights in Redis that services need: {rules}.",
            hint=f"As an administrator of Redis, run what `manage.py acl --commands {user}` prints."
            if user in USERS
            else f"Run `ACL SETUSER {user} {rules}` as an administrator, unless this process is not to use what "
            "needs them.",
            id="components.W118",
        )


def user_of(client: Any) -> str:
    return client.get_connection_kwargs().get("username") or "default"


def not_permitted(what: str) -> CheckMessage:
    """Return the finding that the user may not read what the doctor asks, as befits a user of least right."""
    return Info(
        f"The user of CACHES[{conf().cache!r}] may not read all that belongs to {what}, so {what} were not looked "
        "at: run the doctor as the user of a worker, too.",
        id="components.I119",
    )


def _lacks(client: Any, commands: list[str]) -> list[str]:
    """Return the rules that the user would need in addition to what they may do."""
    keys, channel = [stem(word, "doctor") for word in KEYS], stem("news", "doctor")
    with client.client() as one:
        connection = one.connection
        about = _ask(connection, "COMMAND", "INFO", *commands)
        calls = {
            name: [channel if name in ("publish", "subscribe") else keys[0]] * (abs(each[1]) - 1)
            for name, each in zip(commands, about, strict=True)
            if each
        }
        _ask(connection, "MULTI")
        try:
            denied = [name for name, words in calls.items() if _denied(connection, "command", name, *words)]
            closed = [key for key in keys if _denied(connection, "key", "get", key)]
        finally:
            _ask(connection, "DISCARD")
    return [f"+{name}" for name in denied] + [f"~{key.partition('{')[0]}*" for key in closed]


def _denied(connection: Any, what: str, *words: str) -> bool:
    """Return True if the user may not send *words*, because of *what*: the command or its key."""
    try:
        _ask(connection, *words)
    except NoPermissionError as error:
        return what in str(error)
    except ResponseError:
        pass  # such as MOVED: the rights are checked first
    return False


def _ask(connection: Any, *words: str) -> Any:
    connection.send_command(*words)
    return connection.read_response()
