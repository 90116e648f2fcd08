"""
The tasks of the market, and how they get into the queue.

Every task may run twice, or late, or after its row is gone. It checks the row and does only what is left to do. Work
that must not get lost is written to the database first and marked as enqueued afterwards. If the process dies or
Redis goes away in between, the sweep finds the row without its mark. Before anything is bought or listed, a delayed
sweep is put into the queue (`set_guard`), so a sweep always follows.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.core.mail import EmailMessage
from django.db.models import Q
from django.utils import timezone

from components.exceptions import RedisUnavailable
from components.services.queues import every, periodic, task

from . import books, flash, ledger, mails
from .models import Listing, ListingQuerySet, Player, Sale
from .trace import note

logger = logging.getLogger(__name__)

#: The guard sweeps when the transaction and what follows it have long ended,
GUARD_DELAY = timedelta(seconds=60)
#: and takes no row that its own process may still be about to mark.
GRACE = timedelta(seconds=30)
#: A task that runs too early (clocks differ) runs again after this time.
TOO_EARLY = timedelta(seconds=30)


@task(queue_name="mail", priority=10)
def send_sold_email(sale_id: int) -> bool:
    """Tell the seller that the item was sold. Return whether a mail was sent."""
    sales = Sale.objects.select_related("listing__item", "seller__user", "buyer__user")
    sale = sales.filter(pk=sale_id).first()
    if sale is None or not _wanted(sale.seller, sale.seller.wants_sold_mail, f"sale {sale_id}"):
        return False
    _send(mails.sold(sale))
    return True


@task(queue_name="mail", priority=-10)
def send_expired_email(listing_id: int) -> bool:
    """Tell the seller that nobody bought the item. Return whether a mail was sent."""
    listings = Listing.objects.select_related("item", "seller__user")
    listing = listings.filter(pk=listing_id).first()
    if listing is None or not _wanted(
        listing.seller, listing.seller.wants_expired_mail, f"listing {listing_id}"
    ):
        return False
    _send(mails.expired(listing))
    return True


@task(queue_name="market")
def open_listing(listing_id: int) -> None:
    """Open a delayed listing whose time has come."""
    listings = Listing.objects.filter(pk=listing_id)
    if ledger.open_due(listings):
        logger.info("listing %s is open", listing_id)
    elif early := listings.filter(status=Listing.Status.SCHEDULED).first():
        open_listing.using(run_after=max(early.opens_at, timezone.now() + TOO_EARLY)).enqueue(listing_id)
    books.for_sale.refresh(listing_id)


@task(queue_name="market")
def end_listing(listing_id: int) -> None:
    """End a listing whose time is over, if nobody has bought it, and tell its seller."""
    listings = Listing.objects.filter(pk=listing_id)
    if _end(listings):
        logger.info("listing %s has ended", listing_id)
    elif (early := listings.live().first()) and early.ends_at:
        end_listing.using(run_after=max(early.ends_at, timezone.now() + TOO_EARLY)).enqueue(listing_id)
    books.for_sale.refresh(listing_id)


# Needed for rows without a guard, because Redis has lost its data.
@periodic(every(minutes=5))
@task(queue_name="market")
def sweep() -> dict[str, int]:
    """Do everything that should have happened but did not. Return how many of each kind were done."""
    now = timezone.now()
    opened = ledger.open_due(Listing.objects.all())
    unmailed = Sale.objects.filter(mail_enqueued_at=None)
    unplanned = Listing.objects.live().filter(
        Q(opens_at__gt=now) | Q(ends_at__gt=now), tasks_enqueued_at=None
    )
    in_flight = unmailed.filter(sold_at__gte=now - GRACE), unplanned.filter(created_at__gte=now - GRACE)
    if any(rows.exists() for rows in in_flight):
        set_guard()
    done = {
        "opened": opened,
        "ended": sum(1 for listing in _over(now) if _end(Listing.objects.filter(pk=listing.pk))),
        "sold mail": sum(1 for sale in unmailed.filter(sold_at__lt=now - GRACE) if announce_sale(sale)),
        "planned": sum(1 for listing in unplanned.filter(created_at__lt=now - GRACE) if plan(listing)),
    }
    if any(done.values()):
        logger.warning("the sweep repaired: %s", ", ".join(f"{n} {what}" for what, n in done.items() if n))
        books.for_sale.rebuild()
    return done


# The results are needed a day later.
@periodic(every(minutes=5))
@task(queue_name="market")
def prepare_flash_sales() -> None:
    """Create the sales of today and tomorrow, and cache exactly those that can be bought."""
    flash.look_after()


def set_guard() -> None:
    """Enqueue a sweep that will run after the changes that follow. Raises RedisUnavailable."""
    guard = sweep.using(run_after=timezone.now() + GUARD_DELAY).enqueue()
    note("task", id=guard.id, name="sweep", queue="market")


def announce_sale(sale: Sale) -> bool:
    """Enqueue the mail to the seller, and mark the sale."""
    mail = send_sold_email.enqueue(sale.pk)
    note("task", id=mail.id, name="send_sold_email", queue="mail", mail=mails.message_id("sold", sale.pk))
    return bool(Sale.objects.filter(pk=sale.pk).update(mail_enqueued_at=timezone.now()))


def plan(listing: Listing) -> bool:
    """Enqueue the tasks that open and end the listing at their times, and mark the listing."""
    if listing.status == Listing.Status.SCHEDULED:
        open_listing.using(run_after=listing.opens_at).enqueue(listing.pk)
    if listing.ends_at is not None:
        end_listing.using(run_after=listing.ends_at).enqueue(listing.pk)
    return bool(Listing.objects.filter(pk=listing.pk).update(tasks_enqueued_at=timezone.now()))


@contextmanager
def healed_by_sweep(what: str) -> Iterator[None]:
    """Wrap the steps after a commit. If Redis is away by then, log that; the guard's sweep repairs it."""
    try:
        yield
    except RedisUnavailable as error:
        logger.warning("%s: its tasks were not enqueued; the sweep will enqueue them (%s)", what, error)


def _over(now: datetime) -> ListingQuerySet:
    """Return listings whose time is over, and that have not been ended or whose seller has not been told."""
    untold = Q(status=Listing.Status.EXPIRED, mail_enqueued_at=None, ends_at__lt=now - GRACE)
    return Listing.objects.filter(untold | Q(status__in=Listing.LIVE, ends_at__lte=now))


def _end(listings: ListingQuerySet) -> bool:
    """End the one listing in *listings* if its time is over, and enqueue its mail, unless both were done."""
    ledger.end_due(listings)
    unmailed = listings.filter(status=Listing.Status.EXPIRED, mail_enqueued_at=None)
    for listing in unmailed:
        send_expired_email.enqueue(listing.pk)
    return bool(unmailed.update(mail_enqueued_at=timezone.now()))


def _wanted(player: Player, switched_on: bool, what: str) -> bool:
    if not switched_on:
        logger.info("no mail about %s: %s has switched it off", what, player)
    elif not player.user.email:
        logger.warning("no mail about %s: %s has no address", what, player)
    return bool(switched_on and player.user.email)


def _send(message: EmailMessage) -> None:
    """Send a mail and log the result. A failure is raised, so that the queue keeps the task."""
    name = message.extra_headers["Message-ID"]
    try:
        message.send()
    except Exception:
        logger.exception("mail %s to %s could not be sent", name, message.to[0])
        raise
    logger.info("mail %s sent to %s: %s", name, message.to[0], message.subject)
