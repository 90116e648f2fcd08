"""
To list an item and to buy one, by three strategies; what is read and written is the same in all.

WATCH reads, and writes only if nobody else has written meanwhile: else it begins anew. The locks keep others out:
of the whole market, or of this one item. Who buys is told the price by the market, so a buyer need not be locked:
his funds change by HINCRBY, and he buys one thing at a time.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import Any

from redis import Redis
from redis.client import Pipeline
from redis.exceptions import WatchError

MARKET = "market:"
_LEASE = 10.0  # seconds


class TooLate(Exception):
    """The market has closed while somebody was still trying."""


def user(name: str) -> str:
    return f"users:{name}"


def inventory(name: str) -> str:
    return f"inventory:{name}"


class Strategy(ABC):
    """One participant's way. *deadline* is by the monotonic clock; TooLate is raised when it has passed."""

    def __init__(self, redis: Redis) -> None:
        self.redis = redis
        #: How often all had to be read again, since somebody else had written.
        self.retries = 0

    @abstractmethod
    def list_item(self, seller: str, item: str, price: int, deadline: float) -> bool:
        """Move *item* from the seller's inventory to the market; whether it was there."""

    @abstractmethod
    def buy(self, buyer: str, seller: str, item: str, deadline: float) -> bool:
        """Move it from the market to the buyer's inventory, and its price; whether it was there and affordable."""


class Watching(Strategy):
    """WATCH, MULTI and EXEC."""

    def list_item(self, seller: str, item: str, price: int, deadline: float) -> bool:
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


class MarketLock(Strategy):
    """Our lock, one for the whole market."""

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

    def _lock(self, seller: str, item: str, deadline: float) -> AbstractContextManager[Any]:
        from components.exceptions import LockNotAcquired
        from components.services.locks import lock

        patience = max(0.0, deadline - time.monotonic())
        return _or_too_late(
            lock(self._name(seller, item), timeout=_LEASE, blocking_timeout=patience), LockNotAcquired
        )

    def _name(self, seller: str, item: str) -> str:
        return "market"


class ItemLock(MarketLock):
    """Our lock, one for each item."""

    def _name(self, seller: str, item: str) -> str:
        return f"market:{item}.{seller}"


class _or_too_late:  # noqa: N801  (used as a function is)
    """Enter *lock*; TooLate where it raises *refusal*."""

    def __init__(self, lock: AbstractContextManager[Any], refusal: type[Exception]) -> None:
        self._lock, self._refusal = lock, refusal

    def __enter__(self) -> None:
        try:
            self._lock.__enter__()
        except self._refusal as error:
            raise TooLate from error

    def __exit__(self, *error: Any) -> None:
        self._lock.__exit__(*error)


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


STRATEGIES: dict[str, type[Strategy]] = {
    "WATCH": Watching,
    "lock on the market": MarketLock,
    "lock on the item": ItemLock,
}
