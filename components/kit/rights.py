"""
What a user of Redis must be allowed to do, found in the sources: the commands of the scripts and of the Python that a
process runs, and the keys of its services.

Redis checks the commands and keys of a script by the rights of its caller, so a right that is not found here would be
missed at the first call. What the rights cannot tell apart: who may enqueue a task may also delete it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from django.conf import settings
from redis.commands.core import CoreCommands

from components.kit.keyspace import escaped, prefix_pattern
from components.kit.scripts import Script
from components.locations import is_redis

_ROOT = Path(__file__).parents[1]
#: What no process of a running site calls. In cache.py that is clear(), for which one must see the names of all keys.
_NEVER = ("cache.py", "testing/*", "embedded/*", "management/*", "migrations/*")
#: The files that the processes of a user do not run: pages and the API, workers and daemons, the site of the admin.
USERS: dict[str, tuple[str, ...]] = {
    "web": (
        "admin.py", "control_room/*", "overview/*", "servers.py", "services/*/admin/*", "services/*/card.py",
        "services/*/finder.py", "services/*/worker/*", "services/*/reader.py", "services/counters/cleaning.py",
        "services/geo/importing.py", "services/logs/aggregation.py", "services/logs/jobs.py",
        "services/logs/stream.py", "services/logs/worker_info.py", "services/queues/consumer.py",
        "services/rows/loader.py",
    ),
    "worker": (
        "admin.py", "api/*", "control_room/*", "overview/*", "services/*/admin/*", "services/*/api/*",
        "services/*/card.py", "services/*/finder.py", "services/*/page/*",
    ),
    "admin": ("services/*/worker/*", "services/counters/cleaning.py"),
}  # fmt: skip
#: Names of what holds a client or a pipeline.
_HOLDERS = {"client", "_client", "pipe", "redis", "node", "batch", "cluster", "get_client"}
#: Methods of redis-py that are not named for their command.
_SPELLED = {"delete": "del", "scan_iter": "scan", "hscan_iter": "hscan"}
#: Commands whose first argument belongs to them.
_CONTAINERS = ("client", "cluster", "memory", "script", "xinfo", "xgroup")
#: What connections need, and django-redis for the methods of a cache.
_CONNECTION = "+@connection -@admin -@dangerous"
_CACHE = "get set mget del unlink exists expire pexpire expireat pexpireat persist ttl pttl incrby decrby"
_CLUSTER = "+cluster|slots +cluster|nodes +cluster|info +command +readonly +asking"


def rights(user: str, *, cluster: bool = False) -> list[str]:
    """Return the rules of *user*, as ACL SETUSER takes them. Nothing is sent to Redis."""
    if user not in USERS:  # an operator
        return ["~*", "&*", "+@all"]
    files = [*_files(USERS[user])]
    prefix = prefix_pattern()
    keys = [f"~{prefix}:{word}:{{*" for word in _key_words(files)]
    keys += [f"~{escaped(each)}:*" for each in _cache_prefixes()]
    commands = {*_commands(files), *(_CACHE.split() if _cache_prefixes() else ())}
    whole = {name for name in commands if "|" not in name}
    allowed = [
        f"+{name}" for name in sorted(commands) if name in whole or name.partition("|")[0] not in whole
    ]
    connection = [*_CONNECTION.split(), *(_CLUSTER.split() if cluster else ())]
    return ["resetkeys", *keys, "resetchannels", f"&{prefix}:news:*", "-@all", *connection, *allowed]


class Needs(NamedTuple):
    """What a service needs."""

    commands: list[str]
    #: The second words of its keys.
    keys: list[str]


def needs(user: str) -> dict[str, Needs]:
    """Return what each service needs in the processes of *user*; of a user who is not in USERS, in all processes."""
    files, found = [*_files(USERS.get(user, ()))], dict[str, Needs]()
    for keys in (path for path in files if path.name == "keys.py"):
        ours = [path for path in files if path.is_relative_to(keys.parent)]
        commands = {name for path in ours for name in _commands_of_file(path) if "|" not in name}
        found[keys.parent.name] = Needs(sorted(commands), _key_words(ours))
    return found


def line(user: str, password: str, *, cluster: bool = False) -> str:
    """Return the line of an ACL file for *user*; it holds only the SHA-256 of the password."""
    secret = sha256(password.encode()).hexdigest()
    return " ".join(["user", user, "reset", "on", f"#{secret}", *rights(user, cluster=cluster)])


def _files(without: Sequence[str]) -> Iterator[Path]:
    for path in sorted(_ROOT.rglob("*.py")):
        name = str(path.relative_to(_ROOT))
        if not any(fnmatch(name, pattern) for pattern in (*_NEVER, *without)):
            yield path


def _key_words(files: Sequence[Path]) -> list[str]:
    """Return the second word of all keys that their keys.py make."""
    sources = [path.read_text(encoding="utf-8") for path in files if path.name == "keys.py"]
    found = {word for source in sources for word in re.findall(r"""\bstem\(["'](\w+)["']""", source)}
    return sorted(found)


def _cache_prefixes() -> list[str]:
    caches = settings.CACHES.values()
    return sorted({str(cache.get("KEY_PREFIX", "")) for cache in caches if is_redis(cache)})


def _commands(files: Sequence[Path]) -> Iterator[str]:
    yield from ("eval", "evalsha", "script|load", "subscribe", "unsubscribe")  # kit/scripts.py, kit/news.py
    yield from ("multi", "discard")  # doctor/rights.py, which executes nothing
    for path in files:
        yield from _commands_of_file(path)


@cache
def _commands_of_file(path: Path) -> set[str]:
    calls = [
        each for each in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(each, ast.Call)
    ]
    return {command for call in calls for command in _commands_of_call(call)}


def _commands_of_call(call: ast.Call) -> Iterator[str]:
    first = call.args[0] if call.args else None
    text = first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""
    if isinstance(call.func, ast.Name) and call.func.id == "Script" and text:
        yield from (each.lower() for each in re.findall(r'redis\.p?call\("(\w+)"', Script(text).source))
    if not isinstance(call.func, ast.Attribute):
        return
    name, value = call.func.attr, call.func.value
    called = value.func if isinstance(value, ast.Call) else value
    holder = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
    if name == "execute_command":
        yield from [text.lower()] if text else []
    elif holder in _HOLDERS and hasattr(CoreCommands, name):
        yield _command(name)


def _command(method: str) -> str:
    container, _, rest = method.partition("_")
    if rest and container in _CONTAINERS:
        return f"{container}|{rest.replace('_', '-')}"
    return _SPELLED.get(method, method)
