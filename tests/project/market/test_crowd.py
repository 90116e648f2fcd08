"""Many buy at once on a real PostgreSQL, each in a thread: what only rows that are locked keep apart."""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier, Event
from typing import Any

import environ
import pytest
from django.core.management import call_command
from django.db import connection, connections
from django.utils import timezone
from pytest_django import DjangoDbBlocker
from redis import Redis

from components.services.locks.named import key_of
from project.market import trading
from project.market.ledger import ListingClosed, Refusal
from project.market.models import FlashPurchase, FlashSale, Item, Listing, Player, Sale
from tests.project.market.conftest import player
from tests.support.postgres import PostgresServer
from tests.support.waiting import eventually

Run = Callable[..., Future[Any]]

STOCK, BUYERS = 7, [f"buyer{number}" for number in range(16)]


@pytest.fixture(scope="module")
def run(postgres_server: PostgresServer, django_db_blocker: DjangoDbBlocker) -> Iterator[Run]:
    """Call something in a thread: the database of all threads but this one is a PostgreSQL with the demo's tables."""
    found = environ.Env.db_url_config(postgres_server.new_database())

    def alone(act: Callable[..., Any], *args: Any) -> Any:
        try:
            return act(*args)
        finally:
            connection.close()

    with (
        django_db_blocker.unblock(),
        pytest.MonkeyPatch.context() as patch,
        ThreadPoolExecutor(len(BUYERS) * 2) as pool,
    ):
        patch.setitem(
            connections.settings, "default", {**connections.settings["default"], "OPTIONS": {}, **found}
        )
        pool.submit(alone, lambda: call_command("migrate", verbosity=0)).result()
        yield lambda act, *args: pool.submit(alone, act, *args)


def somebody_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])


def test_a_purchase_that_outlives_its_lock_ends_before_the_next_begins(redis: Redis, run: Run) -> None:
    is_paying, may_pay = Event(), Event()

    def offer() -> Listing:
        joe, _jack, _jill = map(player, ("joe", "jack", "jill"))
        return Listing.objects.create(item=Item.objects.create(name="Lamp", owner=joe), seller=joe, price=100)

    def stop(execute: Any, sql: str, *rest: Any) -> Any:
        if sql.startswith("INSERT"):
            is_paying.set()
            assert may_pay.wait(60)
        return execute(sql, *rest)

    def buy(name: str) -> None:
        trading.buy(Player.objects.get(user__username=name), listing.pk, 100)

    def buy_slowly(name: str) -> None:
        with connection.execute_wrapper(stop):
            buy(name)

    listing = run(offer).result()
    first = run(buy_slowly, "jack")
    assert is_paying.wait(60)
    assert redis.delete(key_of(f"item:{listing.item_id}"))  # its time is over
    second = run(buy, "jill")
    assert eventually(lambda: run(somebody_waits).result())
    may_pay.set()

    first.result(60)
    with pytest.raises(ListingClosed):
        second.result(60)
    assert [sale.buyer_id for sale in run(lambda: [*Sale.objects.all()]).result()] == [
        run(lambda: Item.objects.get(name="Lamp").owner_id).result()
    ]


def test_a_flash_sale_is_never_oversold(redis: Redis, run: Run) -> None:
    """Each tries twice at once, and may buy one."""
    together = Barrier(2 * len(BUYERS))

    def begin() -> None:
        now = timezone.now()
        times = {"opens_at": now, "ends_at": now + timedelta(days=1)}
        FlashSale.objects.create(slug="a", name="Sword", price=100, stock=STOCK, remaining=STOCK, **times)
        for name in BUYERS:
            player(name)

    def buy(name: str) -> str:
        buyer = Player.objects.get(user__username=name)
        together.wait(60)
        try:
            trading.buy_flash(buyer, "a", 100)
        except Refusal as refusal:
            return type(refusal).__name__
        return "bought"

    def audit() -> tuple[int, list[int], list[int], int]:
        buyers = Player.objects.filter(user__username__in=BUYERS)
        return (
            FlashSale.objects.get().remaining,
            sorted(FlashPurchase.objects.values_list("buyer", flat=True)),
            sorted(Item.objects.filter(name="Sword").values_list("owner", flat=True)),
            sum(1_000 - each.funds for each in buyers),
        )

    run(begin).result()
    outcomes = Counter(each.result(60) for each in [run(buy, name) for name in sorted(BUYERS * 2)])

    remaining, bought, owners, spent = run(audit).result()
    assert outcomes == {"bought": STOCK, "OneEach": STOCK, "SoldOut": 2 * (len(BUYERS) - STOCK)}
    assert len(set(bought)) == STOCK
    assert (remaining, owners, spent) == (0, bought, STOCK * 100)
