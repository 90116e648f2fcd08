"""The market's tasks: they do what is left to do, once, and the sweep finds what got lost."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core import mail
from django.utils import timezone
from redis import Redis

from project.market import tasks
from project.market.models import Listing, Player, Sale
from tests.project.market.conftest import ends_in, names, opens_in, queued


@pytest.fixture
def sale(listing: Listing, jack: Player) -> Sale:
    """Joe's dagger is jack's; nobody has written to joe yet."""
    Listing.objects.update(status=Listing.Status.SOLD)
    return Sale.objects.create(listing=listing, buyer=jack, seller=listing.seller, price=100)


# --- mail


def test_the_seller_is_told_who_bought_what_for_how_much(sale: Sale) -> None:
    assert tasks.send_sold_email.call(sale.pk) is True

    (message,) = mail.outbox
    assert message.to == ["joe@fakegame.example"]
    assert message.subject == "Sold: Moonlit Dagger for 100 gold"
    assert "jack has bought your Moonlit Dagger for 100 gold." in message.body


# --- opening and ending


def test_a_listing_whose_time_is_over_ends_and_its_seller_is_told(redis: Redis, listing: Listing) -> None:
    ends_in(listing, seconds=-1)

    tasks.end_listing.call(listing.pk)

    (task,) = queued()
    assert (task.name, task.args) == ("project.market.tasks.send_expired_email", [listing.pk])
    assert (task.queue, task.priority) == ("mail", -10)
    assert Listing.objects.get().status == Listing.Status.EXPIRED
    assert Listing.objects.get().mail_enqueued_at is not None


def test_ending_twice_tells_the_seller_once(redis: Redis, listing: Listing) -> None:
    ends_in(listing, seconds=-1)

    tasks.end_listing.call(listing.pk)
    tasks.end_listing.call(listing.pk)

    assert len(queued()) == 1


# --- the sweep


def test_the_sweep_opens_and_ends_what_is_due(redis: Redis, listing: Listing, jill: Player) -> None:
    ends_in(listing, seconds=-1)
    ring = jill.items.create(name="Glass Acorn")
    later = opens_in(Listing(item=ring, seller=jill, price=5), seconds=-1)

    done = tasks.sweep.call()

    assert (done["opened"], done["ended"]) == (1, 1)
    assert Listing.objects.get(pk=listing.pk).status == Listing.Status.EXPIRED
    assert Listing.objects.get(pk=later.pk).status == Listing.Status.OPEN
    assert names(queued()) == {"send_expired_email"}


def test_the_sweep_plans_a_listing_whose_tasks_got_lost(redis: Redis, listing: Listing) -> None:
    opens_in(listing, hours=1)
    ends_in(listing, hours=2)
    Listing.objects.update(created_at=timezone.now() - timedelta(minutes=2))

    assert tasks.sweep.call()["planned"] == 1
    assert tasks.sweep.call()["planned"] == 0

    assert names(queued()) == {"open_listing", "end_listing"}
