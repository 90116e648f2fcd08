"""
A crowd at the market: what the processes do that trade on one real database at once. See main().

    prepare         create the tables, three players and their listings, a flash sale and its visitors; say
                    {listing: seller}
    trade ORDERS    ORDERS is JSON, [[buyer, listing, price], ...], or the key of a flash sale for the listing: each
                    in a thread of its own, all at once after a line on stdin; say what came of each
    stall ORDER N   one order, by a process that stops itself (SIGSTOP) before the N-th statement of it
    audit           say who has how much, who owns what, and what was sold
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from threading import Barrier
from typing import Any

import psutil
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from project.market import trading
from project.market.ledger import Refusal
from project.market.models import FlashPurchase, FlashSale, Item, Listing, Player, Sale
from tests.support.waiting import eventually

PRICE = 100
FUNDS = 1_000
FLASH, STOCK = "2026-11-21-1", 10
VISITORS = [f"visitor{number}" for number in range(24)]

ROOT = Path(__file__).resolve().parents[3]
START = "import django; django.setup(); from tests.project.market.crowd import main; main()"


Order = tuple[str, int | str, int]
Listings = dict[int, str]  # with their sellers

NOWHERE = "unix:///a-market-is-prepared-without-redis"


def prepare() -> Listings:
    call_command("migrate", verbosity=0)
    listings = {}
    for name in ("joe", "jack", "jill"):
        player = Player.objects.create(
            user=User.objects.create(username=name, email=f"{name}@fakegame.example"), funds=FUNDS
        )
        for number in range(8):
            item = Item.objects.create(name=f"{name}'s {number}", owner=player)
            listings[Listing.objects.create(item=item, seller=player, price=PRICE).pk] = name
    now = timezone.now()
    times = {"opens_at": now, "ends_at": now + timedelta(days=1)}
    FlashSale.objects.create(slug=FLASH, name="Sword", price=PRICE, stock=STOCK, remaining=STOCK, **times)
    Player.objects.bulk_create(
        Player(user=user, funds=FUNDS)
        for user in User.objects.bulk_create(User(username=name) for name in VISITORS)
    )
    return listings


def trade(orders: list[Order]) -> list[str]:
    trading.PATIENCE = 60  # however slow the machine: who gives up tells nothing of who may buy
    barrier = Barrier(len(orders))
    players = {player.user.username: player for player in Player.objects.select_related("user")}
    connection.close()

    def order(name: str, what: int | str, price: int) -> str:
        barrier.wait()
        try:
            if isinstance(what, str):
                trading.buy_flash(players[name], what, price)
            else:
                trading.buy(players[name], what, price)
        except Refusal as refusal:
            return type(refusal).__name__
        finally:
            connection.close()
        return "bought"

    say("ready")
    sys.stdin.readline()
    with ThreadPoolExecutor(len(orders)) as pool:
        return list(pool.map(order, *zip(*orders, strict=True)))


def stall(order: Order, number: int) -> str:
    name, listing_id, price = order
    assert isinstance(listing_id, int)
    player = Player.objects.get(user__username=name)
    left = number

    def stop(execute: Any, *statement: Any) -> Any:
        nonlocal left
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGSTOP)
        return execute(*statement)

    with connection.execute_wrapper(stop):
        try:
            trading.buy(player, listing_id, price)
        except Refusal as refusal:
            return type(refusal).__name__
    return "bought"


def audit() -> dict[str, Any]:
    visitors = Player.objects.filter(user__username__in=VISITORS)
    return {
        "funds": {str(player): player.funds for player in Player.objects.exclude(pk__in=visitors)},
        "flash": {
            "remaining": FlashSale.objects.get().remaining,
            "buyers": sorted(str(each.buyer) for each in FlashPurchase.objects.select_related("buyer__user")),
            "owners": sorted(str(item.owner) for item in Item.objects.filter(owner__in=visitors)),
            "spent": len(VISITORS) * FUNDS - sum(player.funds for player in visitors),
        },
        "owners": {item.pk: str(item.owner) for item in Item.objects.select_related("owner__user")},
        "sold": [
            {"listing": sale.listing_id, "item": sale.listing.item_id, "buyer": str(sale.buyer)}
            for sale in Sale.objects.select_related("listing", "buyer__user")
        ],
        "fences": dict(Item.objects.values_list("pk", "fence")),
        "status": dict(Listing.objects.values_list("pk", "status")),
        "unmailed": Sale.objects.filter(mail_enqueued_at=None).count(),
    }


def assert_books_balance(facts: dict[str, Any]) -> None:
    """No gold was made or lost, and every sold thing is where its last sale says."""
    assert sum(facts["funds"].values()) == 3 * FUNDS
    assert min(facts["funds"].values()) >= 0
    for sale in facts["sold"]:
        assert facts["owners"][str(sale["item"])] == sale["buyer"]
        assert facts["status"][str(sale["listing"])] == "sold"
    assert Counter(facts["status"].values())["sold"] == len(facts["sold"])
    assert facts["unmailed"] == 0


def main() -> None:
    """Do what the command line says; the last line of stdout is the answer, in JSON."""
    command, *arguments = sys.argv[1:]
    if command == "trade":
        say(trade(json.loads(arguments[0])))
    elif command == "stall":
        say(stall(json.loads(arguments[0]), int(arguments[1])))
    else:
        say(prepare() if command == "prepare" else audit())


def say(answer: object) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


class Crowd:
    """The other side: runs main() in processes against one database and one Redis."""

    def __init__(
        self, database_url: str, redis_url: str, listings: Listings | None = None, **environment: str
    ) -> None:
        self.listings = listings or {}
        self.environment = {
            **os.environ,
            "DEBUG": "1",
            "DATABASE_URL": database_url,
            "REDIS_URL": redis_url,
            "DJANGO_SETTINGS_MODULE": "project.settings",
            **environment,
        }

    def _start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-W", "error", "-c", START, *arguments],
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def prepare(self) -> Listings:
        """Open the market in a database that is empty."""
        self.listings = {int(pk): seller for pk, seller in self.ask("prepare").items()}
        return self.listings

    def first_of(self, seller: str) -> int:
        """A listing of *seller*."""
        return next(pk for pk, its_seller in self.listings.items() if its_seller == seller)

    def ask(self, command: str) -> Any:
        return json.loads(self._start(command).communicate(timeout=60)[0])

    @contextmanager
    def stalled(self, order: Order, number: int) -> Iterator[subprocess.Popen[str]]:
        """A process that has stopped in the middle of its order; after SIGCONT its answer is on its stdout."""
        process = self._start("stall", json.dumps(order), str(number))
        try:
            assert eventually(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED)
            yield process
        finally:
            process.kill()
            process.communicate()

    def trade(self, *groups: list[Order]) -> list[str]:
        """Each group in a process, each order in a thread, all at once; what came of each order, in order."""
        processes = [self._start("trade", json.dumps(orders)) for orders in groups]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == '"ready"\n'
        answers = []
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        for process in processes:
            answers += json.loads(process.communicate(timeout=60)[0])
        return answers
