"""The demo's data, and its page of who plays where."""

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from redis import Redis

from project.market import demo, townsfolk, trading
from project.market.models import Item, Listing, Player
from project.players import demo as players
from project.players.geography import example_address
from tests.project.market.conftest import text
from tests.support.traffic import count

PAGE = reverse("players:today")
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def few_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one script, not of all: they make loading slow."""
    monkeypatch.setattr(townsfolk, "NAMES", townsfolk.NAMES[:1])


def test_everybody_can_log_in_and_loading_again_changes_nothing(redis: Redis, db: None) -> None:
    demo.load()
    for name, password in {"joe": "demo", "jack": "demo", "admin": "admin", "guard": "demo"}.items():
        assert authenticate(username=name, password=password) is not None
    dusk = Listing.objects.get(item__name="Jar of Captured Dusk")
    trading.buy(Player.objects.get(user__username="jill"), dusk.pk, dusk.price)
    before = (User.objects.count(), Item.objects.count(), Listing.objects.count())

    demo.load()

    assert (User.objects.count(), Item.objects.count(), Listing.objects.count()) == before
    assert str(Item.objects.get(name="Jar of Captured Dusk").owner) == "jill"
    rights = User.objects.get(username="joe", is_staff=True).get_all_permissions()
    assert {"components.view_queue", "components.view_overview"} <= rights
    assert rights.isdisjoint({"components.change_queue", "components.view_messages_chat"})


def test_it_shows_what_was_counted_today_by_country_and_by_city(redis: Redis, client: Client) -> None:
    players.load()
    today = datetime.now(UTC).date()
    count(
        {
            today: {"JP/13/Tokyo": 1500, "FR/IDF/Paris": 300, "FR": 50, "unknown": 150},
            today - timedelta(days=3): {"FR/IDF/Paris": 4444},
            today - timedelta(days=14): {"FR/IDF/Paris": 9999},
        }
    )

    page = text(client.get(PAGE))

    assert "2,000 events in the game" in page
    assert "Japan 1,500 75.0 % France 350 17.5 % Unknown 150 7.5 %" in page
    assert "Tokyo, Tokyo, Japan 1,500 75.0 % Paris, Île-de-France, France 300 15.0 %" in page
    assert "the highest is 4,444" in page
    assert "9,999" not in page


def test_it_says_where_an_address_lives(redis: Redis, client: Client) -> None:
    players.load()

    def find(address: str) -> str:
        return text(client.get(PAGE, {"address": address}))

    assert f"{example_address()}: Los Angeles, California, United States" in find(example_address())
    assert "127.0.0.1: its place is not known." in find("127.0.0.1")
    assert "is not an address" in find("<script>")
    assert example_address() in text(client.get(PAGE))


def test_no_page_of_the_demo_is_kept_in_a_cache(redis: Redis, client: Client) -> None:
    demo.load()
    client.force_login(User.objects.get(username="joe"))
    pages = ["", "sell", "mine", "preferences", "flash", "login", "players", "guild", "mail", "mail/contacts"]
    for path in pages:
        answer = client.get(f"/{path}/" if path else "/", follow=True)
        assert (path, answer.status_code, "no-store" in answer.get("Cache-Control", "")) == (path, 200, True)


def test_while_redis_is_away_it_says_so(client: Client) -> None:
    assert client.get(PAGE).status_code == 503
