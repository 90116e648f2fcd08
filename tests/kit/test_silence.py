"""
A server that hangs is not asked again before it answers: one timeout for a process, and not one for each command.

Servers are stopped with SIGSTOP, as a machine that swaps or a disk that hangs stops them: connections stay, and the
kernel accepts new ones.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from django.core.cache import caches
from django.test import Client as Browser
from django.test.utils import override_settings
from redis import Redis
from redis.exceptions import ConnectionError

from components.embedded import EmbeddedServer
from components.exceptions import RedisUnavailable
from components.kit import silence
from components.kit.client import get_async_client, get_client
from components.kit.errors import redis_errors
from components.kit.silence import ServerSilent
from components.kit.worker.outage import Outage
from components.services.chat import Inbox
from components.services.counters import Counter
from components.services.queues import Consumer, TaskQueue
from components.testing import ClusterServer, redis_at
from tests.support.proxy import LossyProxy
from tests.support.queues import ECHO, claim
from tests.support.waiting import eventually

CLUSTER = {"CLIENT_CLASS": "components.cache.ClusterClient"}
TIMEOUT = 1.0  # seconds of the socket
AT_ONCE = 0.8  # seconds: less than one timeout, with room for a busy machine


@pytest.fixture(params=["unix socket", "TCP", "cluster"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EmbeddedServer]:
    """A server to stop."""
    program = request.config.getoption("--redis-server")
    if request.param == "cluster":
        made: EmbeddedServer = ClusterServer(tmp_path, server=program)
    else:
        made = EmbeddedServer(tmp_path, server=program, appendonly=False)
    with made as server:
        yield server


@pytest.fixture
def site(server: EmbeddedServer, request: pytest.FixtureRequest) -> Iterator[EmbeddedServer]:
    """The same as the project's Redis, with a short timeout."""
    if isinstance(server, ClusterServer):
        with redis_at(server.url, SOCKET_TIMEOUT=TIMEOUT, **CLUSTER):
            yield server
    elif "TCP" in request.node.name:
        with LossyProxy(server) as proxy, redis_at(proxy.url, SOCKET_TIMEOUT=TIMEOUT):
            yield server
    else:
        with redis_at(server.url, SOCKET_TIMEOUT=TIMEOUT):
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


def fails(act: Callable[[], object]) -> float:
    """The seconds after which *act* says that Redis is unavailable."""
    began = time.monotonic()
    with pytest.raises(RedisUnavailable, match="does not answer"):
        act()
    return time.monotonic() - began


def update() -> None:
    Counter("sales").update()


def aupdate() -> None:
    asyncio.run(Counter("sales").aupdate())


def push() -> None:
    TaskQueue().push(ECHO)


def read() -> None:
    TaskQueue().names()


def listen() -> None:
    with redis_errors():
        get_client().blpop(["list"], timeout=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("act", [update, aupdate, push, read, listen])
def test_a_server_that_hangs_costs_one_timeout_and_then_nothing(
    site: EmbeddedServer, act: Callable[[], None]
) -> None:
    act()
    with stopped(site):
        fails(act)

        assert max(fails(act) for _ in range(5)) < AT_ONCE


@pytest.mark.slow
def test_a_wait_for_news_from_a_hanging_server_lasts_one_timeout(site: EmbeddedServer) -> None:
    async def follow() -> None:
        await Inbox("ann").achanges({}, wait=20)

    async def main() -> None:
        took = []
        for _ in range(6):
            began = time.monotonic()
            with pytest.raises(RedisUnavailable, match="does not answer"):
                await follow()
            took.append(time.monotonic() - began)
        assert took[0] < TIMEOUT + silence._PATIENCE + AT_ONCE
        assert max(took[1:]) < AT_ONCE

    update()
    with stopped(site):
        asyncio.run(main())


@pytest.mark.slow
def test_a_discovery_of_one_thread_is_known_to_all_threads_and_loops(site: EmbeddedServer) -> None:
    update(), aupdate()
    with stopped(site):
        fails(update)

        with ThreadPoolExecutor(4) as pool:
            took = [pool.submit(fails, act) for act in (update, aupdate, push, aupdate)]
        assert max(each.result() for each in took) < AT_ONCE


@pytest.mark.slow
def test_a_discovery_of_one_loop_is_known_to_threads(site: EmbeddedServer) -> None:
    update(), aupdate()
    with stopped(site):
        fails(aupdate)

        assert fails(update) < AT_ONCE


@pytest.mark.slow
def test_threads_that_ask_at_once_wait_for_one_timeout_each(site: EmbeddedServer) -> None:
    update()
    with stopped(site), ThreadPoolExecutor(8) as pool:
        took = [each.result() for each in [pool.submit(fails, update) for _ in range(8)]]

        assert max(took) < 3 * (TIMEOUT + silence._PATIENCE)  # a call is three commands
        assert fails(update) < AT_ONCE


@pytest.mark.slow
@pytest.mark.parametrize("act", [update, aupdate])
def test_a_server_that_goes_on_is_asked_again_at_once(site: EmbeddedServer, act: Callable[[], None]) -> None:
    act()
    for _ in range(3):
        with stopped(site):
            fails(act)
        assert eventually(lambda: succeeds(act), within=1)


def succeeds(act: Callable[[], None]) -> bool:
    try:
        act()
    except RedisUnavailable:
        return False
    return True


@pytest.mark.slow
def test_a_server_that_hangs_and_then_dies_and_comes_back_is_asked_again(server: EmbeddedServer) -> None:
    kind = CLUSTER if isinstance(server, ClusterServer) else {}
    with redis_at(server.url, SOCKET_TIMEOUT=TIMEOUT, **kind):
        push()
        with stopped(server):
            fails(push)
            server.kill()
        assert fails(push) < 1
        server.start()

        assert eventually(lambda: succeeds(push), within=5)


def test_a_server_that_hangs_before_the_first_connection_is_found_out_too(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:  # it accepts nothing and answers nothing
        host, port = listener.getsockname()
        with redis_at(f"redis://{host}:{port}", SOCKET_TIMEOUT=TIMEOUT):
            fails(update)
            assert fails(update) < AT_ONCE
            assert fails(aupdate) < AT_ONCE


@pytest.mark.slow
@pytest.mark.parametrize("act", [update, aupdate])
def test_a_host_that_takes_no_connection_is_silent_until_it_does(act: Callable[[], None]) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener, ExitStack() as waiting:
        for _ in range(3):  # the kernel drops who comes after the first
            other = waiting.enter_context(socket.socket())
            other.setblocking(False)
            other.connect_ex(listener.getsockname())
        host, port = listener.getsockname()
        with redis_at(f"redis://{host}:{port}", SOCKET_TIMEOUT=TIMEOUT, SOCKET_CONNECT_TIMEOUT=TIMEOUT):
            fails(act)
            assert fails(update) < AT_ONCE
            assert fails(aupdate) < AT_ONCE
            assert is_silent(act)

            listener.close()  # so that who comes is refused

            assert eventually(lambda: not is_silent(act), within=3)


def is_silent(act: Callable[[], None]) -> bool:
    """Whether nothing is sent, since the server is known not to answer."""
    with pytest.raises(RedisUnavailable, match="does not answer") as error:
        act()
    return "Commands are not sent until it answers a probe" in str(error.value)


@pytest.mark.slow
def test_a_server_that_hangs_behind_a_full_queue_of_connections_is_silent(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """To be told that the queue is full is no sign of life."""
    program = request.config.getoption("--redis-server")
    with (
        EmbeddedServer(tmp_path, server=program, appendonly=False) as server,
        redis_at(server.url, SOCKET_TIMEOUT=TIMEOUT),
        ExitStack() as waiting,
    ):
        pool = get_client().connection_pool
        for connection in [pool.get_connection() for _ in range(4)]:
            pool.release(connection)
        with stopped(server):
            path = server.url.removeprefix("unix://").partition("?")[0]
            while True:
                other = waiting.enter_context(socket.socket(socket.AF_UNIX))
                other.setblocking(False)
                if other.connect_ex(path) == errno.EAGAIN:
                    break
            fails(listen)

            assert fails(listen) < AT_ONCE
            assert is_silent(listen)
        waiting.close()
        assert eventually(lambda: succeeds(listen), within=3)


@pytest.mark.slow
def test_it_is_said_what_is_the_matter_and_that_nothing_was_sent(server: EmbeddedServer) -> None:
    kind = CLUSTER if isinstance(server, ClusterServer) else {}
    with redis_at(server.url, SOCKET_TIMEOUT=TIMEOUT, **kind) as client:
        client.set("hits", 0)
        with stopped(server):
            fails(update)
            with pytest.raises(RedisUnavailable, match=r"has not answered for \d+ s"), redis_errors():
                get_client().incr("hits")

        assert eventually(lambda: succeeds(update), within=1)
        assert client.get("hits") == b"0"


# What makes nobody silent


@pytest.mark.slow
def test_a_blocking_command_of_ones_own_that_outlasts_the_socket_is_no_silence(site: EmbeddedServer) -> None:
    fails(lambda: blocks(5))

    update()
    aupdate()


def blocks(seconds: float) -> None:
    with redis_errors():
        get_client().blpop(["list"], timeout=seconds)


@pytest.mark.slow
def test_coroutines_that_block_disturb_nobody(site: EmbeddedServer) -> None:
    async def main() -> None:
        with redis_errors():
            waiting = [asyncio.create_task(get_async_client().blpop("list", 5)) for _ in range(3)]
            for _ in range(20):
                await Counter("sales").aupdate()
                await asyncio.sleep(0.05)
            ended = await asyncio.gather(*waiting, return_exceptions=True)
            assert not any(isinstance(each, ServerSilent) for each in ended)
            await Counter("sales").aupdate()

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


@pytest.mark.slow
def test_a_slow_script_is_no_silence_for_longer_than_it_runs(site: EmbeddedServer) -> None:
    update()
    source = "local n = redis.call('TIME')[1] + 3; while redis.call('TIME')[1] + 0 < n do end"
    with Redis.from_url(site.url, socket_timeout=10) as other:
        loop = threading.Thread(target=lambda: other.eval(source, 1, "a"))
        loop.start()
        assert eventually(lambda: not succeeds(update))
        loop.join()

        assert eventually(lambda: succeeds(update), within=1)


@pytest.mark.slow
def test_a_server_that_is_away_says_so_each_time(server: EmbeddedServer) -> None:
    kind = CLUSTER if isinstance(server, ClusterServer) else {}
    with redis_at(server.url, SOCKET_TIMEOUT=TIMEOUT, **kind):
        push()
        before = set(silence._silent)
        server.kill()
        for _ in range(2):
            fails(push)
        assert set(silence._silent) == before
        server.start()
        assert eventually(lambda: succeeds(push), within=5)


# Who uses it


@pytest.mark.slow
def test_pages_cost_nothing_while_redis_hangs(site: EmbeddedServer, admin_client: Browser) -> None:
    page = "/admin/components/queue/"
    assert admin_client.get(page).status_code == 200
    with stopped(site):
        admin_client.get(page)
        began = time.monotonic()
        assert admin_client.get(page).status_code == 503

        assert time.monotonic() - began < AT_ONCE


@pytest.mark.slow
def test_a_worker_goes_on_as_after_any_outage(site: EmbeddedServer) -> None:
    consumer, outage = Consumer(), Outage(10)
    assert not claim(consumer)
    with stopped(site):
        for _ in range(3):
            with pytest.raises(RedisUnavailable) as error:
                claim(consumer)
            assert 0 < outage.goes_on(error.value) <= 2  # it pauses between two tries
    assert eventually(lambda: succeeds(push), within=2)

    assert eventually(lambda: claims(consumer), within=2)


def claims(consumer: Consumer) -> bool:
    try:
        return bool(claim(consumer))
    except RedisUnavailable:
        return False


def test_connections_that_the_cache_has_made_before_are_guarded_too(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    program = request.config.getoption("--redis-server")
    with EmbeddedServer(tmp_path, server=program, appendonly=False) as server:
        cache = {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": f"{server.url}?db=0"}
        options = {"SOCKET_TIMEOUT": TIMEOUT}
        with override_settings(CACHES={"default": {**cache, "OPTIONS": options}}, COMPONENTS={}):
            caches["default"].set("a", 1)
            with stopped(server):
                fails(update)
                assert fails(update) < AT_ONCE


def test_another_cache_at_the_server_costs_nothing_either(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    program = request.config.getoption("--redis-server")
    with EmbeddedServer(tmp_path, server=program, appendonly=False) as server:
        options = {"CLIENT_CLASS": "components.cache.Client", "SOCKET_TIMEOUT": TIMEOUT}
        cache = {"BACKEND": "django_redis.cache.RedisCache", "OPTIONS": options}
        aliases = {
            "default": {**cache, "LOCATION": f"{server.url}?db=0"},
            "pages": {**cache, "LOCATION": f"{server.url}?db=1"},
        }
        with override_settings(CACHES=aliases, COMPONENTS={}):
            caches["pages"].set("a", 1)
            update()
            with stopped(server):
                fails(update)
                began = time.monotonic()
                for _ in range(5):
                    with pytest.raises(ConnectionError):
                        caches["pages"].get("a")
                assert time.monotonic() - began < AT_ONCE
            assert eventually(lambda: succeeds(update), within=1)
            assert caches["pages"].get("a") == 1


@pytest.mark.slow
def test_a_forked_process_finds_out_by_itself(server: EmbeddedServer) -> None:
    kind = CLUSTER if isinstance(server, ClusterServer) else {}
    with redis_at(server.url, SOCKET_TIMEOUT=TIMEOUT, **kind):
        update()
        with stopped(server):
            fails(update)
            assert silence._silent
            child = os.fork()
            if child == 0:
                os._exit(len(silence._silent))
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            assert fails(update) < AT_ONCE
