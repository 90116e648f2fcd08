"""The market's search: by how names begin, in any script, for who types and for who has no scripts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.conf import settings
from django.test import override_settings
from django.urls import reverse
from redis import Redis

from project.market import books, trading
from project.market.models import Item, Listing, Player
from tests.project.market.test_views import as_player

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
