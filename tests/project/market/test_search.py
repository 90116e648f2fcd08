"""The market's search: by how names begin, in any script, for who types and for who has no scripts."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.conf import settings
from django.test import Client, override_settings
from django.urls import reverse
from django.utils import timezone
from redis import Redis

from project.market import books, tasks, trading
from project.market.models import Item, Listing, Player
from tests.project.market.conftest import ends_in, opens_in
from tests.project.market.test_views import BROWSE, as_player, text

API = reverse("components:api-book", args=["market.listing"])


@pytest.fixture(autouse=True)
def the_demos_readers() -> Iterator[None]:
    with override_settings(COMPONENTS={**settings.COMPONENTS, "BOOKS": "project.guilds.books.GuildBooks"}):
        yield


def offered(joe: Player, *names: str, price: int = 20) -> list[Listing]:
    """New listings, which the book knows."""
    items = [Item.objects.create(name=name, owner=joe) for name in names]
    made = [Listing.objects.create(item=item, seller=joe, price=price) for item in items]
    books.for_sale.rebuild()
    return made


def shown(client: Client, **query: str) -> set[str]:
    return set(re.findall(r"<h2>(.+)</h2>", client.get(BROWSE, query).content.decode()))


def test_names_are_found_by_the_beginnings_of_their_words(redis: Redis, joe: Player, client: Client) -> None:
    names = {"Moonlit Dagger", "Épée de Midi", "青龙偃月刀"}
    offered(joe, *names)

    for q, found in {
        "moon": {"Moonlit Dagger"},
        "DAG": {"Moonlit Dagger"},
        "epee": {"Épée de Midi"},
        "青": {"青龙偃月刀"},
        "m": {"Moonlit Dagger", "Épée de Midi"},
        "lit": set(),
        " ": names,
        "\0": set(),
        "x" * 10_000: set(),
    }.items():
        assert shown(client, q=q) == found, q[:10]


def test_the_chosen_item_is_shown_alone(redis: Redis, joe: Player, client: Client) -> None:
    offered(joe, "Dagger", "Dagger of Dawn", "Dagger")

    assert shown(client, **{"q": "Dagger", "q-id": ""}) == {"Dagger", "Dagger of Dawn"}
    page = client.get(BROWSE, {"q": "Dagger", "q-id": "Dagger"})
    assert re.findall(r"<h2>(.+)</h2>", page.content.decode()) == ["Dagger", "Dagger"]
    assert shown(client, **{"q": "Dawn", "q-id": "Dagger"}) == {"Dagger of Dawn"}  # what is written counts
    assert shown(client, **{"q": "a\0", "q-id": "a\0"}) == set()


def test_a_name_is_offered_once_however_many_sell_it_and_until_the_last_is_sold(
    redis: Redis, transactional_db: None, joe: Player, jack: Player
) -> None:
    first, second = offered(joe, "Glass Acorn", "Glass Acorn")
    client = as_player(jack)

    def names() -> list[str]:
        return [each["label"] for each in client.get(API, {"q": "glas"}).json()["entries"]]

    assert names() == ["Glass Acorn"]
    trading.buy(jack, first.pk, 20)
    assert names() == ["Glass Acorn"]
    trading.withdraw(joe, second.pk)
    assert names() == []
    trading.list_item(jack, first.item, 30)
    assert names() == ["Glass Acorn"]


def test_openings_and_closings_by_the_clock_are_announced_by_their_task(redis: Redis, joe: Player) -> None:
    [listing] = offered(joe, "Glass Acorn")
    opens_in(listing, hours=1)
    tasks.end_listing.call(listing.pk)
    assert books.for_sale.book.complete("glass") == []

    opens_in(listing, seconds=-1)
    tasks.open_listing.call(listing.pk)
    assert len(books.for_sale.book.complete("glass")) == 1

    ends_in(listing, seconds=-1)
    tasks.end_listing.call(listing.pk)
    assert books.for_sale.book.complete("glass") == []


def test_names_repaired_by_the_sweep_are_in_the_book(redis: Redis, joe: Player) -> None:
    [listing] = offered(joe, "Glass Acorn")
    ends_in(listing, seconds=-1)

    tasks.sweep.call()

    assert books.for_sale.book.complete("glass") == []


def test_finished_listings_are_hidden_though_the_book_still_has_them(
    redis: Redis, joe: Player, client: Client
) -> None:
    [listing] = offered(joe, "Glass Acorn")
    Listing.objects.filter(pk=listing.pk).update(opens_at=timezone.now() + timedelta(hours=1))

    assert shown(client, q="glass") == set()


def test_a_list_says_that_it_is_cut(
    redis: Redis, joe: Player, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered(joe, "Glass Acorn", "Glass Bead", "Glass Cup")
    assert "Too many names begin like this" not in text(client.get(BROWSE, {"q": "glass"}))
    monkeypatch.setattr(books, "MOST", 2)

    assert "Too many names begin like this" in text(client.get(BROWSE, {"q": "glass"}))
    assert shown(client, q="glass") == {"Glass Acorn", "Glass Bead"}


@pytest.mark.parametrize("is_there", [True, False])
def test_without_the_book_names_are_searched_in_the_database(
    listing: Listing,
    client: Client,
    is_there: bool,
    request: pytest.FixtureRequest,
    caplog: pytest.LogCaptureFixture,
) -> None:
    if is_there:
        request.getfixturevalue("redis")  # which has no book

    with caplog.at_level(logging.WARNING):
        assert shown(client, q="LIT DAG") == {"Moonlit Dagger"}
        assert shown(client, q="a\0") == set()

    assert "searching the market without its address book" in caplog.text


def test_names_are_offered_to_players_and_visitors_have_a_plain_field(
    redis: Redis, joe: Player, jack: Player, client: Client
) -> None:
    offered(joe, "Glass Acorn")

    page = as_player(jack).get(BROWSE).content.decode()
    assert f'src="{API}"' in page
    assert "components/autocomplete/field.js" in page
    assert as_player(jack).get(API, {"q": "gl"}).json()["entries"] == [
        {"id": "Glass Acorn", "label": "Glass Acorn"}
    ]
    assert "<script" not in client.get(BROWSE).content.decode()
    assert client.get(API, {"q": "gl"}).status_code == 401


def test_in_the_admin_owners_sellers_and_items_are_chosen_by_name(
    admin_client: Client, redis: Redis, listing: Listing
) -> None:
    for fed in (books.players, books.items):
        fed.rebuild()
    add = reverse("admin:market_item_add")
    assert 'src="/api/books/market.player"' in admin_client.get(add).content.decode()
    admin_client.post(add, {"name": "Acorn", "kind": "curio", "owner": "JOE"})
    assert Item.objects.get(name="Acorn").owner == listing.seller

    change = admin_client.get(reverse("admin:market_listing_change", args=[listing.pk])).content.decode()
    assert 'name="item" value="Moonlit Dagger"' in change
    assert 'name="seller" value="joe"' in change
    assert 'src="/api/books/market.item"' in change
