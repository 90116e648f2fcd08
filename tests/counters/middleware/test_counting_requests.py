"""Requests are counted by view and status, with their times, and never suffer from it."""

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest, HttpResponse
from django.test import AsyncClient, Client
from django.test.utils import override_settings
from django.urls import include, path
from redis import Redis

from components import middleware
from components.middleware import CountRequestsMiddleware
from components.services.counters import Counter, CounterReader, Histogram, Ranked, buffer, flush

COUNTING = "components.middleware.CountRequestsMiddleware"


def view(request: HttpRequest, status: int = 200) -> HttpResponse:
    return HttpResponse(status=status)


async def aview(request: HttpRequest) -> HttpResponse:
    return HttpResponse()


def fail(request: HttpRequest) -> HttpResponse:
    raise LookupError("An error that the view does not handle.")


def unnamed(request: HttpRequest) -> HttpResponse:
    return HttpResponse()


def leave(request: HttpRequest) -> HttpResponse:
    raise SystemExit


async def hang(request: HttpRequest) -> HttpResponse:
    raise asyncio.CancelledError


shop = ([path("list/", view, name="list")], "shop")
urlpatterns = [
    path("status/<int:status>/", view, name="status"),
    path("async/", aview, name="async"),
    path("fail/", fail, name="fail"),
    path("leave/", leave, name="leave"),
    path("hang/", hang, name="hang"),
    path("unnamed/", unnamed),
    path("shop/", include(shop)),
]


@pytest.fixture(autouse=True)
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(buffer, "INTERVAL", 3_600.0)
    with override_settings(
        ROOT_URLCONF=__name__, MIDDLEWARE=[COUNTING, "django.middleware.common.CommonMiddleware"]
    ):
        yield


def counted() -> dict[str, int]:
    """What is counted of requests, without the times."""
    flush()
    names = [info.name for info in CounterReader().page(limit=1_000)]
    return {name: Counter(name).get(86_400).total for name in sorted(names) if "-us" not in name}


def test_requests_are_counted_by_view_and_status(redis: Redis) -> None:
    client = Client(raise_request_exception=False)
    for address in ("/status/200/", "/status/204/", "/status/301/", "/status/404/", "/status/503/"):
        client.get(address)
    for address in ("/fail/", "/unnamed/", "/shop/list/", "/nothing/", "/shop/list"):
        client.get(address)

    assert counted() == {
        "requests": 10,
        "requests-2xx": 4,
        "requests-2xx:shop:list": 1,
        "requests-2xx:status": 2,
        f"requests-2xx:{__name__}.unnamed": 1,
        "requests-3xx": 2,
        "requests-3xx:middleware": 1,
        "requests-3xx:status": 1,
        "requests-4xx": 2,
        "requests-4xx:404": 1,
        "requests-4xx:status": 1,
        "requests-5xx": 2,
        "requests-5xx:fail": 1,
        "requests-5xx:status": 1,
        "requests:404": 1,
        "requests:fail": 1,
        "requests:middleware": 1,
        "requests:shop:list": 1,
        "requests:status": 5,
        f"requests:{__name__}.unnamed": 1,
    }
    assert CounterReader().top("requests", 1) == [Ranked("requests:status", 5)]


def test_requests_of_asgi_are_counted(redis: Redis) -> None:
    async def ask() -> None:
        client = AsyncClient()
        await asyncio.gather(*(client.get("/async/") for _ in range(9)), client.get("/status/200/"))

    asyncio.run(ask())

    found = counted()
    assert (found["requests"], found["requests:async"], found["requests:status"]) == (10, 9, 1)


def test_requests_that_are_broken_off_are_counted(redis: Redis) -> None:
    """As by the timeout of a server, and by a client that goes away."""
    with pytest.raises(SystemExit):
        Client().get("/leave/")
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(AsyncClient().get("/hang/"))

    found = counted()
    assert (found["requests-4xx:leave"], found["requests-4xx:hang"], found["requests-4xx"]) == (1, 1, 2)


def test_the_time_is_until_the_view_has_answered(monkeypatch: pytest.MonkeyPatch, redis: Redis) -> None:
    clock = iter([1_000_000, 8_500_000])
    monkeypatch.setattr(middleware, "perf_counter_ns", lambda: next(clock))
    Client().get("/status/200/")
    flush()

    assert Counter("requests-us").get(86_400).total == 7_500
    assert Counter("requests-us:status").get(86_400).total == 7_500
    assert CounterReader().histograms(["requests-us:status"], 60) == {
        "requests-us:status": Histogram.of([7_500])
    }


def test_the_names_are_bounded(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(middleware, "_MAX_VIEWS", 3)
    counting = CountRequestsMiddleware(lambda request: HttpResponse())
    for name in ["a", "b", "c" * 600, "d", "e", "a"]:
        request: Any = SimpleNamespace(resolver_match=SimpleNamespace(view_name=name))
        counting(request)

    assert {name: total for name, total in counted().items() if name.startswith("requests:")} == {
        "requests:a": 2,
        "requests:b": 1,
        f"requests:{'c' * 400}": 1,
        "requests:others": 2,
    }


@override_settings(COMPONENTS={"COUNT_REQUESTS": False})
def test_it_can_be_turned_off() -> None:
    with pytest.raises(MiddlewareNotUsed, match="COUNT_REQUESTS"):
        CountRequestsMiddleware(lambda request: HttpResponse())

    assert Client().get("/status/204/").status_code == 204
    assert not buffer._buffer.counts
