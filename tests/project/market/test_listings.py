"""How a thing gets on offer, and off it again without a buyer."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from redis import Redis

from components.exceptions import RedisUnavailable
from project.market import trading
from project.market.ledger import NotYours
from project.market.models import Item, Listing, Player
from tests.project.market.conftest import queued


def test_a_listing_for_later_is_opened_and_ended_by_tasks_at_their_time(redis: Redis, dagger: Item) -> None:
    opens_at = timezone.now() + timedelta(hours=1)
    ends_at = opens_at + timedelta(hours=1)

    listing = trading.list_item(dagger.owner, dagger, 100, opens_at=opens_at, ends_at=ends_at)

    due = {task.name.rpartition(".")[2]: task.run_after for task in queued()}
    assert due == {"open_listing": opens_at, "end_listing": ends_at}
    assert listing.status == Listing.Status.SCHEDULED
    assert Listing.objects.get().tasks_enqueued_at is not None


@pytest.mark.parametrize("hours", [None, 1])
def test_without_redis_nothing_is_listed(dagger: Item, hours: int | None) -> None:
    ends_at = timezone.now() + timedelta(hours=hours) if hours else None
    with pytest.raises(RedisUnavailable):
        trading.list_item(dagger.owner, dagger, 100, ends_at=ends_at)

    assert not Listing.objects.exists()


def test_people_list_only_their_own_things(redis: Redis, dagger: Item, jack: Player) -> None:
    with pytest.raises(NotYours):
        trading.list_item(jack, dagger, 100)

    assert not Listing.objects.exists()


def test_the_list_and_the_purchase_agree_on_what_is_open(listing: Listing) -> None:
    now = timezone.now()
    for opens, ends in [(-9, None), (-9, 9), (-9, -1), (9, None), (0, 9), (-9, 0)]:
        Listing.objects.update(
            opens_at=now + timedelta(hours=opens),
            ends_at=None if ends is None else now + timedelta(hours=ends),
        )
        listing.refresh_from_db()

        assert Listing.objects.open_at(now).exists() == listing.is_open_at(now)
