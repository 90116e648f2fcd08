"""Requests that wait: they are woken at once, limited in number, and end with their clients."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client
from django.test.utils import override_settings
from redis import Redis

from components.api import waiting
from components.embedded import EmbeddedServer
from components.services.chat import Chat
from components.services.mailboxes import Mailbox
from tests.api.serving import Site, serve
from tests.fixtures.api import Asker, problem
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("redis")

PULL = ("POST", "mailbox/pull", {"timeout": 50})


@pytest.fixture
def site(redis: Redis) -> Iterator[Site]:
    with serve() as site:
        yield site


def test_a_waiting_request_is_woken(site: Site) -> None:
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(site.ask, *PULL)
        assert eventually(lambda: waiting.waiters() == 1)
        Mailbox("joe").push("jill", "hello")

        status, told, headers = answer.result(20)
    assert (status, [each["text"] for each in told["messages"]]) == (200, ["hello"])
    assert "Retry-After" not in headers
    assert eventually(lambda: waiting.waiters() == 0)


def listening(client: Redis) -> set[str]:
    """Return the ids of the clients that listen to the server, those of other tests included."""
    return {each["id"] for each in client.client_list(_type="pubsub")}


def test_a_client_that_goes_away_frees_its_place(site: Site, redis_server: EmbeddedServer) -> None:
    with Redis.from_url(redis_server.url) as client:
        channels, listeners = set(client.pubsub_channels()), listening(client)
        with site.waiting(*PULL), site.waiting(*PULL, by="jill"):
            assert eventually(lambda: waiting.waiters() == 2)
            assert eventually(lambda: len(set(client.pubsub_channels()) - channels) == 2)
        assert eventually(lambda: waiting.waiters() == 0)
        assert eventually(lambda: len(listening(client) - listeners) == 1)

    # A request without a client must take no message.
    Mailbox("joe").push("jill", "hello")
    assert Mailbox("joe").info().handed_out == 0


def test_requests_above_the_limit_are_answered_at_once(redis: Redis) -> None:
    with serve(MAX_WAITERS=1) as site, site.waiting(*PULL):
        assert eventually(lambda: waiting.waiters() == 1)

        status, told, headers = site.ask(*PULL, by="jill")
        assert (status, told["messages"]) == (200, [])
        assert 3 <= int(headers["Retry-After"]) <= 8

        Mailbox("jill").push("joe", "hello")
        status, told, headers = site.ask(*PULL, by="jill")
        assert [each["text"] for each in told["messages"]] == ["hello"]
        assert "Retry-After" not in headers
    assert eventually(lambda: waiting.waiters() == 0)


def test_one_person_cannot_take_all_places(redis: Redis) -> None:
    chat = Chat.create("joe", members=["jill"])
    with serve(MAX_WAITERS_PER_PERSON=2) as site:
        cursor = site.ask("GET", "sync")[1]["cursor"]
        wait = ("GET", f"sync?cursor={cursor}&timeout=50")
        with site.waiting(*PULL), site.waiting(*wait):
            assert eventually(lambda: waiting.waiters() == 2)

            # A third tab works as under WSGI: it is answered at once.
            for ask, kept in ((wait, "chats"), (wait, "chats"), (PULL, "messages")):
                status, told, headers = site.ask(*ask)
                assert (status, told[kept]) == (200, [])
                assert 3 <= int(headers["Retry-After"]) <= 8
            # Other people wait as before.
            with site.waiting(*PULL, by="jill"):
                assert eventually(lambda: waiting.waiters() == 3)
            assert eventually(lambda: waiting.waiters() == 2)
            chat.send("jill", "hello")
            assert site.ask(*wait)[1]["chats"]
        assert eventually(lambda: waiting.waiters() == 0)
        assert not waiting._waiting


def test_waiting_requests_hold_no_thread_and_one_connection(site: Site, redis_server: EmbeddedServer) -> None:
    site.ask("GET", "mailbox")
    before = threading.active_count()
    with ExitStack() as stack, Redis.from_url(redis_server.url) as client:
        listeners = listening(client)
        for number in range(30):
            stack.enter_context(site.waiting(*PULL, by=f"person {number}"))
        assert eventually(lambda: waiting.waiters() == 30)
        assert eventually(lambda: threading.active_count() <= before)
        assert eventually(lambda: len(listening(client) - listeners) == 1)

        Mailbox("joe").push("jill", "hello")
        assert site.ask(*PULL)[1]["messages"]


@pytest.mark.django_db
def test_under_wsgi_no_request_waits() -> None:
    client = Client()
    client.force_login(User.objects.create_user("joe"))

    answer = client.post("/api/mailbox/pull", {"timeout": 50}, content_type="application/json")

    assert answer.json()["messages"] == []
    assert 3 <= int(answer["Retry-After"]) <= 8


@pytest.mark.django_db(transaction=True)
def test_a_waiting_request_holds_no_database_connection(joe: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []
    monkeypatch.setattr(type(connections["default"]), "close", lambda self: closed.append(self.alias))

    joe("POST", "mailbox/pull", {"timeout": 0.01})
    assert closed == ["default"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    "leave",
    [lambda joe: joe.client.logout(), lambda joe: User.objects.filter(pk=joe.id).update(is_active=False)],
)
def test_whoever_leaves_while_they_wait_is_told_nothing_more(joe: Asker, leave: Any) -> None:
    async def main() -> Any:
        asked = asyncio.create_task(joe.ask(*PULL))
        assert await asyncio.to_thread(eventually, lambda: waiting.waiters() == 1)
        await sync_to_async(leave)(joe)
        await Mailbox(joe.id).apush("jill", "secret")
        return await asked

    problem(async_to_sync(main)(), 401, "not-authenticated")
    assert Mailbox(joe.id).depth() == 1


def test_a_place_is_given_back_after_an_error() -> None:
    with override_settings(COMPONENTS={"MAX_WAITERS": 1}):
        for _ in range(3):
            with pytest.raises(ZeroDivisionError), waiting.place("joe"):
                1 / (waiting.waiters() - 1)
    assert waiting.waiters() == 0
