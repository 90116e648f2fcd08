"""The townsfolk of the demo trade with each other, and leave the visitors alone."""

from __future__ import annotations

import socket
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from django.conf import settings as site
from django.core.management import call_command
from django.db.models import Sum
from django.utils import timezone
from redis import Redis

from components.services.queues import TaskQueue
from components.testing import run_tasks
from project.market import townsfolk
from project.market.models import Listing, Player, Sale
from project.tour import bustle

RNG = Random(7)
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def people(monkeypatch: pytest.MonkeyPatch) -> list[Player]:
    """Three of them, one of whom sells a lantern."""
    monkeypatch.setattr(townsfolk, "NAMES", [(".", "Ann Bella Ruth", "Wood")])
    monkeypatch.setattr(townsfolk, "_THINGS", {"curio": ("Lantern", "Lunar")})
    monkeypatch.setattr(townsfolk, "_FOREIGN", [])
    people = townsfolk.settle()
    townsfolk.sell(people)
    return people


def gold() -> int:
    return int(Player.objects.aggregate(all=Sum("funds"))["all"])


def test_a_trade_is_a_purchase_and_what_is_for_sale_stays(redis: Redis, people: list[Player]) -> None:
    [before], gold_before = Listing.objects.all(), gold()

    sale = bustle.trade(RNG)

    assert sale
    assert sale.listing == before
    again = Listing.objects.get(status=Listing.Status.OPEN)
    assert (again.item, again.price, again.opens_at) == (before.item, before.price, before.opens_at)
    assert again.seller == again.item.owner == sale.buyer != sale.seller
    assert gold() == gold_before
    (mailed,) = run_tasks()
    assert (mailed.name, mailed.return_value) == ("project.market.tasks.send_sold_email", False)
    assert {each.name for each in TaskQueue().tasks("market", "delayed")} == {"project.market.tasks.sweep"}


def test_what_visitors_sell_is_left_to_visitors(redis: Redis, people: list[Player], listing: Listing) -> None:
    for _ in range(5):
        bustle.trade(RNG)

    assert Sale.objects.count() == 5
    listing.refresh_from_db()
    assert listing.status == Listing.Status.OPEN


def test_without_anything_for_sale_or_gold_nobody_trades(redis: Redis, people: list[Player]) -> None:
    Player.objects.update(funds=0)
    assert bustle.trade(RNG) is None

    Listing.objects.all().delete()
    assert bustle.trade(RNG) is None


def test_while_redis_is_away_nobody_trades(settings: Any, people: list[Player]) -> None:
    settings.CACHES = {"default": {**site.CACHES["default"], "LOCATION": "unix:///nowhere/redis"}}

    assert bustle.trade(RNG) is None
    assert not Sale.objects.exists()


def test_only_their_old_trades_are_deleted(redis: Redis, people: list[Player], listing: Listing) -> None:
    theirs, new = bustle.trade(RNG), bustle.trade(RNG)
    assert theirs
    assert new
    visitors = Sale.objects.create(listing=listing, buyer=people[0], seller=listing.seller, price=100)
    old = timezone.now() - timedelta(hours=2)
    Sale.objects.filter(pk__in=[theirs.pk, visitors.pk]).update(sold_at=old)

    assert bustle.forget() == 1

    assert {*Sale.objects.all()} == {visitors, new}
    assert not Listing.objects.filter(pk=theirs.listing.pk).exists()


def test_a_site_that_does_not_answer_yet_is_visited_later() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        bustle.visit(f"http://127.0.0.1:{closed.getsockname()[1]}/")


def test_they_visit_and_trade_until_they_are_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    visited, done = list[str](), list[str]()
    monkeypatch.setattr(bustle, "visit", visited.append)
    monkeypatch.setattr(bustle, "trade", lambda rng: done.append("trade"))
    monkeypatch.setattr(bustle, "forget", lambda: done.append("forget"))

    def pause(seconds: float) -> None:
        assert bustle.PAUSE / 2 <= seconds <= bustle.PAUSE * 1.5
        if len(visited) == 2 * bustle.TRADE:
            raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", pause)
    call_command("bustle", "8000")

    assert done == ["trade", "forget"] * 2
    assert all(each.startswith("http://127.0.0.1:8000/") for each in visited)
