"""
The users of Redis that `manage.py acl` makes may do all that their processes do, and nothing else. That nothing is
missing is held by the tests of each service, which CI runs as these users (tests/support/restricted.py).
"""

import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.test.utils import override_settings
from redis import Redis
from redis.exceptions import AuthenticationError, NoPermissionError

from components.embedded import EmbeddedServer
from components.kit.rights import KEYS, USERS, rights
from components.kit.scripts import Script
from components.testing import empty
from docs.keyspace import SCHEMA
from tests.kit.test_scripts import SCRIPTS
from tests.support.restricted import add_user, as_user


@pytest.fixture(params=USERS)
def user(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def everything(redis_server: EmbeddedServer) -> Iterator[Redis]:
    """The server, empty, with the three users; this is its default user, who may do all."""
    with empty(redis_server) as client:
        for each in USERS:
            add_user(client, each)
        yield client
        client.execute_command("ACL DELUSER", *USERS)


def test_the_keys_are_those_of_all_services_and_the_worker_may_run_all_scripts() -> None:
    sources = "".join(Script(name).source for name in SCRIPTS)
    called = {command.lower() for command in re.findall(r'redis\.p?call\("(\w+)"', sources)}

    assert {key().split(":")[1] for key in SCHEMA.values()} == {*KEYS} - {"format"}
    assert len(called) > 40
    assert called <= {*USERS["worker"]}


#: What nobody may do, and what not all may.
FORBIDDEN = [
    "FLUSHALL", "FLUSHDB", "KEYS *", "CONFIG GET *", "CONFIG SET dir /tmp", "ACL LIST", "ACL SETUSER web +@all",
    "LATENCY RESET", "SCRIPT FLUSH", "SHUTDOWN NOSAVE", "REPLICAOF NO ONE", "MONITOR", "CLIENT KILL TYPE normal",
    "GET other:key", "SET other:key 1", "DEL other:key", "PUBLISH other 1", "SUBSCRIBE other", "RANDOMKEY",
    "SWAPDB 0 1", "SAVE", "MODULE LIST", "MIGRATE 127.0.0.1 1 components:queues:{a} 0 1", "SLOWLOG GET",
    "CLIENT TRACKING ON BCAST", "CLIENT LIST", "CLIENT REPLY OFF", "GET :1:a",
]  # fmt: skip
ONLY_FOR_OTHERS = {
    "web": [
        "XREADGROUP GROUP a b STREAMS components:chats:{a}:b >",
        "XPENDING components:logs:{game}:stream a",
        "SCAN 0",
    ],
    "admin": ["SCAN 0"],
    "worker": [],
}


def test_nobody_can_do_anything_else(everything: Redis, redis_server: EmbeddedServer, user: str) -> None:
    with Redis.from_url(as_user(redis_server.url, user)) as client:
        for command in (*FORBIDDEN, *ONLY_FOR_OTHERS[user]):
            with pytest.raises(NoPermissionError):
                client.execute_command(*command.split())
        assert client.set("components:locks:{00}:a", 1)


def test_the_prefix_of_all_keys_is_in_the_rights() -> None:
    with override_settings(COMPONENTS={**settings.COMPONENTS, "PREFIX": "a*b"}):
        found = rights("web")

    assert "~a\\*b:queues:{*" in found
    assert "&a\\*b:news:*" in found
    assert not [rule for rule in found if rule in ("~*", "&*", "+@all", "allkeys", "allcommands")]


def written(*arguments: str) -> list[str]:
    out = StringIO()
    call_command("acl", *arguments, stdout=out)
    return out.getvalue().splitlines()


@pytest.fixture
def passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passwords in the environment, and a prefix of their own for the keys of the cache."""
    monkeypatch.setitem(settings.CACHES["default"], "KEY_PREFIX", "shop")
    for name in (*USERS, "operator"):
        monkeypatch.setenv(f"REDIS_PASSWORD_{name.upper()}", f"secret of {name}")


@pytest.mark.usefixtures("passwords")
def test_the_file_is_one_that_the_server_loads(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    users = tmp_path / "users.acl"
    users.write_text("\n".join(each for each in written() if "default off" not in each) + "\n")
    program = request.config.getoption("--redis-server")
    with EmbeddedServer(tmp_path / "redis", server=program, options={"aclfile": str(users)}) as server:
        with Redis.from_url(server.url, username="web", password="secret of web") as web:
            assert web.ping()
        with Redis.from_url(server.url, username="operator", password="secret of operator") as operator:
            assert {*operator.acl_users()} == {"default", "operator", *USERS}
        stranger = Redis.from_url(server.url, username="web", password="other")
        with stranger, pytest.raises(AuthenticationError):
            stranger.ping()


@pytest.mark.usefixtures("passwords")
def test_the_commands_are_those_that_a_running_server_takes(everything: Redis) -> None:
    lines = written("--commands", "--cluster")

    for each in lines:
        assert everything.execute_command(*each.split(" ")) in (True, b"OK")
    assert len(lines) == len(USERS) + 1
    assert written()[-1] == "user default off"
    assert not [each for each in written() if "secret" in each]
    everything.execute_command("ACL DELUSER", "operator")


@pytest.mark.usefixtures("passwords")
def test_what_is_missing_or_unknown_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REDIS_PASSWORD_WEB", raising=False)
    with pytest.raises(CommandError, match="REDIS_PASSWORD_WEB"):
        written("web")
    with pytest.raises(CommandError, match="root"):
        written("root")
    assert "~shop:*" in written("worker")[0].split()
    monkeypatch.delitem(settings.CACHES["default"], "KEY_PREFIX")
    with pytest.raises(CommandError, match=r"CACHES\['default'\] has no KEY_PREFIX"):
        written("worker")
