"""
A crowd at the market: what the processes do that trade on one real database at once. See main().

    prepare         create the tables, three players and their listings; say {listing: seller}
    trade ORDERS    ORDERS is JSON, [[buyer, listing, price], ...]: each in a thread of its own, all at
                    once after a line on stdin; say what came of each
    audit           say who has how much, who owns what, and what was sold
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection

from project.market import trading
from project.market.ledger import Refusal
from project.market.models import Item, Listing, Player, Sale

PRICE = 100
FUNDS = 1_000


def prepare() -> dict[int, str]:
    call_command("migrate", verbosity=0)
    listings = {}
    for name in ("joe", "jack", "jill"):
        player = Player.objects.create(user=User.objects.create(username=name), funds=FUNDS)
        for number in range(8):
            item = Item.objects.create(name=f"{name}'s {number}", owner=player)
            listings[Listing.objects.create(item=item, seller=player, price=PRICE).pk] = name
    return listings


def trade(orders: list[tuple[str, int, int]]) -> list[str]:
    barrier = Barrier(len(orders))
    players = {player.user.username: player for player in Player.objects.select_related("user")}
    connection.close()

    def order(name: str, listing_id: int, price: int) -> str:
        barrier.wait()
        try:
            trading.buy(players[name], listing_id, price)
        except Refusal as refusal:
            return type(refusal).__name__
        finally:
            connection.close()
        return "bought"

    say("ready")
    sys.stdin.readline()
    with ThreadPoolExecutor(len(orders)) as pool:
        return list(pool.map(order, *zip(*orders, strict=True)))


def audit() -> dict[str, Any]:
    return {
        "funds": {str(player): player.funds for player in Player.objects.select_related("user")},
        "owners": {item.pk: str(item.owner) for item in Item.objects.select_related("owner__user")},
        "sold": [
            {
                "listing": sale.listing_id,
                "item": sale.listing.item_id,
                "buyer": str(sale.buyer),
                "price": sale.price,
            }
            for sale in Sale.objects.select_related("listing", "buyer__user")
        ],
        "status": dict(Listing.objects.values_list("pk", "status")),
        "unmailed": Sale.objects.filter(mail_enqueued_at=None).count(),
    }


def main() -> None:
    """Do what the command line says; the last line of stdout is the answer, in JSON."""
    command, *arguments = sys.argv[1:]
    if command == "trade":
        say(trade(json.loads(arguments[0])))
    else:
        say(prepare() if command == "prepare" else audit())


def say(answer: object) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
