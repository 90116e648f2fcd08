"""
What the user of the settings may not do in Redis although services need it: kit/rights.py knows what that is.

Redis checks the rights to a command when it is queued in a transaction. So each is queued, with a key of the service,
and the transaction is discarded: nothing is carried out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from django.core.checks import CheckMessage, Info, Warning
from redis import RedisCluster
from redis.connection import Connection
from redis.exceptions import NoPermissionError, ResponseError

from components.conf import conf
from components.kit.client import get_client
from components.kit.errors import redis_errors
from components.kit.keyspace import stem
from components.kit.rights import USERS, Needs, needs


def examine_rights() -> Iterator[CheckMessage]:
    """Yield a finding for what the user lacks. Raises RedisUnavailable."""
    client: Any = get_client()
    if isinstance(client, RedisCluster):
        client = client.get_redis_connection(client.get_default_node())  # type: ignore[no-untyped-call]
    user = client.get_connection_kwargs().get("username") or "default"
    with redis_errors():
        try:
            tried = {service: _lacks(client, needed) for service, needed in needs(user).items()}
        except NoPermissionError:
            return  # to MULTI or COMMAND: a user of such least right was made for this site
    if lacks := {service: found for service, found in tried.items() if found}:
        rules = dict.fromkeys(rule for found in lacks.values() for rule in found)
        services = "; ".join(f"{service} ({' '.join(found)})" for service, found in lacks.items())
        yield Warning(
            f"The user {user!r} of CACHES[{conf().cache!r}] lacks rights in Redis that these services need: "
            f"{services}.",
            hint=f"As an administrator of Redis, run what `manage.py acl --commands {user}` prints."
            if user in USERS
            else f"Run `ACL SETUSER {user} {' '.join(rules)}` as an administrator, unless this process is not to use "
            "these services.",
            id="components.W118",
        )


def not_permitted(what: str) -> CheckMessage:
    """Return the finding that the user may not read what the doctor asks, as befits a user of least right."""
    return Info(
        f"The user of CACHES[{conf().cache!r}] may not read all that belongs to {what}, so {what} were not looked "
        "at: run the doctor as the user of a worker, too.",
        id="components.I119",
    )


def _lacks(client: Any, needed: Needs) -> list[str]:
    """Return the rules that the user would need in addition to what they may do."""
    with client.client() as one:
        connection: Any = one.connection
        arity = {name: _arity(connection, name) for name in needed.commands}
        _ask(connection, "MULTI")
        try:
            key = stem(needed.keys[0], "doctor")
            commands = [name for name in arity if _denied(connection, name, arity[name], key) == "command"]
            keys = [
                word for word in needed.keys if _denied(connection, "get", 2, stem(word, "doctor")) == "key"
            ]
        finally:
            _ask(connection, "DISCARD")
    return [f"+{name}" for name in commands] + [
        f"~{stem(word, 'doctor').partition('{')[0]}*" for word in keys
    ]


def _denied(connection: Connection, name: str, arity: int, key: str) -> str:
    """Return what the user may not use of a call of the command *name* with *key*: such as "command", or nothing."""
    try:
        _ask(connection, name, *[key] * (abs(arity) - 1))
    except NoPermissionError as error:
        [refused] = re.findall(r"\b(command|key|channel)", str(error))[:1]
        return str(refused)
    except ResponseError:
        pass  # such as MOVED: the rights are checked first
    return ""


def _arity(connection: Connection, name: str) -> int:
    """Return how many words a call of the command *name* has; of one that takes more, minus the fewest."""
    [about] = _ask(connection, "COMMAND", "INFO", name)
    return int(about[1]) if about else 1


def _ask(connection: Any, *words: str) -> Any:
    connection.send_command(*words)
    return connection.read_response()
