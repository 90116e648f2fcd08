"""
What the user of the settings may not do in Redis although scripts of services need it.

Redis checks the rights to a command when it is queued in a transaction. So each is queued, with a key of the service,
and the transaction is discarded: nothing is carried out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from django.core.checks import CheckMessage, Warning
from redis import RedisCluster
from redis.connection import Connection
from redis.exceptions import NoPermissionError, ResponseError

from components.conf import conf
from components.kit.client import get_client
from components.kit.contracts import scripts_of
from components.kit.errors import redis_errors
from components.kit.keyspace import stem
from components.kit.scripts import Script

#: The services, and what the second part of their keys is: as their keys.py has it.
KEYS = {
    "autocomplete": ("books", "contacts"),
    "chat": ("chats", "inboxes"),
    "counters": ("counters", "sums"),
    "geo": ("geo",),
    "locks": ("locks", "fences"),
    "logs": ("logs",),
    "mailboxes": ("mailboxes",),
    "queues": ("queues",),
    "rows": ("rows",),
    "semaphores": ("semaphores",),
}


def examine_rights() -> Iterator[CheckMessage]:
    """Yield a finding for what the user lacks. Raises RedisUnavailable."""
    client: Any = get_client()
    if isinstance(client, RedisCluster):
        client = client.get_redis_connection(client.get_default_node())  # type: ignore[no-untyped-call]
    user = client.get_connection_kwargs().get("username") or "default"
    try:
        with redis_errors():
            lacks = {service: found for service in KEYS if (found := _lacks(client, service))}
    except NoPermissionError:
        return  # to MULTI or COMMAND: a user of such least right was made for this site
    if lacks:
        rules = dict.fromkeys(rule for found in lacks.values() for rule in found)
        services = "; ".join(f"{service} ({' '.join(found)})" for service, found in lacks.items())
        yield Warning(
            f"The user {user!r} of CACHES[{conf().cache!r}] lacks rights in Redis that these services need: "
            f"{services}.",
            hint=f"Run `ACL SETUSER {user} {' '.join(rules)}` as an administrator, unless this process is not to use "
            "these services.",
            id="components.W118",
        )


def _lacks(client: Any, service: str) -> list[str]:
    """Return the rules that the user would need in addition to run the scripts of *service*."""
    sources = (Script(name).source for name in scripts_of(service))
    needed = sorted({word.lower() for text in sources for word in re.findall(r'redis\.call\("(\w+)"', text)})
    with client.client() as one:
        connection: Any = one.connection
        arity = {name: _arity(connection, name) for name in needed}
        _ask(connection, "MULTI")
        try:
            key = stem(KEYS[service][0], "doctor")
            found = [
                f"+{name}" for name in needed if _denied(connection, name, arity[name], key) == "command"
            ]
            found += [
                f"~{stem(word, 'doctor').partition('{')[0]}*"
                for word in KEYS[service]
                if _denied(connection, "get", 2, stem(word, "doctor")) == "key"
            ]
        finally:
            _ask(connection, "DISCARD")
    return found


def _denied(connection: Connection, name: str, arity: int, key: str) -> str:
    """Return what the user may not use of a call of the command *name* with *key*: "command", "key" or nothing."""
    try:
        _ask(connection, name, *[key] * (abs(arity) - 1))
    except NoPermissionError as error:
        return "key" if re.search(r"\bkeys?\b", str(error)) else "command"
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
