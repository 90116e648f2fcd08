"""
The market of the book by three strategies: WATCH, a lock for the market, and a lock for each item.

Data are stored as in the book: users are hashes, inventories are sets, the market is a ZSET of "item.seller" by
price. All strategies read and write the same data. WATCH writes only if nobody else has written since its reads;
otherwise it begins again. The locks keep others out of the whole market, or of this one item. The market has the
price, so no lock is needed for a buyer: their funds change by HINCRBY, and they buy one thing at a time.

Sellers list and buyers buy as fast as they can, for some seconds. So many items are listed beforehand that no buyer
ever finds the market empty. Afterwards each item must be in exactly one place, and the sum of money must be
unchanged.
"""

from __future__ import annotations

import math
import random
import time
from argparse import Namespace
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from redis import Redis
from redis.client import Pipeline
from redis.exceptions import WatchError

from benchmarks.figure import Panel, draw
from benchmarks.harness import PATIENCE, Bench, Crew, Rounds, Task, Turn, alternate, client
from benchmarks.report import middle, print_table, values
from components.exceptions import LockNotAcquired
from components.services.locks import lock

BUYERS = (1, 2, 4, 8, 16)
MARKET = "market:"
LEASE = 10.0  # seconds
# The following numbers are for each second of a turn, and more than any strategy achieves on machines that we have
# seen.
ON_SALE = 10_000  # items in the market at the beginning
IN_STOCK = 5_000  # items of each seller that are not listed yet
FUNDS = 10**9  # funds of each buyer, enough to never run out
PRICE = 97  # price of every item


class Inconsistent(Exception):
    """An item is in two places or in none, or the sum of money has changed, so the strategy is wrong."""


class TooLate(Exception):
    """The market has closed while a participant was still trying."""


def user(name: str) -> str:
    return f"users:{name}"


def inventory(name: str) -> str:
    return f"inventory:{name}"


class Watching:
    """
    A participant who uses WATCH, MULTI and EXEC. *deadline* is by the monotonic clock; after it, TooLate is raised.
    """

    def __init__(self, redis: Redis) -> None:
        self.redis = redis
        #: How often everything had to be read again because somebody else had written.
        self.retries = 0

    def list_item(self, seller: str, item: str, price: int, deadline: float) -> bool:
        """Move *item* from the seller's inventory to the market; return whether the seller had it."""
        with self.redis.pipeline() as pipe:
            while True:
                try:
                    pipe.watch(inventory(seller))
                    if not pipe.sismember(inventory(seller), item):
                        return False
                    pipe.multi()
                    _write_listing(pipe, seller, item, price)
                    return True
                except WatchError:
                    self._again(deadline)

    def buy(self, buyer: str, seller: str, item: str, deadline: float) -> bool:
        """Move *item* to the buyer's inventory, and pay for it; return whether it was for sale and affordable."""
        with self.redis.pipeline() as pipe:
            while True:
                try:
                    pipe.watch(MARKET, user(buyer))
                    price: Any = pipe.zscore(MARKET, f"{item}.{seller}")
                    funds: Any = pipe.hget(user(buyer), "funds")
                    if price is None or price > int(funds):
                        return False
                    pipe.multi()
                    _write_purchase(pipe, buyer, seller, item, int(price))
                    return True
                except WatchError:
                    self._again(deadline)

    def _again(self, deadline: float) -> None:
        self.retries += 1
        if time.monotonic() > deadline:
            raise TooLate


class MarketLock(Watching):
    """Uses our lock, one for the whole market."""

    def list_item(self, seller: str, item: str, price: int, deadline: float) -> bool:
        with self._lock(seller, item, deadline):
            if not self.redis.sismember(inventory(seller), item):
                return False
            with self.redis.pipeline() as pipe:
                _write_listing(pipe, seller, item, price)
            return True

    def buy(self, buyer: str, seller: str, item: str, deadline: float) -> bool:
        with self._lock(seller, item, deadline), self.redis.pipeline() as pipe:
            pipe.zscore(MARKET, f"{item}.{seller}")
            pipe.hget(user(buyer), "funds")
            price, funds = pipe.execute()
            if price is None or price > int(funds):
                return False
            _write_purchase(pipe, buyer, seller, item, int(price))
            return True

    @contextmanager
    def _lock(self, seller: str, item: str, deadline: float) -> Iterator[None]:
        held = lock(
            self._name(seller, item), timeout=LEASE, blocking_timeout=max(0.0, deadline - time.monotonic())
        )
        try:
            held.__enter__()
        except LockNotAcquired as error:
            raise TooLate from error
        try:
            yield
        finally:
            held.__exit__(None, None, None)

    def _name(self, seller: str, item: str) -> str:
        return "market"


class ItemLock(MarketLock):
    """Uses our lock, one for each item."""

    def _name(self, seller: str, item: str) -> str:
        return f"market:{item}.{seller}"


def _write_listing(pipe: Pipeline, seller: str, item: str, price: int) -> None:
    pipe.zadd(MARKET, {f"{item}.{seller}": price})
    pipe.srem(inventory(seller), item)
    pipe.execute()


def _write_purchase(pipe: Pipeline, buyer: str, seller: str, item: str, price: int) -> None:
    pipe.hincrby(user(seller), "funds", price)
    pipe.hincrby(user(buyer), "funds", -price)
    pipe.sadd(inventory(buyer), item)
    pipe.zrem(MARKET, f"{item}.{seller}")
    pipe.execute()


STRATEGIES: dict[str, type[Watching]] = {
    "WATCH": Watching,
    "lock on the market": MarketLock,
    "lock on the item": ItemLock,
}


def run(bench: Bench, crew: Crew, options: Namespace) -> None:
    names = [name for name in STRATEGIES if options.only is None or name in options.only]
    days = {
        buyers: alternate(
            f"{buyers} buyers",
            names,
            options.rounds,
            lambda name: open_market(bench, crew, name, options.sellers, buyers, options.seconds),  # noqa: B023
        )
        for buyers in BUYERS
    }
    print_table(
        ["strategy", "buyers", "bought/s", "slowest to fastest", "listed/s", "retries", "ms per purchase"],
        (
            [name if buyers == BUYERS[0] else "", str(buyers), *_cells(rounds[name])]
            for name in names
            for buyers, rounds in days.items()
        ),
    )
    if options.figure:
        panels = [
            Panel("Purchases per second", _curves(days, names, "bought", 1)),
            Panel("Milliseconds per purchase", _curves(days, names, "latency", 1e3)),
        ]
        Path(options.figure).write_text(draw(panels))


def _cells(turns: list[Turn]) -> Iterator[str]:
    bought = values(turns, "bought")
    yield _short(middle(turns, "bought"))
    yield f"{_short(min(bought))} to {_short(max(bought))}"
    yield _short(middle(turns, "listed"))
    yield _short(middle(turns, "retries"))
    yield _short(middle(turns, "latency") * 1e3)


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == 0 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def _curves(
    days: dict[int, Rounds], names: list[str], key: str, factor: float
) -> dict[str, list[tuple[int, float]]]:
    return {
        name: [(buyers, middle(rounds[name], key) * factor) for buyers, rounds in days.items()]
        for name in names
    }


class _Done(NamedTuple):
    count: int
    retries: int
    spent: float


def open_market(bench: Bench, crew: Crew, strategy: str, sellers: int, buyers: int, seconds: float) -> Turn:
    """
    Open the market once. Raises Stuck, and Inconsistent.

    Rates are per second. Retries and seconds are per purchase, including attempts that failed.
    """
    bench.clear()
    _fill(bench.redis, sellers, buyers, seconds)
    before = _all_there_is(bench.redis)
    done = crew.do(
        *(Task(_sell, (strategy, f"seller{number}", seconds)) for number in range(sellers)),
        *(Task(_buy, (strategy, f"buyer{number}", seconds)) for number in range(buyers)),
    )
    if (after := _all_there_is(bench.redis)) != before:
        raise Inconsistent(f"{strategy}: items and money were {before}, and are {after}.")
    bought = sum(one.count for one in done[sellers:])
    return {
        "bought": bought / seconds,
        "listed": sum(one.count for one in done[:sellers]) / seconds,
        "retries": sum(one.retries for one in done[sellers:]) / max(1, bought),
        "latency": sum(one.spent for one in done[sellers:]) / max(1, bought),
    }


def _fill(redis: Redis, sellers: int, buyers: int, seconds: float) -> None:
    in_stock, on_sale = math.ceil(IN_STOCK * seconds), math.ceil(ON_SALE * seconds)
    for number in range(sellers):
        seller = f"seller{number}"
        redis.hset(user(seller), mapping={"name": seller, "funds": 0})
        redis.sadd(inventory(seller), *(f"new{number}-{item}" for item in range(in_stock)))
    for number in range(buyers):
        buyer = f"buyer{number}"
        redis.hset(user(buyer), mapping={"name": buyer, "funds": FUNDS})
    redis.zadd(MARKET, {f"old{item}.seller{item % sellers}": PRICE for item in range(on_sale)})


def _all_there_is(redis: Redis) -> tuple[int, int]:
    """Return the items, each in one place, and the sum of the money."""
    items = redis.zcard(MARKET) + sum(redis.scard(key) for key in redis.scan_iter(inventory("*")))
    return items, sum(int(redis.hget(key, "funds") or 0) for key in redis.scan_iter(user("*")))


def _sell(name: str, seller: str, seconds: float) -> Generator[None, None, _Done]:
    way, redis = _ready(name), client()
    stock = [item.decode() for item in redis.smembers(inventory(seller))]
    yield
    return _trade(way, seconds, (partial(way.list_item, seller, item, PRICE) for item in stock))


def _buy(name: str, buyer: str, seconds: float) -> Generator[None, None, _Done]:
    way, redis = _ready(name), client()
    yield
    return _trade(way, seconds, (partial(way.buy, buyer, *choice) for choice in _choices(redis)))


def _ready(name: str) -> Watching:
    """Return the strategy, after a first use with an item that does not exist."""
    way = STRATEGIES[name](client())
    way.buy("nobody", "nobody", f"nothing{random.random()}", time.monotonic() + PATIENCE)
    way.retries = 0
    return way


def _choices(redis: Redis) -> Iterator[tuple[str, str]]:
    """Yield random sellers and items of the market; this search is not part of a purchase."""
    while True:
        item, _, seller = redis.zrandmember(MARKET).decode().rpartition(".")
        yield seller, item


def _trade(way: Watching, seconds: float, trades: Iterator[Callable[[float], bool]]) -> _Done:
    """Trade again and again until the market closes."""
    deadline, count, spent = time.monotonic() + seconds, 0, 0.0
    for trade in trades:
        if (began := time.monotonic()) >= deadline:
            return _Done(count, way.retries, spent)
        with suppress(TooLate):
            count += trade(deadline)
        spent += time.monotonic() - began
    raise IndexError(
        "A seller's stock has run out, because this machine is faster than expected. Raise IN_STOCK."
    )
