"""The users of Redis that `manage.py acl` makes: they may do all that their processes do, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from redis import Redis
from redis.exceptions import AuthenticationError, NoPermissionError, ResponseError

from components.embedded import EmbeddedServer
from components.exceptions import ComponentsError
from components.kit.rights import USERS, _files, rights
from components.observing.gathering import gather
from components.services.autocomplete import AddressBookReader
from components.services.chat import ChatReader
from components.services.counters import CounterReader, clean
from components.services.locks import LockReader, lock
from components.services.logs import note_job
from components.services.mailboxes import Mailbox, MailboxReader
from components.services.queues import Ticks
from components.services.rows import RowReader
from components.services.semaphores import SemaphoreReader
from components.testing import empty, redis_at
from tests.kit.services.test_asked_again import ASKED
from tests.kit.test_lost_replies import CASES
from tests.support.restricted import ROLES, add_user, as_user

#: The commands of the cases that readers ask, for the admin.
OF_READERS = ("ZLEXCOUNT", "ZRANGEBYLEX", "ZRANGE")
READING = {
    "books": lambda: AddressBookReader().page(),
    "chats": lambda: ChatReader().page(),
    "counters": lambda: CounterReader().page(),
    "locks": lambda: LockReader().held(),
    "mailboxes": lambda: MailboxReader().page(),
    "queues": lambda: Ticks().last(["nightly"]),
    "rows": lambda: RowReader().page(),
    "semaphores": lambda: SemaphoreReader().page(),
}


@pytest.fixture(params=USERS)
def user(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def everything(redis_server: EmbeddedServer) -> Iterator[Redis]:
    """The server, empty, with the three users; this is its default user, who may do all."""
    with empty(redis_server) as client:
        for each in USERS:
            add_user(client, each)
        client.acl_log_reset()  # other tests were refused something, maybe on purpose
        yield client
        client.execute_command("ACL DELUSER", *USERS)


def refused(client: Redis) -> list[tuple[str, str]]:
    """What the server has refused since the last look, and to whom."""
    found = [(str(each["username"]), str(each["object"])) for each in client.acl_log()]
    client.acl_log_reset()
    # A connection may not tell Redis 6.2 its name: there CLIENT can only be allowed as a whole. It goes on without.
    return [each for each in found if each[1] != "client"]


@pytest.mark.slow
def test_each_user_can_run_every_script_of_its_processes(
    everything: Redis, redis_server: EmbeddedServer, user: str
) -> None:
    """Prepared by the worker, as in life."""
    for each in (
        "worker",
        user,
    ):  # one case is a lock that a project made with redis-py, under a key of its own
        everything.execute_command("ACL SETUSER", each, "~a")
    sources = "".join(path.read_text(encoding="utf-8") for path in _files(USERS[user]))
    scripts = re.findall(r'\bScript\("([^"]+)"\)', sources)
    assert len(scripts) > 40
    for script in scripts:
        for case in CASES.get(script, ()):
            everything.flushdb()
            everything.script_flush()
            with redis_at(as_user(redis_server.url, "worker")):
                act = case(everything)
            with redis_at(as_user(redis_server.url, user)):
                act()
            assert refused(everything) == [], f"{script}: {case.__name__}"


def test_each_user_can_read_and_wait_as_its_processes_do(
    everything: Redis, redis_server: EmbeddedServer, user: str
) -> None:
    with redis_at(as_user(redis_server.url, user)):
        for command, call in ASKED:
            if user != "web" or command not in OF_READERS:
                with suppress(ComponentsError):  # most ask for what is not there
                    call()
        with lock("a", timeout=5, blocking_timeout=1):
            assert not lock("a", timeout=5, blocking_timeout=0.1).acquire()
        Mailbox("jack").pull(limit=3)
        for read in READING.values() if user != "web" else ():
            read()
        if user == "worker":
            clean()

    assert refused(everything) == []


def test_each_user_gathers_all_figures(everything: Redis, redis_server: EmbeddedServer, user: str) -> None:
    with redis_at(as_user(redis_server.url, "worker")):
        note_job("game")
    with redis_at(as_user(redis_server.url, user)):
        gathered = gather()

    assert gathered.missing == {}
    assert any(labels == {"job": "game"} for each in gathered.families for labels, _value in each.samples)
    assert refused(everything) == []


@pytest.mark.parametrize(
    "command",
    [
        "FLUSHALL", "FLUSHDB", "KEYS *", "CONFIG GET *", "CONFIG SET dir /tmp", "ACL LIST", "ACL SETUSER web +@all",
        "LATENCY RESET", "SCRIPT FLUSH", "SHUTDOWN NOSAVE", "REPLICAOF NO ONE", "MONITOR", "CLIENT KILL TYPE normal",
        "GET other:key", "SET other:key 1", "DEL other:key", "PUBLISH other 1", "SUBSCRIBE other", "RANDOMKEY",
        "SWAPDB 0 1", "SAVE", "MODULE LIST", "MIGRATE 127.0.0.1 1 components:queues:{a} 0 1", "SLOWLOG GET",
    ],
)  # fmt: skip
def test_nobody_can_do_anything_else(
    everything: Redis, redis_server: EmbeddedServer, user: str, command: str
) -> None:
    with Redis.from_url(as_user(redis_server.url, user)) as client, pytest.raises(NoPermissionError):
        client.execute_command(*command.split())


@pytest.mark.parametrize(
    ("only", "command"),
    [
        ("web", "XREADGROUP GROUP a b STREAMS components:chats:{a}:b >"),
        ("web", "XPENDING components:logs:{game}:stream a"),
        ("web", "SCAN 0"),
        ("admin", "SCAN 0"),
    ],
)
def test_a_user_cannot_do_what_only_others_need(
    everything: Redis, redis_server: EmbeddedServer, only: str, command: str
) -> None:
    with Redis.from_url(as_user(redis_server.url, only)) as client, pytest.raises(NoPermissionError):
        client.execute_command(*command.split())


def test_the_prefix_and_the_prefixes_of_caches_are_the_keys(settings: object) -> None:
    settings.COMPONENTS = {**settings.COMPONENTS, "PREFIX": "a*b"}  # type: ignore[attr-defined]
    found = rights("web")

    assert "~a\\*b:queues:{*" in found
    assert "&a\\*b:news:*" in found
    assert "~components:cache:*" not in found
    assert not [rule for rule in found if rule in ("~*", "&*", "+@all", "allkeys", "allcommands")]


def test_every_pattern_of_files_is_still_needed() -> None:
    for user, patterns in USERS.items():
        for pattern in patterns:
            others = tuple(each for each in patterns if each != pattern)
            assert {*_files(others)} > {*_files(patterns)}, f"{user}: {pattern}"


def written(*arguments: str) -> list[str]:
    out = StringIO()
    call_command("acl", *arguments, stdout=out)
    return out.getvalue().splitlines()


@pytest.fixture
def passwords(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_missing_password_and_an_unknown_user_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REDIS_PASSWORD_WEB", raising=False)
    with pytest.raises(CommandError, match="The environment has no REDIS_PASSWORD_WEB"):
        written("web")
    with pytest.raises(CommandError, match="There is no user root; there are web, worker, admin, operator"):
        written("root")


def test_every_exception_to_the_roles_is_still_a_test() -> None:
    tests = Path(__file__).parents[1]
    sources = "".join(path.read_text(encoding="utf-8") for path in tests.rglob("test_*.py"))

    for pattern, _user in ROLES:
        for name in re.findall(r"\*(test_\w+)", pattern):
            assert f"def {name}(" in sources, pattern


def test_a_wrong_rule_would_be_noticed(everything: Redis) -> None:
    with pytest.raises(ResponseError):
        everything.execute_command("ACL SETUSER", "web", "+no_such_command")
