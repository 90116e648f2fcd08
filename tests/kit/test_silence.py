"""
A server that hangs is not asked again before it answers: one timeout for a process, and not one for each command.

Servers are stopped with SIGSTOP, as a machine that swaps or a disk that hangs stops them: connections stay, and the
kernel accepts new ones.
"""

import asyncio
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from django.core.cache import caches
from django.test.utils import override_settings
from redis import Redis
from redis.exceptions import ConnectionError, RedisError

from components.doctor.server import examine_server
from components.embedded import EmbeddedServer, find_server
from components.exceptions import RedisUnavailable
from components.kit import silence
from components.kit.client import get_async_client, get_client
from components.kit.errors import redis_errors
from components.kit.silence import ServerSilent
from components.services.chat import Inbox
from components.services.counters import Counter
from components.services.mailboxes import Mailbox
from components.services.queues import TaskQueue
from components.testing import ClusterServer, _free_port, redis_at
from tests.support.proxy import LossyProxy
from tests.support.queues import ECHO
from tests.support.waiting import eventually

CLUSTER = {"CLIENT_CLASS": "components.cache.ClusterClient"}
TIMEOUT = 1.0  # seconds of the socket


@pytest.fixture(params=["own_server", "own_cluster"])
def server(request: pytest.FixtureRequest) -> Iterator[EmbeddedServer]:
    """A server to stop, which is the project's Redis, with a short timeout."""
    made: EmbeddedServer = request.getfixturevalue(request.param)
    kind = CLUSTER if isinstance(made, ClusterServer) else {}
    with redis_at(made.url, SOCKET_TIMEOUT=TIMEOUT, **kind):
        yield made


@contextmanager
def stopped(server: EmbeddedServer) -> Iterator[None]:
    assert server.pid
    os.kill(server.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):  # killed meanwhile
            os.kill(server.pid, signal.SIGCONT)


def is_silent(act: Callable[[], object]) -> bool:
    """Return whether *act* sends nothing, since the server is known not to answer. Redis is unavailable to it."""
    with pytest.raises(RedisUnavailable) as error:
        act()
    return "not sent until it answers a probe" in str(error.value)


def succeeds(act: Callable[[], object]) -> bool:
    try:
        act()
    except RedisUnavailable:
        return False
    return True


def update() -> None:
    Counter("sales").update()


def aupdate() -> None:
    asyncio.run(Counter("sales").aupdate())


def push() -> None:
    TaskQueue().push(ECHO)


def follow() -> None:
    asyncio.run(Inbox("ann").achanges({}, wait=20))


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("act", [update, aupdate, push])
def test_a_server_that_hangs_costs_one_timeout_and_then_nothing(
    server: EmbeddedServer, act: Callable[[], None]
) -> None:
    act()
    for _ in range(2):
        with stopped(server):
            is_silent(act)
            assert all(is_silent(act) for _ in range(5))
            # All other threads and loops know it, too.
            with ThreadPoolExecutor(4) as pool:
                assert all(pool.map(is_silent, [update, aupdate, push]))
                assert not pool.submit(succeeds, follow).result()
        assert eventually(lambda: succeeds(act), within=5)


@pytest.mark.slow
@pytest.mark.long
def test_a_server_that_hangs_and_then_dies_and_comes_back_is_asked_again(server: EmbeddedServer) -> None:
    push()
    with stopped(server):
        is_silent(push)
        server.kill()
    assert not succeeds(push)
    server.start()
    assert eventually(lambda: succeeds(push), within=5)

    # One that is away is not silent.
    before = set(silence._silent)
    server.kill()
    assert not any(is_silent(push) for _ in range(2))
    assert set(silence._silent) == before
    server.start()
    assert eventually(lambda: succeeds(push), within=5)


def test_a_server_that_hangs_before_the_first_connection_is_found_out_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:  # it accepts nothing and answers nothing
        host, port = listener.getsockname()
        with redis_at(f"redis://{host}:{port}", SOCKET_TIMEOUT=TIMEOUT):
            is_silent(update)
            assert is_silent(update)
            assert is_silent(aupdate)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("act", [update, aupdate])
def test_a_host_that_takes_no_connection_is_silent_until_it_does(act: Callable[[], None]) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener, ExitStack() as waiting:
        for _ in range(3):  # the kernel drops who comes after the first
            other = waiting.enter_context(socket.socket())
            other.setblocking(False)
            other.connect_ex(listener.getsockname())
        host, port = listener.getsockname()
        with redis_at(f"redis://{host}:{port}", SOCKET_TIMEOUT=TIMEOUT, SOCKET_CONNECT_TIMEOUT=TIMEOUT):
            is_silent(act)
            assert is_silent(act)

            listener.close()  # so that who comes is refused

            assert eventually(lambda: not is_silent(act), within=10)


@pytest.mark.slow
@pytest.mark.long
def test_a_blocking_command_of_ones_own_that_outlasts_the_socket_is_no_silence(
    server: EmbeddedServer,
) -> None:
    async def main() -> None:
        with redis_errors():
            waiting = [asyncio.create_task(get_async_client().blpop("list", 5)) for _ in range(3)]
            for _ in range(20):
                await Counter("sales").aupdate()
                await asyncio.sleep(0.05)
            ended = await asyncio.gather(*waiting, return_exceptions=True)
            assert not any(isinstance(each, ServerSilent) for each in ended)
            await Counter("sales").aupdate()

    with pytest.raises(RedisUnavailable), redis_errors():
        get_client().blpop(["list"], timeout=5)
    update()
    asyncio.run(main())


def test_a_reply_that_was_lost_is_no_silence(own_server: EmbeddedServer) -> None:
    with LossyProxy(own_server) as proxy, redis_at(proxy.url, SOCKET_TIMEOUT=TIMEOUT):
        push()
        proxy.lose_replies(to="EVALSHA", silently=True)

        push()  # it is sent once more

        assert proxy.lost == 1
        assert TaskQueue().stats("default").ready == 2


@pytest.mark.parametrize("kind", [{}, {"CLIENT_CLASS": "components.cache.Client"}], ids=["django's", "ours"])
def test_caches_that_were_used_before_are_guarded_too(
    own_server: EmbeddedServer, kind: dict[str, str]
) -> None:
    options = {"SOCKET_TIMEOUT": TIMEOUT, **kind}
    cache = {"BACKEND": "django_redis.cache.RedisCache", "OPTIONS": options}
    aliases = {
        name: {**cache, "LOCATION": f"{own_server.url}?db={number}"}
        for number, name in enumerate(("default", "pages"))
    }
    with override_settings(CACHES=aliases, COMPONENTS={}):
        for name in aliases:
            caches[name].set("a", 1)
        update()
        with stopped(own_server):
            is_silent(update)
            assert is_silent(update)
            if kind:
                with pytest.raises(ConnectionError, match="not sent until it answers a probe"):
                    caches["pages"].get("a")
        assert eventually(lambda: succeeds(update), within=5)
        assert caches["pages"].get("a") == 1


@pytest.mark.slow
@pytest.mark.long
def test_a_forked_process_finds_out_by_itself(server: EmbeddedServer) -> None:
    update()
    with stopped(server):
        is_silent(update)
        assert silence._silent
        child = os.fork()
        if child == 0:
            os._exit(len(silence._silent))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert is_silent(update)


ROOT = Path(__file__).resolve().parents[2]
SHOP = "redis://shop/0"
OURS = {
    "CLIENT_CLASS": "components.cache.SentinelClient",
    "CONNECTION_FACTORY": "components.cache.SentinelConnectionFactory",
}
#: As a project wrote them that knows only django-redis.
THEIRS = {
    "CLIENT_CLASS": "django_redis.client.SentinelClient",
    "CONNECTION_FACTORY": "django_redis.pool.SentinelConnectionFactory",
}
DOWN_AFTER = 1_000  # milliseconds until Sentinels take a master for dead
SOON = 20  # seconds: ten times a timeout of a Sentinel and one of the master; with retries it is a minute


@dataclass
class Site:
    """A master, a replica and three Sentinels."""

    servers: list[EmbeddedServer]
    sentinels: list[subprocess.Popen[bytes]]
    ports: list[int]

    def addresses(self) -> list[tuple[str, int]]:
        return [("127.0.0.1", port) for port in self.ports]

    def master(self) -> EmbeddedServer:
        """The server that the last Sentinel takes for the master."""
        with Redis(port=self.ports[-1]) as client:
            _host, port = client.sentinel_get_master_addr_by_name("shop")
        [found] = [each for each in self.servers if each._options["port"] == str(port)]
        return found


def stop(pid: int | None) -> None:
    assert pid
    os.kill(pid, signal.SIGSTOP)


@pytest.fixture
def site(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Site]:
    program = request.config.getoption("--redis-server") or find_server()
    with ExitStack() as stack:
        servers = []
        for number in range(2):
            options = {"port": str(_free_port()), "bind": "127.0.0.1", "protected-mode": "no"}
            folder = tmp_path / f"redis-{number}"
            servers.append(EmbeddedServer(folder, server=program, appendonly=False, options=options))
        for each in servers:
            each.start()
            stack.callback(each.kill)
        with Redis(port=int(servers[1]._options["port"])) as replica:
            replica.replicaof("127.0.0.1", servers[0]._options["port"])
        ports = [_free_port() for _ in range(3)]
        sentinels = [stack.enter_context(sentinel_of(program, tmp_path, port, servers[0])) for port in ports]
        for each in sentinels:
            stack.callback(each.kill)
        assert eventually(lambda: all(map(_is_ready, ports)))
        yield Site(servers, sentinels, ports)


def sentinel_of(program: Path, folder: Path, port: int, master: EmbeddedServer) -> subprocess.Popen[bytes]:
    own = folder / f"sentinel-{port}"
    own.mkdir()
    config = own / "sentinel.conf"
    config.write_text(
        f"port {port}\nbind 127.0.0.1\nprotected-mode no\ndir {own}\n"
        f"sentinel monitor shop 127.0.0.1 {master._options['port']} 2\n"
        f"sentinel down-after-milliseconds shop {DOWN_AFTER}\nsentinel failover-timeout shop 3000\n"
    )
    return subprocess.Popen(
        [program, config, "--sentinel"], stdout=subprocess.DEVNULL, start_new_session=True
    )


def _is_ready(port: int) -> bool:
    """Whether a Sentinel knows the others, and the replica."""
    with suppress(RedisError), Redis(port=port) as client:
        found = client.sentinel_master("shop")
        return found["num-other-sentinels"] == 2 and found["num-slaves"] == 1
    return False


def increase() -> int:
    with redis_errors():
        return int(get_client().incr("hits"))


def aincrease() -> int:
    async def main() -> int:
        with redis_errors():
            return int(await get_async_client().incr("hits"))

    return asyncio.run(main())


ACTS = pytest.mark.parametrize("act", [increase, aincrease])
KINDS = pytest.mark.parametrize("kind", [OURS, THEIRS], ids=["ours", "theirs"])


def seconds(act: Callable[[], object]) -> float:
    began = time.monotonic()
    act()
    return time.monotonic() - began


@KINDS
@ACTS
def test_a_server_that_is_no_sentinel_is_passed_over(
    tmp_path: Path, program: Path | None, act: Callable[[], int], kind: dict[str, str]
) -> None:
    """Redis itself, and what does not speak its protocol."""
    port, options = _free_port(), {"port": str(_free_port()), "bind": "127.0.0.1", "protected-mode": "no"}
    folder = tmp_path / "redis"
    with (
        EmbeddedServer(folder, server=program, appendonly=False, options=options) as server,
        HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as web,
        sentinel_of(program or find_server(), tmp_path, port, server) as sentinel,
        ExitStack() as stack,
    ):
        stack.callback(sentinel.kill)
        Thread(target=web.serve_forever, daemon=True).start()
        stack.callback(web.shutdown)
        wrong = [("127.0.0.1", int(options["port"])), web.server_address[:2]]
        with (
            redis_at(f"{SHOP}?client_name={port}a", SENTINELS=wrong, **kind),
            pytest.raises(RedisUnavailable, match=r"No master found for 'shop'.*unknown command"),
        ):
            act()
        with redis_at(f"{SHOP}?client_name={port}b", SENTINELS=[*wrong, ("127.0.0.1", port)], **kind):
            assert eventually(lambda: _succeeds(act, []))
            said = [each.msg for each in examine_server() if each.id == "components.W128"]
            assert len(said) == len(wrong)


@pytest.mark.slow
@pytest.mark.long
@KINDS
@ACTS
def test_the_host_of_the_master_and_of_the_first_sentinel_hang_together(
    site: Site, act: Callable[[], int], kind: dict[str, str]
) -> None:
    url = f"{SHOP}?client_name={site.ports[0]}"
    with redis_at(url, SENTINELS=site.addresses(), SOCKET_TIMEOUT=1, **kind):
        act()
        old = site.master()
        stop(old.pid)
        stop(site.sentinels[0].pid)

        took = []
        assert eventually(lambda: _succeeds(act, took), within=60, pause=0.1)

        assert site.master() is not old
        assert max(took) < SOON  # no call waits for retries, before, during and after the failover
        assert min(seconds(act) for _ in range(5)) < 1


@pytest.mark.slow
@pytest.mark.long
def test_a_waiting_pull_hears_the_new_master_of_a_failover(site: Site) -> None:
    url = f"{SHOP}?client_name={site.ports[0]}"
    with redis_at(url, SENTINELS=site.addresses(), **OURS), ThreadPoolExecutor() as pool:
        increase()
        old = site.master()
        waiting = pool.submit(lambda: Mailbox("joe").pull(wait=60))
        with Redis(port=int(old._options["port"])) as client:
            assert eventually(lambda: client.info("clients")["blocked_clients"] == 1)
            with Redis(port=site.ports[0]) as sentinel:
                sentinel.execute_command("SENTINEL FAILOVER", "shop")
            assert eventually(lambda: client.info("replication")["role"] == "slave", within=30)
        assert eventually(lambda: _succeeds(lambda: Mailbox("joe").push("jill", "hello"), []), within=30)

        assert [mail.text for mail in waiting.result()] == ["hello"]


def _succeeds(act: Callable[[], object], took: list[float]) -> bool:
    began = time.monotonic()
    try:
        act()
    except RedisUnavailable:
        return False
    finally:
        took.append(time.monotonic() - began)
    return True
