"""
What counts as Redis being unavailable: each trouble is made on a real server, and is over afterwards. What cannot
work at all, such as a URL of something else, is said in a sentence by commands, pages and both clients.
"""

import asyncio
import re
import socketserver
import ssl
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Thread
from typing import Any, Self

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import Client as Browser
from django.test.utils import override_settings
from redis import Redis
from redis.exceptions import BusyLoadingError, ResponseError

from components.embedded import EmbeddedServer
from components.exceptions import (
    RedisRefused,
    RedisUnavailable,
    RedisUnsuitable,
)
from components.kit.client import get_async_client, get_client
from components.kit.errors import redis_errors
from components.locations import mistakes
from components.servers import inspect_server
from components.services.counters import Counter
from components.services.locks import lock
from components.services.logs import Aggregation
from components.services.mailboxes import Mailbox
from components.services.queues import Consumer, TaskQueue
from components.services.semaphores import Semaphore
from components.testing import ClusterServer, redis_at
from tests.commands.processes import Command
from tests.deploy.test_files import make_certificate
from tests.support.full import configured
from tests.support.queues import ECHO
from tests.support.waiting import eventually

CLUSTER = {"CLIENT_CLASS": "components.cache.ClusterClient"}


@contextmanager
def replica(client: Redis, **options: Any) -> Iterator[None]:
    with configured(client, **options):
        client.replicaof("127.0.0.1", 1)  # a name would have to be looked up, and all would wait for that
        yield
        client.connection_pool.disconnect()  # the server closes connections whose blocking command it has ended
        client.replicaof("no", "one")


@contextmanager
def disk_full(client: Redis) -> Iterator[None]:
    in_its_way = Path(client.config_get("dir")["dir"], client.config_get("dbfilename")["dbfilename"])
    in_its_way.mkdir()
    with configured(client, save="3600 1"):
        client.bgsave()
        assert eventually(lambda: client.info("persistence")["rdb_last_bgsave_status"] == "err")
        yield
        in_its_way.rmdir()


@contextmanager
def busy(client: Redis) -> Iterator[None]:
    path = client.connection_pool.connection_kwargs["path"]
    with configured(client, **{"lua-time-limit": 1}), Redis.from_url(f"unix://{path}") as other:
        loop = Thread(target=_run_for_ever, args=[other])
        loop.start()
        try:
            assert eventually(lambda: _is_busy(client))
            yield
        finally:
            client.script_kill()
            loop.join()


def _run_for_ever(client: Redis) -> None:
    with pytest.raises(ResponseError, match="Script killed"):
        client.eval("while true do end", 0)


def _is_busy(client: Redis) -> bool:
    try:
        return not client.ping()
    except ResponseError as error:
        return "BUSY" in str(error)


#: What makes the trouble, with which options of the server, and a word of what is said about it.
TROUBLES: dict[str, tuple[Callable[..., AbstractContextManager[None]], dict[str, Any], str]] = {
    "OOM": (configured, {"maxmemory": "1"}, "memory is full"),
    "READONLY": (replica, {}, "read-only replica"),
    "MASTERDOWN": (replica, {"replica-serve-stale-data": "no"}, "replica"),
    "NOREPLICAS": (configured, {"min-replicas-to-write": 1}, "too few of its replicas"),
    "MISCONF": (disk_full, {}, "could not save its data"),
    "BUSY": (busy, {}, "busy running a script"),
}


def write(client: Redis) -> None:
    with redis_errors():
        client.get("a")
        client.set("a", "b")


def awrite(_client: Redis | None = None) -> None:
    async def main() -> None:
        with redis_errors():
            await get_async_client().get("a")
            await get_async_client().set("a", "b")

    asyncio.run(main())


def run_script(client: Redis) -> None:
    TaskQueue().push(ECHO)


def run_transaction(client: Redis) -> None:
    with redis_errors(), client.pipeline(transaction=True) as pipe:
        pipe.srem("{a}b", "c")
        pipe.rpush("{a}d", "1")
        pipe.execute()


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_server_that_cannot_write_now_is_unavailable(own_server: EmbeddedServer, trouble: str) -> None:
    make, options, said = TROUBLES[trouble]
    acts = (write, awrite, run_script, run_transaction)
    with redis_at(own_server.url) as client:
        for act in acts:
            act(client)
        with make(client, **options):
            for act in acts:
                with pytest.raises(RedisRefused, match=said):
                    act(client)

        for act in acts:
            act(client)


#: What waits, and whether it asks again by itself, which a replica refuses.
WAITS: dict[str, tuple[Callable[[], object], bool]] = {
    "worker": (lambda: Consumer().wait(["default"], 60), False),
    "worker of logs": (lambda: Aggregation("places", job="a").consumer().wait(60), False),
    "mailbox": (lambda: Mailbox("joe").pull(wait=60), True),
    "result": (lambda: TaskQueue().wait_for(TaskQueue().push(ECHO), wait=60), True),
    "lock": (lambda: lock("a", blocking_timeout=60).acquire(), True),
    "permit": (lambda: Semaphore("a", limit=1).acquire(wait=60), True),
}


@pytest.mark.parametrize("name", WAITS)
def test_a_wait_ends_when_the_server_becomes_a_replica(own_server: EmbeddedServer, name: str) -> None:
    wait, asks_again = WAITS[name]
    with redis_at(own_server.url) as client, ThreadPoolExecutor() as pool:
        lock("a", timeout=60).acquire()
        Semaphore("a", limit=1).acquire()
        waiting = pool.submit(wait)
        assert eventually(lambda: client.info("clients")["blocked_clients"] == 1)

        with replica(client):
            if asks_again:
                with pytest.raises(RedisRefused, match="read-only replica"):
                    waiting.result()
            else:
                assert waiting.result() is False


def test_a_server_that_loads_its_data_is_unavailable(tmp_path: Path, program: Path | None) -> None:
    entry = b"*3\r\n$5\r\nRPUSH\r\n$4\r\nlist\r\n$1\r\n1\r\n"
    (tmp_path / "appendonly.aof").write_bytes(entry * 1_000_000)
    server = EmbeddedServer(tmp_path, server=program)
    starting = Thread(target=server.start)
    starting.start()
    try:
        with redis_at(server.url) as client:
            causes = dict(_causes(client, while_alive=starting))

            assert "now: it was started a moment ago and is loading its data" in causes[BusyLoadingError]
            assert client.llen("list") == 1_000_000
    finally:
        starting.join()
        server.stop()


def _causes(client: Redis, *, while_alive: Thread) -> Iterator[tuple[type[BaseException], str]]:
    """Why writing was impossible, and in which words."""
    while while_alive.is_alive():
        try:
            write(client)
        except RedisUnavailable as error:
            yield type(error.__cause__), str(error)


def test_a_missing_node_raises_unavailable(tmp_path: Path) -> None:
    with redis_at(f"unix://{tmp_path}/redis.sock"), pytest.raises(RedisUnavailable, match="does not answer"):
        TaskQueue().push(ECHO)
    with redis_at("redis://127.0.0.1:1"), pytest.raises(RedisUnavailable, match="does not answer"):
        TaskQueue().stats("default")


def test_a_wrong_password_is_unavailable(redis_cluster_server: ClusterServer) -> None:
    url = redis_cluster_server.url.replace("redis://:", "redis://:x")
    said = "does not accept the user name or password .*: .*(WRONGPASS|invalid username-password)"
    for options in ({}, CLUSTER):
        with pytest.raises(RedisRefused, match=said), redis_at(url, **options):
            TaskQueue().names()


@pytest.mark.slow
@pytest.mark.parametrize("act", [awrite, run_script])
@pytest.mark.parametrize("knows_it", [False, True], ids=["found without", "lost since"])
def test_a_cluster_without_its_slots_is_unavailable(
    own_cluster: ClusterServer, act: Callable[[Redis], None], knows_it: bool
) -> None:
    with redis_at("redis://127.0.0.1:1"), Redis.from_url(own_cluster.url) as node:
        if knows_it:
            with redis_at(own_cluster.url, **CLUSTER) as client:
                act(client)
        for slots in (range(8_000, 9_000), {*range(16_384)} - {*range(8_000, 9_000)}):
            node.execute_command("CLUSTER DELSLOTS", *slots)
            with pytest.raises(RedisUnavailable), redis_at(own_cluster.url, **CLUSTER) as client:
                act(client)


#: What is wrong with a URL with which nothing can work, the URL, and some words of what is said about it.
WRONG = {
    "scheme": ("http://joe:secret@localhost:6379/0", r"must begin with redis://"),
    "host": ("redis://joe:secret@[::1:6379/0", r"IPv6 address be in brackets"),
    "port": ("redis://:secret#@localhost", r"LOCATION is not the URL of a Redis server.*percent-encode"),
    "large number": ("{redis}?db=99", r"names a database that the server does not have"),
    "negative number": ("{redis}?db=-1", r"numbers as port and database"),
    "option": ("{redis}?sekret=1", r"unexpected keyword argument 'sekret'"),
    "decoded": ("{redis}?decode_responses=true", r"decode_responses is set"),
    "Redis 5": ("{old}5.0.14", r"Install Redis 6\.2 or newer"),
    "Redis 5 with a password": ("{old}5.0.14:secret@", r"Install Redis 6\.2 or newer"),
    "Redis 6.0": ("{old}6.0.16", r"Redis 6\.2|needs 6\.2 or newer"),
}


@pytest.fixture(params=WRONG)
def wrong(request: pytest.FixtureRequest, redis_server: EmbeddedServer) -> Iterator[tuple[str, str]]:
    """A URL with which nothing can work, and what is said about it."""
    url, said = WRONG[request.param]
    if not url.startswith("{old}"):
        yield url.replace("{redis}", redis_server.url), said
        return
    version, _, password = url.removeprefix("{old}").partition(":")
    with OldRedis(version) as server:
        yield server.url.replace("//", f"//:{password}") if password else server.url, said


def at(url: str, **options: Any) -> Any:
    cache = {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": url, "OPTIONS": options}
    return override_settings(CACHES={"default": cache}, COMPONENTS={})


ACTS: dict[str, Callable[[], object]] = {
    "command": lambda: write(get_client()),
    "awaited": awrite,
    "start": inspect_server,
    "script": lambda: TaskQueue().push(ECHO),
    "together": lambda: asyncio.run(Counter("sales").aupdate()),
}


def test_both_clients_and_pages_say_what_is_wrong(wrong: tuple[str, str], admin_client: Browser) -> None:
    url, said = wrong
    for act in [*ACTS.values()] * 2:  # not only the first time
        with at(url), pytest.raises(RedisUnsuitable, match=said) as told:
            act()
        assert "secret" not in str(told.value)
        assert isinstance(told.value, ImproperlyConfigured)
    with at(url):
        assert admin_client.get("/admin/components/queue/").status_code == 503


#: Runs each of its arguments as manage.py would, in a process of its own, and says how that has ended. Django starts
#: once for all of them, since that takes a second.
SEVERAL = """
import os, sys
import django
from django.core.management import execute_from_command_line
django.setup()
for command in sys.argv[1:]:
    if not os.fork():
        execute_from_command_line(["manage.py", *command.split()])
        sys.exit(0)
    _pid, status = os.wait()
    print("exit", os.waitstatus_to_exitcode(status), flush=True)
"""


@pytest.mark.slow
def test_commands_end_with_one_clear_sentence(wrong: tuple[str, str]) -> None:
    url, said = wrong
    commands = [
        f"{command} --skip-checks" for command in ("runworker --no-reload", "queues", "counters", "logreport")
    ]
    with Command(url, *commands, program=("-c", SEVERAL)) as command:
        assert command.exit_code() == 0

    lines = command.output.splitlines()
    assert len(lines) == 2 * len(commands)
    assert lines[1::2] == ["exit 2"] * len(commands)
    for line in lines[::2]:
        assert re.search(said, line)
        assert "secret" not in line
        assert "Traceback" not in line


@pytest.fixture
def guest(redis_server: EmbeddedServer) -> Iterator[str]:
    """The URL with a user who may use all commands, and none of the keys of this app."""
    with Redis.from_url(redis_server.url) as client:
        client.acl_setuser("guest", enabled=True, nopass=True, commands=["+@all"], keys=["others:*"])
        try:
            yield f"{redis_server.url}?username=guest&password=secret"
        finally:
            client.acl_deluser("guest")


def test_both_clients_say_that_a_user_has_not_the_permissions(guest: str) -> None:
    for name in ("command", "awaited", "script", "together"):
        with at(guest), pytest.raises(RedisUnsuitable, match="may not use a command, key or channel"):
            ACTS[name]()


@pytest.fixture
def foreign() -> Iterator[str]:
    """The URL of a web server."""

    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(4_096)
            self.request.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever).start()
        yield f"redis://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_both_clients_say_that_a_server_is_no_redis(foreign: str) -> None:
    for name in ("command", "awaited", "start"):
        with at(foreign), pytest.raises(RedisUnsuitable, match="does not speak the Redis protocol"):
            ACTS[name]()


@pytest.fixture
def encrypted(tmp_path: Path) -> Iterator[str]:
    """The address of a server that speaks TLS alone."""
    make_certificate(tmp_path / "crt", tmp_path / "key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "crt", tmp_path / "key")

    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError), context.wrap_socket(self.request, server_side=True) as wrapped:
                wrapped.recv(1)

    with ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_both_clients_say_soon_which_end_does_not_speak_tls(
    redis_cluster_server: ClusterServer, encrypted: str
) -> None:
    plain = redis_cluster_server.url.replace("redis://", "rediss://")
    for url, options, said in (
        (plain, {}, "does not speak TLS"),
        (plain, CLUSTER, "does not speak TLS"),
        (f"redis://{encrypted}", {}, "speaks TLS"),
    ):
        for name in ("command", "awaited"):
            began = time.monotonic()
            with at(url, **options), pytest.raises(RedisUnsuitable, match=said):
                ACTS[name]()
            assert time.monotonic() - began < 2


def test_a_cluster_has_no_second_database(redis_cluster_server: ClusterServer) -> None:
    with (
        at(f"{redis_cluster_server.url}/2", **CLUSTER),
        pytest.raises(RedisUnsuitable, match=r"names the database 2; .* only 0"),
    ):
        ACTS["command"]()
    with at(f"{redis_cluster_server.url}/2"), pytest.raises(RedisUnsuitable, match="a cluster has 0 only"):
        ACTS["command"]()


@pytest.mark.parametrize(
    "url",
    [
        *(f"redis://:Hunter{mark}77@host:6379/0" for mark in "/?#,["),
        *(
            "redis://:77#@host",
            "redis://:1?wo=77@host",
            "redis://:1?77@host",
            "unix://:Hun/77@/run/redis.sock",
        ),
        *("redis://:p@ss/77@host", "joe:Hunter77@host", "redis://:Hun,77://@host"),
    ],
)
def test_no_part_of_a_password_is_told(url: str) -> None:
    told = " ".join(mistakes({"LOCATION": url}))
    assert "percent-encode" in told
    assert "77" not in told
    assert "Hun" not in told


@pytest.mark.parametrize(
    ("location", "options"),
    [
        ("rediss://host?ssl_cert_reqs=CERT_NONE", {}),
        ("redis://host?ssl_cert_reqs=none", {}),
        ("redis://host?socket_timeout=abc", {}),
        ("redis://host", {"CONNECTION_POOL_KWARGS": {"ssl": True}}),
        ("redis://host", {"CONNECTION_POOL_KWARGS": {"max_connections": "50"}}),
        ("redis://host", {**CLUSTER, "CONNECTION_POOL_KWARGS": {"max_connections": "50"}}),
        ("redis://host,redis://other?foo=1", CLUSTER),
        ("redis://host", {"PARSER_CLASS": "redis.connection.HiredisParser"}),
        ("redis://host", {"SERIALIZER": "nowhere.Serializer"}),
        ("redis://host", {"SOCKET_TIMEOUT": "5"}),
        ("redis://host", {"CONNECTION_POOL_KWARGS": {"socket_timeout": "5"}}),
        ("redis://host", {"CONNECTION_POOL_KWARGS": "x"}),
        *(("redis://host", {name: "x.y.Z"}) for name in ("CLIENT_CLASS", "COMPRESSOR", "CONNECTION_FACTORY")),
        ("redis://host", {"REDIS_CLIENT_KWARGS": {"foo": 1}}),
    ],
)
def test_options_that_redis_py_refuses_are_told_before_it_does(
    location: str, options: dict[str, Any]
) -> None:
    [told] = mistakes({"LOCATION": location, "OPTIONS": options})
    assert "redis-py refuses" in told
    with at(location, **options), pytest.raises(RedisUnsuitable, match="redis-py refuses"):
        get_client()


def test_settings_that_can_work_are_left_alone() -> None:
    for location, options in (
        ("redis://localhost", {}),
        ("rediss://joe:secret@shop.example:6380/3?protocol=2", {}),
        ("unix:///run/redis.sock?db=1", {}),
        ("redis://a,redis://b/0", CLUSTER),
        ("shop://anywhere", {"CONNECTION_FACTORY": "redis.Redis"}),
        ("redis://shop/0", {"CONNECTION_POOL_KWARGS": {"decode_responses": False}}),
        ("redis://:a%23b@shop/0?password=p@ss", {"SOCKET_TIMEOUT": 5}),
        ("redis://a,redis://b/0", {**CLUSTER, "CONNECTION_POOL_KWARGS": {"require_full_coverage": True}}),
    ):
        assert list(mistakes({"LOCATION": location, "OPTIONS": options})) == []


_HELLO = (
    b"%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n6.0.16\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:3\r\n"
    b"$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n"
)
_IN_SCRIPT = (
    b"-ERR Error running script (call to f_0): @user_script:1: @user_script: 1: "
    b"Unknown Redis command called from Lua script\r\n"
)


class OldRedis(socketserver.ThreadingTCPServer):
    """with OldRedis("5.0.14") as server: redis_at(server.url)"""

    daemon_threads = True

    def __init__(self, version: str) -> None:
        self.version = version
        super().__init__(("127.0.0.1", 0), _Connection)

    @property
    def url(self) -> str:
        host, port = self.socket.getsockname()
        return f"redis://{host}:{port}"

    def __enter__(self) -> Self:
        Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.shutdown()
        self.server_close()

    def answer(self, command: list[bytes]) -> bytes:
        name, args = command[0].upper(), command[1:]
        if name == b"HELLO" and self.version >= "6":
            return _HELLO
        if name in (b"AUTH", b"SELECT"):
            return b"+OK\r\n"
        if name == b"PING":
            return b"+PONG\r\n"
        if name == b"INFO":
            text = b"# Server\r\nredis_version:%b\r\nredis_mode:standalone\r\n" % self.version.encode()
            return b"$%d\r\n%b\r\n" % (len(text), text)
        if name == b"EVALSHA":
            return b"-NOSCRIPT No matching script. Please use EVAL.\r\n"
        if name == b"EVAL":
            return _IN_SCRIPT
        told = b"".join(b" `%b`," % each for each in args)
        return b"-ERR unknown command `%b`, with args beginning with:%b \r\n" % (name, told)


class _Connection(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        assert isinstance(self.server, OldRedis)
        try:
            while line := self.rfile.readline():
                command = [self._part() for _ in range(int(line[1:]))]
                self.wfile.write(self.server.answer(command))
        except OSError:
            pass  # the client has gone

    def _part(self) -> bytes:
        length = int(self.rfile.readline()[1:])
        return self.rfile.read(length + 2)[:-2]
