"""What a rate limit lets through, in which order, and what a view says that is refused."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from asgiref.sync import iscoroutinefunction, sync_to_async
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory
from hypothesis import given, settings
from hypothesis import strategies as st
from redis import Redis

from components.exceptions import InvalidName, InvalidValue, TooFast
from components.services.rates import RateLimit, RateReader, limit
from components.services.rates.keys import RateKeys
from components.services.rates.view import limit_rate
from tests.support.rates import let_pass

# What the test itself takes does not count beside it.
PERIOD = 100_000
API = RateLimit("api", f"3/{PERIOD}s")


def is_counted(rate: RateLimit = API, key: object = "") -> bool:
    with suppress(TooFast):
        rate.acquire(key)
        return True
    return False


def ask(caller: str, rate: RateLimit = API) -> float:
    """Ask once, like a caller that waits; the seconds until its turn, in periods."""
    return round(rate.ask(caller=caller) / PERIOD, 2)


@given(st.lists(st.tuples(st.sampled_from((0, 0, 0, 0.3, 0.7, 1.3)), st.sampled_from("ab")), max_size=40))
@settings(max_examples=40)
def test_never_more_in_any_period_and_never_fewer(redis: Redis, steps: list[tuple[float, str]]) -> None:
    redis.flushdb()
    now, counted = 0.0, {"a": [], "b": []}
    for passed, key in steps:
        now += passed
        for each in "ab":
            let_pass(redis, passed * PERIOD, key=each)
        mine = counted[key] = [at for at in counted[key] if now - at < 0.999]

        assert is_counted(key=key) == (len(mine) < 3)
        if len(mine) < 3:
            mine.append(now)
        else:
            with pytest.raises(TooFast) as refused:
                API.acquire(key)
            assert refused.value.retry_after / PERIOD == pytest.approx(mine[0] + 1 - now, abs=0.01)


def test_many_at_once_share_one_limit(redis: Redis) -> None:
    rate = RateLimit("api", "50/h")
    with ThreadPoolExecutor(8) as threads:
        counted = list(threads.map(lambda _number: is_counted(rate), range(200)))

    assert sum(counted) == 50
    [info] = RateReader().page()
    assert (info, RateReader().count(), RateReader().find("other")) == (info, 1, None)
    assert (info.name, info.rate, info.made, info.waiting) == ("api", "50/h", 50, 0)


def test_names_and_keys_are_counted_apart(redis: Redis) -> None:
    for name, key in (("a/b", ""), ("a", "b/"), ("a%2Fb", ""), ("a", "b"), ("a/b", 7), ("a/b", "8")):
        assert is_counted(RateLimit(name, "1/h"), key)
    assert not is_counted(RateLimit("a/b", "1/h"), "7")


def test_those_who_wait_come_in_order_before_those_who_come_later(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limit, "KEPT", PERIOD / 10)
    assert all(is_counted() for _ in range(3))

    assert [ask(name) for name in "abcde"] == [1, 1, 1, 2, 2]
    assert ask("a") == 1  # which has its turn already
    let_pass(redis, PERIOD)
    assert not is_counted()
    assert [ask(name) for name in "ba"] == [0, 0]
    let_pass(redis, PERIOD / 5)  # c has died
    assert is_counted()
    assert RateReader().page()[0].waiting == 2
    let_pass(redis, PERIOD * 0.8)
    assert [ask(name) for name in "de"] == [0, 0]


def test_a_call_waits_for_its_turn_unless_that_takes_too_long(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []

    async def pause(client: Any, seconds: float) -> None:
        slept.append(seconds)
        let_pass(redis, seconds)

    monkeypatch.setattr(limit, "pause", pause)
    assert all(is_counted() for _ in range(3))

    with pytest.raises(TooFast):
        API.acquire(wait=PERIOD / 2)
    assert (slept, redis.exists(f"{RateKeys('api').places}/")) == ([], 0)
    asyncio.run(API.aacquire(wait=2 * PERIOD))  # the answer takes time itself

    assert slept == [pytest.approx(PERIOD, rel=0.01)]
    assert RateReader().page()[0].made == 4


def test_calls_that_a_clock_ahead_has_noted_count_from_now_on(redis: Redis) -> None:
    assert all(is_counted() for _ in range(3))
    let_pass(redis, -5 * PERIOD)

    assert not is_counted()
    let_pass(redis, PERIOD)
    assert is_counted()


@pytest.mark.parametrize(
    ("rate", "most", "period"),
    [("5/s", 5, 1), ("100/m", 100, 60), ("10/30s", 10, 30), ("2 / 2 days", 2, 172_800), ("9/hour", 9, 3_600)],
)
def test_a_rate_is_a_number_of_calls_in_a_period(rate: str, most: int, period: int) -> None:
    made = RateLimit("api", rate)
    assert (made.most, made.period) == (most, period)


@pytest.mark.parametrize(
    "rate", ["", "5", "0/s", "10001/s", "5/0s", "5/32d", "-1/s", "1.5/s", "5/w", None, 5]
)
def test_any_other_rate_is_refused(rate: Any) -> None:
    with pytest.raises(InvalidValue, match="100/m"):
        RateLimit("api", rate)


def test_a_limit_needs_a_name_and_a_key_that_is_not_too_long(redis: Redis) -> None:
    with pytest.raises(InvalidName):
        RateLimit("", "5/s")
    with pytest.raises(InvalidValue, match="501 characters"):
        API.acquire("x" * 501)


def hello(request: HttpRequest) -> HttpResponse:
    return HttpResponse("hello")


def request(user: int | None = None, address: str = "10.0.0.1") -> HttpRequest:
    made = RequestFactory().get("/", REMOTE_ADDR=address)
    made.user = SimpleNamespace(pk=user, is_authenticated=user is not None)

    async def auser() -> Any:
        return made.user

    made.auser = auser
    return made


@pytest.mark.parametrize("view", [hello, sync_to_async(hello)])
def test_a_view_refuses_each_who_asks_too_often(redis: Redis, view: Any) -> None:
    def ask(limited: Any, *args: Any) -> HttpResponse:
        answer = limited(request(*args))
        return asyncio.run(answer) if iscoroutinefunction(view) else answer

    limited = limit_rate(RateLimit("search", "2/m"))(view)
    everybody = limit_rate(RateLimit("all", "1/m"), by=lambda request: "")(view)

    assert [ask(limited, 7).status_code for _ in range(2)] == [200, 200]
    refused = ask(limited, 7)
    assert (refused.status_code, refused["Retry-After"]) == (429, "60")
    assert [ask(limited, *who).status_code for who in ((8,), (None,), (None, "10.0.0.2"))] == [200] * 3
    assert [ask(everybody, user).status_code for user in (7, 8)] == [200, 429]
