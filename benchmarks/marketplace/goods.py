"""
A market, filled, with its sellers and buyers: as many of either, as fast as they can, for some seconds.

All is in Redis as in the book: users are hashes, inventories sets, the market is a ZSET of "item.seller" by price.
Enough is listed before that no buyer ever finds the market empty. Afterwards each item must be in one
place, and all money must still be there.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from redis import Redis

from benchmarks.bench import PATIENCE, Bench
from benchmarks.crew import Crew, Task, client
from benchmarks.marketplace.strategies import MARKET, STRATEGIES, Strategy, TooLate, inventory, user

# For each second of a turn, more than any strategy gets done on any machine that we have seen:
_ON_SALE = 10_000  # items in the market at the beginning
_IN_STOCK = 5_000  # items of each seller that are not yet listed
_FUNDS = 10**9  # of each buyer: nobody runs out
_PRICE = 97  # of every item


class Inconsistent(Exception):
    """An item is in two places or in none, or money has come from nowhere: the strategy is no good."""


@dataclass(frozen=True)
class Day:
    """What a turn sold; rates are per second, times in seconds."""

    bought: float
    listed: float
    #: For each purchase: how often a buyer began anew, and how long it took, what led to nothing included.
    retries: float
    latency: float


@dataclass(frozen=True)
class _Done:
    count: int
    retries: int
    spent: float


def open_market(bench: Bench, crew: Crew, strategy: str, sellers: int, buyers: int, seconds: float) -> Day:
    """One turn. Raises Stuck, and Inconsistent."""
    bench.redis.flushall()
    _fill(bench.redis, sellers, buyers, seconds)
    before = _all_there_is(bench.redis)
    done = crew.do(
        [
            *(Task(_sell, (strategy, f"seller{number}", seconds)) for number in range(sellers)),
            *(Task(_buy, (strategy, f"buyer{number}", seconds)) for number in range(buyers)),
        ]
    )
    if (after := _all_there_is(bench.redis)) != before:
        raise Inconsistent(f"{strategy}: items and money were {before}, and are {after}.")
    bought = sum(one.count for one in done[sellers:])
    return Day(
        bought=bought / seconds,
        listed=sum(one.count for one in done[:sellers]) / seconds,
        retries=sum(one.retries for one in done[sellers:]) / max(1, bought),
        latency=sum(one.spent for one in done[sellers:]) / max(1, bought),
    )


def _fill(redis: Redis, sellers: int, buyers: int, seconds: float) -> None:
    in_stock, on_sale = math.ceil(_IN_STOCK * seconds), math.ceil(_ON_SALE * seconds)
    for number in range(sellers):
        seller = f"seller{number}"
        redis.hset(user(seller), mapping={"name": seller, "funds": 0})
        redis.sadd(inventory(seller), *(f"new{number}-{item}" for item in range(in_stock)))
    for number in range(buyers):
        buyer = f"buyer{number}"
        redis.hset(user(buyer), mapping={"name": buyer, "funds": _FUNDS})
    redis.zadd(MARKET, {f"old{item}.seller{item % sellers}": _PRICE for item in range(on_sale)})


def _all_there_is(redis: Redis) -> tuple[int, int]:
    """Items, each in one place, and money."""
    items = redis.zcard(MARKET) + sum(redis.scard(key) for key in redis.scan_iter(inventory("*")))
    return items, sum(int(redis.hget(key, "funds") or 0) for key in redis.scan_iter(user("*")))


def _sell(name: str, seller: str, seconds: float) -> Generator[None, None, _Done]:
    way, redis = _ready(name), client()
    stock = [item.decode() for item in redis.smembers(inventory(seller))]
    yield
    return _trade(way, seconds, (partial(way.list_item, seller, item, _PRICE) for item in stock))


def _buy(name: str, buyer: str, seconds: float) -> Generator[None, None, _Done]:
    way, redis = _ready(name), client()
    yield
    return _trade(way, seconds, (partial(way.buy, buyer, *choice) for choice in _choices(redis)))


def _ready(name: str) -> Strategy:
    """The strategy, after a first use in this process: of an item that does not exist."""
    way = STRATEGIES[name](client())
    way.buy("nobody", "nobody", f"nothing{random.random()}", time.monotonic() + PATIENCE)
    way.retries = 0
    return way


def _choices(redis: Redis) -> Iterator[tuple[str, str]]:
    """Sellers and items, any of the market; to look around is no part of a purchase."""
    while True:
        item, _, seller = redis.zrandmember(MARKET).decode().rpartition(".")
        yield seller, item


def _trade(way: Strategy, seconds: float, trades: Iterator[Callable[[float], bool]]) -> _Done:
    """One after the other until the market closes."""
    deadline, count, spent = time.monotonic() + seconds, 0, 0.0
    for trade in trades:
        if (began := time.monotonic()) >= deadline:
            return _Done(count, way.retries, spent)
        with suppress(TooLate):
            count += trade(deadline)
        spent += time.monotonic() - began
    raise IndexError("A seller's stock has run out: this machine is faster than _IN_STOCK allows for.")
