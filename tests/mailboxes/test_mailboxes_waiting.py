"""Waiting for mail, with threads and with coroutines: it ends when mail comes, or with patience."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from redis import Redis

from components.kit.news import channel
from components.services.mailboxes import Mailbox, Mails
from tests.support.mailboxes import texts
from tests.support.waiting import eventually


@pytest.fixture
def mailbox(redis: Redis) -> Mailbox:
    return Mailbox("jack")


def is_blocked(redis: Redis) -> bool:
    return bool(redis.info("clients")["blocked_clients"])


def listeners(redis: Redis, name: str) -> int:
    [(_, count)] = redis.pubsub_numsub(channel("mailbox", name))
    return int(count)


def test_mail_ends_the_wait_of_a_thread(mailbox: Mailbox, redis: Redis) -> None:
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(mailbox.pull, wait=60)
        assert eventually(lambda: is_blocked(redis))
        mailbox.push("jill", "one")

        mails = waiting.result(20)

    assert texts(mails) == ["one"]
    assert not mails[0].is_again


def test_mail_that_is_there_is_not_waited_for(mailbox: Mailbox) -> None:
    mailbox.push("jill", "one")

    assert texts(mailbox.pull(wait=1e9)) == ["one"]
    assert texts(asyncio.run(mailbox.apull(wait=1e9))) == ["one"]


def test_patience_ends(mailbox: Mailbox) -> None:
    assert mailbox.pull(wait=0.02) == []
    assert asyncio.run(mailbox.apull(wait=0.02)) == []


@pytest.mark.parametrize("is_erased", [False, True])
def test_what_is_left_of_the_stream_does_not_end_a_wait(
    mailbox: Mailbox, redis: Redis, is_erased: bool
) -> None:
    mailbox.push("jill", "one")
    [mail] = mailbox.pull()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(mailbox.pull, after=mail.id, wait=60)
        assert eventually(lambda: is_blocked(redis))
        if is_erased:
            mailbox.erase()
        mailbox.push("jill", "two")

        assert texts(waiting.result(20)) == ["two"]


def test_coroutines_wait_for_news_on_one_connection(redis: Redis) -> None:
    names = [f"person:{number}" for number in range(20)]

    async def scene() -> list[Mails]:
        async with asyncio.timeout(20):
            waiting = [asyncio.ensure_future(Mailbox(name).apull(wait=60)) for name in names]
            while not all([await asyncio.to_thread(listeners, redis, name) for name in names]):
                await asyncio.sleep(0.005)
            subscribed = [client for client in redis.client_list() if int(client["sub"]) > 0]
            assert len(subscribed) == 1
            for name in names:
                await Mailbox(name).apush("jill", name)
            return await asyncio.gather(*waiting)

    assert [texts(mails) for mails in asyncio.run(scene())] == [[name] for name in names]


def test_mail_that_comes_after_the_last_look_is_not_missed(
    mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is pushed between the look that finds nothing and the waiting."""
    look = mailbox._pull

    async def look_and_push(*asked: object) -> Mails:
        mails = await look(*asked)  # type: ignore[arg-type]
        if not mails:
            monkeypatch.setattr(mailbox, "_pull", look)
            await mailbox.apush("jill", "one")
        return mails

    monkeypatch.setattr(mailbox, "_pull", look_and_push)

    async def scene() -> Mails:
        async with asyncio.timeout(20):
            return await mailbox.apull(wait=1e9)

    assert texts(asyncio.run(scene())) == ["one"]


def test_a_coroutine_that_waits_can_be_cancelled(mailbox: Mailbox, redis: Redis) -> None:
    async def scene() -> None:
        waiting = asyncio.ensure_future(mailbox.apull(wait=1e9))
        while not await asyncio.to_thread(listeners, redis, "jack"):
            await asyncio.sleep(0.005)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await mailbox.apush("jill", "one")
        assert [mail.is_again for mail in await mailbox.apull()] == [False]

    asyncio.run(scene())
