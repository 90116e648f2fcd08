"""The demo data: complete, quick to load again, and kept out of production."""

from __future__ import annotations

import pytest
from django.contrib.auth import authenticate
from django.contrib.auth.hashers import is_password_usable
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import override_settings
from redis import Redis

from project.market import demo, townsfolk, trading
from project.market.models import Item, Listing, Player
from tests.project.market.conftest import names, queued


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


def test_the_guard_is_staff_without_any_permission(db: None) -> None:
    demo.load()

    guard = User.objects.get(username="guard")
    assert guard.is_staff
    assert guard.get_all_permissions() == set()


def test_it_needs_no_redis(db: None) -> None:
    demo.load()

    assert Listing.objects.filter(tasks_enqueued_at=None).exists()


def test_with_redis_its_listings_get_their_tasks(redis: Redis, db: None) -> None:
    demo.load()

    assert names(queued()) == {"end_listing"}
    assert not Listing.objects.filter(tasks_enqueued_at=None).exists()


def test_loading_again_changes_nothing(redis: Redis, db: None) -> None:
    demo.load()
    dusk = Listing.objects.get(item__name="Jar of Captured Dusk")
    trading.buy(Player.objects.get(user__username="jill"), dusk.pk, dusk.price)
    before = (User.objects.count(), Item.objects.count(), Listing.objects.count())

    demo.load()

    assert (User.objects.count(), Item.objects.count(), Listing.objects.count()) == before
    assert str(Item.objects.get(name="Jar of Captured Dusk").owner) == "jill"


def test_a_user_of_the_same_name_keeps_their_password(db: None) -> None:
    User.objects.create_user("admin", password="secret")

    demo.load()

    assert authenticate(username="admin", password="secret") is not None


def test_each_password_is_hashed_once(db: None) -> None:
    demo.load()

    hashes = set(User.objects.values_list("password", flat=True))
    assert len([each for each in hashes if is_password_usable(each)]) == 2


@override_settings(DEBUG=True)
def test_the_command_says_who_may_log_in(db: None, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("loaddemo")

    assert "joe, jack, jill: password demo" in capsys.readouterr().out


def test_public_passwords_stay_out_of_production(db: None) -> None:
    with pytest.raises(CommandError, match="passwords are public"):
        call_command("loaddemo")

    assert not User.objects.exists()
