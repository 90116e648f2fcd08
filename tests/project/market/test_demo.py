"""The demo data: complete, quick to load again, and kept out of production."""

from __future__ import annotations

import pytest
from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from redis import Redis

from project.market import demo, townsfolk, trading
from project.market.models import Item, Listing, Player


@pytest.fixture(autouse=True)
def few_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one script, not of all: they make loading slow."""
    monkeypatch.setattr(townsfolk, "NAMES", townsfolk.NAMES[:1])


@pytest.mark.parametrize(
    ("name", "password"),
    [("joe", "demo"), ("jack", "demo"), ("jill", "demo"), ("admin", "admin"), ("guard", "demo")],
)
def test_everybody_can_log_in(db: None, name: str, password: str) -> None:
    demo.load()

    assert authenticate(username=name, password=password) is not None


def test_loading_again_changes_nothing(redis: Redis, db: None) -> None:
    demo.load()
    dusk = Listing.objects.get(item__name="Jar of Captured Dusk")
    trading.buy(Player.objects.get(user__username="jill"), dusk.pk, dusk.price)
    before = (User.objects.count(), Item.objects.count(), Listing.objects.count())

    demo.load()

    assert (User.objects.count(), Item.objects.count(), Listing.objects.count()) == before
    assert str(Item.objects.get(name="Jar of Captured Dusk").owner) == "jill"
