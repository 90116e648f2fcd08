"""How a thing gets on offer, and off it again without a buyer."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from redis import Redis

from components.exceptions import RedisUnavailable
from project.market import trading
from project.market.ledger import AlreadyListed, ListingClosed, NotYours
from project.market.models import Item, Listing, Player
from tests.project.market.conftest import ends_in, names, opens_in, queued


def test_a_listing_without_times_is_open_at_once_and_needs_no_task(redis: Redis, dagger: Item) -> None:
    listing = trading.list_item(dagger.owner, dagger, 100)

    assert listing.status == Listing.Status.OPEN
    assert listing.is_open_at(timezone.now())
    assert queued() == []


def test_a_listing_for_later_is_opened_and_ended_by_tasks_at_their_time(redis: Redis, dagger: Item) -> None:
    opens_at = timezone.now() + timedelta(hours=1)
    ends_at = opens_at + timedelta(hours=1)

    listing = trading.list_item(dagger.owner, dagger, 100, opens_at=opens_at, ends_at=ends_at)

    due = {task.name.rpartition(".")[2]: task.run_after for task in queued()}
    assert due == {"open_listing": opens_at, "end_listing": ends_at}
    assert listing.status == Listing.Status.SCHEDULED
    assert Listing.objects.get().tasks_enqueued_at is not None


def test_a_listing_with_an_end_only_gets_one_task(redis: Redis, dagger: Item) -> None:
    trading.list_item(dagger.owner, dagger, 100, ends_at=timezone.now() + timedelta(hours=1))

    assert names(queued()) == {"end_listing"}


@pytest.mark.parametrize("hours", [None, 1])
def test_without_redis_nothing_is_listed(dagger: Item, hours: int | None) -> None:
    ends_at = timezone.now() + timedelta(hours=hours) if hours else None
    with pytest.raises(RedisUnavailable):
        trading.list_item(dagger.owner, dagger, 100, ends_at=ends_at)

    assert not Listing.objects.exists()


def test_without_redis_nothing_is_withdrawn(listing: Listing) -> None:
    with pytest.raises(RedisUnavailable):
        trading.withdraw(listing.seller, listing.pk)

    assert Listing.objects.get().status == Listing.Status.OPEN


def test_people_list_only_their_own_things(redis: Redis, dagger: Item, jack: Player) -> None:
    with pytest.raises(NotYours):
        trading.list_item(jack, dagger, 100)

    assert not Listing.objects.exists()


def test_a_thing_is_listed_once(redis: Redis, listing: Listing) -> None:
    with pytest.raises(AlreadyListed):
        trading.list_item(listing.seller, listing.item, 90)

    assert Listing.objects.get().price == 100


def test_unsold_items_can_be_listed_again_even_if_their_task_is_late(redis: Redis, listing: Listing) -> None:
    ends_in(listing, seconds=-1)

    again = trading.list_item(listing.seller, listing.item, 90)

    assert Listing.objects.get(pk=listing.pk).status == Listing.Status.EXPIRED
    assert again.status == Listing.Status.OPEN


def test_a_bought_thing_can_be_sold_on(redis: Redis, listing: Listing, jack: Player) -> None:
    trading.buy(jack, listing.pk, 100)

    assert trading.list_item(jack, listing.item, 150).seller == jack


def test_a_withdrawn_thing_stays_with_its_owner_and_can_be_listed_again(
    redis: Redis, listing: Listing
) -> None:
    trading.withdraw(listing.seller, listing.pk)

    assert Listing.objects.get().status == Listing.Status.WITHDRAWN
    assert trading.list_item(listing.seller, listing.item, 90).status == Listing.Status.OPEN


def test_a_listing_can_be_withdrawn_before_it_opens(redis: Redis, listing: Listing) -> None:
    opens_in(listing, hours=1)

    assert trading.withdraw(listing.seller, listing.pk).status == Listing.Status.WITHDRAWN


def test_players_withdraw_only_their_own_listings(redis: Redis, listing: Listing, jack: Player) -> None:
    with pytest.raises(NotYours):
        trading.withdraw(jack, listing.pk)

    assert Listing.objects.get().status == Listing.Status.OPEN


def test_a_finished_listing_cannot_be_withdrawn(redis: Redis, listing: Listing, jack: Player) -> None:
    trading.buy(jack, listing.pk, 100)

    with pytest.raises(ListingClosed):
        trading.withdraw(listing.seller, listing.pk)

    assert Listing.objects.get().status == Listing.Status.SOLD


def test_the_list_and_the_purchase_agree_on_what_is_open(listing: Listing) -> None:
    now = timezone.now()
    for opens, ends in [(-9, None), (-9, 9), (-9, -1), (9, None), (0, 9), (-9, 0)]:
        Listing.objects.update(
            opens_at=now + timedelta(hours=opens),
            ends_at=None if ends is None else now + timedelta(hours=ends),
        )
        listing.refresh_from_db()

        assert Listing.objects.open_at(now).exists() == listing.is_open_at(now)
