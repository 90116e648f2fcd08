"""
The listener for news: one connection for all who wait in a loop, confirmed before they look; nobody sleeps through
what happens, not even while Redis is away.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import pytest
from redis import Redis

from components.embedded import EmbeddedServer
from components.exceptions import RedisUnavailable
from components.kit import pubsub as news
from components.kit.client import get_async_client
from components.kit.pubsub import Interest, Listener
from components.testing import ClusterServer, redis_at
from tests.kit.test_client import CLUSTER, connections, no_warnings
from tests.support.proxy import LossyProxy
from tests.support.waiting import eventually


@pytest.fixture(params=["plain", "cluster"])
def redis_mode(request: pytest.FixtureRequest) -> str:
    """The kit itself runs on both kinds of servers in each run."""
    return str(request.param)


PATIENCE = 20  # seconds: nothing takes that long unless it is broken


async def publish(name: str, text: str = "x") -> None:
    await get_async_client().eval("return redis.call('PUBLISH', ARGV[1], ARGV[2])", 1, "{a}", name, text)


def subscriptions(server: EmbeddedServer) -> set[bytes]:
    with Redis.from_url(server.url) as client:
        return set(client.pubsub_channels())


async def in_time(condition: Callable[[], object]) -> None:
    assert await asyncio.to_thread(eventually, condition)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Subscriptions that go at once, and a connection that is soon found dead."""
    monkeypatch.setattr(news, "LINGER", 0.0)
    monkeypatch.setattr(news, "_TICK", 0.1)


def run(main: Callable[[], Awaitable[None]]) -> None:
    async def at_most() -> None:
        async with asyncio.timeout(60):
            await main()

    with no_warnings():
        asyncio.run(at_most())


def test_news_that_came_while_nobody_waited_are_told_once(redis: Redis) -> None:
    async def main() -> None:
        listener = Listener.of_the_loop()
        async with listener.interest(["a", "b"]) as interest, listener.interest(["c"]) as last:
            for name in ("a", "b", "a", "c"):
                await publish(name)
            assert await last.wait(PATIENCE) == {"c"}
            assert await interest.wait(PATIENCE) == {"a", "b"}
            assert await interest.wait(0.01) == set()

    run(main)


def test_a_thousand_who_wait_share_one_connection(redis: Redis, server: EmbeddedServer) -> None:
    async def main() -> None:
        listener = Listener.of_the_loop()
        await get_async_client().get("{a}")
        before = len(connections(server))
        async with AsyncExitStack() as stack:
            interests: list[Interest] = await asyncio.gather(
                *(stack.enter_async_context(listener.interest([f"own {n}", "all"])) for n in range(1_000))
            )
            assert len(connections(server)) == before + 1
            assert len(subscriptions(server)) == 1_001

            await publish("all")
            assert await asyncio.gather(*(each.wait(PATIENCE) for each in interests)) == [{"all"}] * 1_000
            await publish("own 7")
            assert await interests[7].wait(PATIENCE) == {"own 7"}
            assert await interests[8].wait(0) == set()

    run(main)


def test_a_subscription_stays_for_a_quick_return_and_goes_later(
    redis: Redis, server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(news, "_TICK", 0.05)

    async def main() -> None:
        listener = Listener.of_the_loop()
        async with listener.interest(["a"]), listener.interest(["b"]):
            pass
        assert subscriptions(server) == {b"a", b"b"}

        async with listener.interest(["a"]) as interest:
            monkeypatch.setattr(news, "LINGER", 0.0)
            await in_time(lambda: subscriptions(server) == {b"a"})
            await publish("a")
            assert await interest.wait(PATIENCE) == {"a"}
        await in_time(lambda: listener._task is None)
        assert subscriptions(server) == set()

        async with listener.interest(["a"]) as interest:
            await publish("a")
            assert await interest.wait(PATIENCE) == {"a"}

    run(main)


def test_a_cancelled_call_disturbs_no_other(redis: Redis, server: EmbeddedServer) -> None:
    async def enter(number: int) -> None:
        async with Listener.of_the_loop().interest([f"cancelled {number}"]) as interest:
            await interest.wait(PATIENCE)

    async def main() -> None:
        async with Listener.of_the_loop().interest(["a"]) as interest:
            before = connections(server)
            for steps in range(40):
                task = asyncio.create_task(enter(steps))
                for _ in range(steps):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
                assert task.cancelled()
            assert connections(server) >= before
            await publish("a")
            assert await interest.wait(PATIENCE) == {"a"}
            assert await interest.wait(0.01) == set()

    run(main)


def test_a_lost_connection_is_made_anew_and_everybody_is_told(redis: Redis, server: EmbeddedServer) -> None:
    async def main() -> None:
        listener, others = Listener.of_the_loop(), connections(server)
        async with listener.interest(["a", "b"]) as first, listener.interest(["c"]) as second:
            with Redis.from_url(server.url) as client:
                [own] = {int(each["id"]) for each in client.client_list(_type="pubsub")} - others
                assert client.client_kill_filter(_id=str(own)) == 1

            heard: set[str] = set()
            while heard != {"a", "b"}:
                heard |= await first.wait(PATIENCE)
            assert await second.wait(PATIENCE) == {"c"}

            await publish("c")
            assert await second.wait(PATIENCE) == {"c"}

    run(main)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["own_server", "own_cluster"])
def test_a_wait_outlasts_an_outage_and_a_new_call_reports_it(
    kind: str, request: pytest.FixtureRequest
) -> None:
    server: EmbeddedServer = request.getfixturevalue(kind)

    async def main() -> None:
        async with Listener.of_the_loop().interest(["a"]) as interest:
            waiting = asyncio.create_task(interest.wait(PATIENCE))
            await asyncio.to_thread(server.kill)
            with pytest.raises(RedisUnavailable, match="does not answer"):
                async with Listener.of_the_loop().interest(["b"]):
                    pass
            with pytest.raises(RedisUnavailable):
                await interest.add(["c"])
            assert not waiting.done()

            await asyncio.to_thread(server.start)
            assert await waiting
            with Redis.from_url(server.url) as client:  # connections of the project's have to fail first
                client.publish("a", "x")
            assert "a" in await interest.wait(PATIENCE)

    with redis_at(server.url, **(CLUSTER if kind == "own_cluster" else {})):
        run(main)


@pytest.mark.usefixtures("quick")
def test_a_connection_that_died_silently_is_found_dead(own_server: EmbeddedServer) -> None:
    async def main(proxy: LossyProxy) -> None:
        async with Listener.of_the_loop().interest(["a"]) as interest:
            proxy.lose_replies(to="PING", silently=True)
            assert await interest.wait(PATIENCE) == {"a"}  # it has another connection
            assert proxy.lost == 1
            await publish("a")
            assert await interest.wait(PATIENCE) == {"a"}

    with LossyProxy(own_server) as proxy, redis_at(proxy.url):
        run(lambda: main(proxy))


def test_a_confirmation_that_was_lost_is_asked_for_again(own_server: EmbeddedServer) -> None:
    async def main(proxy: LossyProxy) -> None:
        proxy.lose_replies(to="SUBSCRIBE")
        with pytest.raises(RedisUnavailable):
            async with Listener.of_the_loop().interest(["a"]):
                pass
        async with Listener.of_the_loop().interest(["a"]) as interest:
            await publish("a")
            assert "a" in await interest.wait(PATIENCE)

    with LossyProxy(own_server) as proxy, redis_at(proxy.url):
        run(lambda: main(proxy))


def test_a_forbidden_channel_is_an_error_of_the_caller(redis: Redis, server: EmbeddedServer) -> None:
    if isinstance(server, ClusterServer):
        return
    redis.execute_command("ACL", "SETUSER", "reader", "on", ">secret", "~*", "+@all", "resetchannels", "&a")

    async def main() -> None:
        async with Listener.of_the_loop().interest(["a"]) as interest:
            with pytest.raises(Exception, match=r"permissions to access (one of the channels|a channel)"):
                async with Listener.of_the_loop().interest(["b"]):
                    pass
            assert await interest.wait(PATIENCE) == {"a"}
            await publish("a")
            assert await interest.wait(PATIENCE) == {"a"}

    with redis_at(server.url, USERNAME="reader", PASSWORD="secret"):
        run(main)


@pytest.mark.parametrize("protocol", [2, 3])
def test_it_understands_both_protocols(redis: Redis, server: EmbeddedServer, protocol: int) -> None:
    async def main() -> None:
        async with Listener.of_the_loop().interest(["ä"]) as interest:
            await publish("ä")
            assert await interest.wait(PATIENCE) == {"ä"}

    pool = {"protocol": protocol}
    kind = CLUSTER if isinstance(server, ClusterServer) else {}
    with redis_at(server.url, CONNECTION_POOL_KWARGS=pool, **kind):
        run(main)
