"""
A server that hangs is not asked again before it answers: one timeout for a process, and not one for each command.

Servers are stopped with SIGSTOP, as a machine that swaps or a disk that hangs stops them: connections stay, and the
kernel accepts new ones.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from django.core.cache import caches
from django.test.utils import override_settings
from redis.exceptions import ConnectionError

from components.embedded import EmbeddedServer
from components.exceptions import RedisUnavailable
from components.kit import silence
from components.kit.client import get_async_client, get_client
from components.kit.errors import redis_errors
from components.kit.silence import ServerSilent
from components.services.chat import Inbox
from components.services.counters import Counter
from components.services.queues import TaskQueue
from components.testing import ClusterServer, redis_at
from tests.support.proxy import LossyProxy
from tests.support.queues import ECHO
from tests.support.waiting import eventually

CLUSTER = {"CLIENT_CLASS": "components.cache.ClusterClient"}
TIMEOUT = 1.0  # seconds of the socket


@pytest.fixture(params=["unix socket", "cluster"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EmbeddedServer]:
    """A server to stop, which is the project's Redis, with a short timeout."""
    program = request.config.getoption("--redis-server")
    if request.param == "cluster":
        made: EmbeddedServer = ClusterServer(tmp_path, server=program)
    else:
        made = EmbeddedServer(tmp_path, server=program, appendonly=False)
    kind = CLUSTER if request.param == "cluster" else {}
    with made as server, redis_at(server.url, SOCKET_TIMEOUT=TIMEOUT, **kind):
        yield server


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


def listen() -> None:
    with redis_errors():
        get_client().blpop(["list"], timeout=0.01)


def follow() -> None:
    asyncio.run(Inbox("ann").achanges({}, wait=20))


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("act", [update, aupdate, push, listen])
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
def test_nothing_was_sent_to_a_silent_server(server: EmbeddedServer) -> None:
    get_client().set("hits", 0)
    with stopped(server):
        is_silent(update)
        with pytest.raises(RedisUnavailable, match=r"has not answered for \d+ s"), redis_errors():
            get_client().incr("hits")

    assert eventually(lambda: succeeds(update), within=5)
    assert get_client().get("hits") == b"0"


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


def test_a_reply_that_was_lost_is_no_silence(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    program = request.config.getoption("--redis-server")
    with (
        EmbeddedServer(tmp_path, server=program, appendonly=False) as server,
        LossyProxy(server) as proxy,
        redis_at(proxy.url, SOCKET_TIMEOUT=TIMEOUT),
    ):
        push()
        proxy.lose_replies(to="EVALSHA", silently=True)

        push()  # it is sent once more

        assert proxy.lost == 1
        assert TaskQueue().stats("default").ready == 2


@pytest.mark.parametrize("kind", [{}, {"CLIENT_CLASS": "components.cache.Client"}], ids=["django's", "ours"])
def test_caches_that_were_used_before_are_guarded_too(
    tmp_path: Path, request: pytest.FixtureRequest, kind: dict[str, str]
) -> None:
    program = request.config.getoption("--redis-server")
    with EmbeddedServer(tmp_path, server=program, appendonly=False) as server:
        options = {"SOCKET_TIMEOUT": TIMEOUT, **kind}
        cache = {"BACKEND": "django_redis.cache.RedisCache", "OPTIONS": options}
        aliases = {
            name: {**cache, "LOCATION": f"{server.url}?db={number}"}
            for number, name in enumerate(("default", "pages"))
        }
        with override_settings(CACHES=aliases, COMPONENTS={}):
            for name in aliases:
                caches[name].set("a", 1)
            update()
            with stopped(server):
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
