"""
Players, their items, the listings that offer items for sale, and the sales.

Gold is a whole number, since there is no smaller coin; so sums are exact on every database. The database itself
refuses impossible states: a purse below zero, a price of nothing, two live listings of one item, a sale to oneself.
Whether a listing can be bought depends on its times only, and on no task: `status` may lag behind the clock,
`Listing.is_open_at` does not. Three columns say that a task is in the queue (`tasks_enqueued_at`,
`mail_enqueued_at`). If one of them is empty although it should not be, a process died or Redis was away; the sweep
(tasks.py) repairs this.
"""

from __future__ import annotations

from datetime import datetime
from typing import Self

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from components.services.locks.models import FencedModel
from components.services.rows.models import CachedRow, Caching

#: This limit keeps any sum of prices far below the limit of a 64-bit integer.
MAX_PRICE = 1_000_000_000


class Player(models.Model):
    """A user's role in the market: their purse, and which mail they want."""

    STARTING_FUNDS = 1_000

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="player")
    funds = models.BigIntegerField("gold", default=STARTING_FUNDS)
    wants_sold_mail = models.BooleanField("mail me when something of mine is sold", default=True)
    wants_expired_mail = models.BooleanField("mail me when a listing ends without a buyer", default=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(funds__gte=0), name="market_player_funds_not_negative")
        ]

    def __str__(self) -> str:
        return self.user.get_username()


class Item(FencedModel):
    """A thing that belongs to one player. Its fence is the fence of its last trade (trading.py)."""

    class Kind(models.TextChoices):
        WEAPON = "weapon"
        ARMOUR = "armour"
        POTION = "potion"
        SCROLL = "scroll"
        CURIO = "curio"

    name = models.CharField(max_length=80)
    kind = models.CharField(max_length=10, choices=Kind.choices, default=Kind.CURIO)
    owner = models.ForeignKey(Player, on_delete=models.CASCADE, related_name="items")

    class Meta:
        ordering = ["name", "pk"]

    def __str__(self) -> str:
        return self.name


class ListingQuerySet(models.QuerySet["Listing"]):
    def live(self) -> Self:
        """Return listings that are neither sold nor withdrawn nor known to have ended."""
        return self.filter(status__in=Listing.LIVE)

    def open_at(self, now: datetime) -> Self:
        """Return the listings that can be bought at this moment; the same rule as Listing.is_open_at."""
        return self.live().filter(Q(ends_at=None) | Q(ends_at__gt=now), opens_at__lte=now)


class Listing(models.Model):
    """An item on offer at a price, from opens_at until ends_at; without ends_at, until it is sold or withdrawn."""

    class Status(models.TextChoices):
        SCHEDULED = "scheduled"
        OPEN = "open"
        SOLD = "sold"
        EXPIRED = "expired"
        WITHDRAWN = "withdrawn"

    LIVE = (Status.SCHEDULED, Status.OPEN)

    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="listings")
    seller = models.ForeignKey(Player, on_delete=models.CASCADE, related_name="listings")
    price = models.PositiveIntegerField(validators=[MinValueValidator(1), MaxValueValidator(MAX_PRICE)])
    created_at = models.DateTimeField(default=timezone.now)
    opens_at = models.DateTimeField(default=timezone.now)
    ends_at = models.DateTimeField(null=True, blank=True)
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.OPEN)
    #: When the tasks that open and end this listing were put into the queue.
    tasks_enqueued_at = models.DateTimeField(null=True, blank=True, editable=False)
    #: When the mail about an end without a buyer was put into the queue.
    mail_enqueued_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = ListingQuerySet.as_manager()

    class Meta:
        ordering = ["-opens_at", "-pk"]
        indexes = [models.Index(fields=["status", "opens_at"], name="market_listing_status_opens")]
        constraints = [
            models.CheckConstraint(
                condition=Q(price__gte=1, price__lte=MAX_PRICE), name="market_listing_price_in_range"
            ),
            models.CheckConstraint(
                condition=Q(ends_at=None) | Q(ends_at__gt=F("opens_at")),
                name="market_listing_ends_after_opening",
            ),
            models.UniqueConstraint(
                fields=["item"],
                condition=Q(status__in=["scheduled", "open"]),
                name="market_listing_one_live_per_item",
                violation_error_message="This item is already listed.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.item} for {self.price} gold"

    def is_open_at(self, now: datetime) -> bool:
        """Return True if it can be bought at this moment."""
        return self.status in self.LIVE and self.opens_at <= now and not self.has_ended_at(now)

    def has_ended_at(self, now: datetime) -> bool:
        """Return True if its time is over, whatever its status."""
        return self.ends_at is not None and self.ends_at <= now


class Sale(models.Model):
    """The record of a purchase: who bought from whom, when, at which price."""

    listing = models.OneToOneField(Listing, on_delete=models.PROTECT, related_name="sale")
    buyer = models.ForeignKey(Player, on_delete=models.PROTECT, related_name="purchases")
    seller = models.ForeignKey(Player, on_delete=models.PROTECT, related_name="sales")
    price = models.PositiveIntegerField()
    sold_at = models.DateTimeField(default=timezone.now)
    #: When the mail to the seller was put into the queue.
    mail_enqueued_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        ordering = ["-sold_at", "-pk"]
        indexes = [
            models.Index(fields=["sold_at"], condition=Q(mail_enqueued_at=None), name="market_sale_unmailed")
        ]
        constraints = [
            models.CheckConstraint(condition=Q(price__gte=1), name="market_sale_price_positive"),
            models.CheckConstraint(condition=~Q(buyer=F("seller")), name="market_sale_not_to_oneself"),
        ]

    def __str__(self) -> str:
        return f"{self.listing.item} to {self.buyer}"


class FlashSale(CachedRow):
    """
    A limited number of one thing, at a low price, for a day (flash.py). The database refuses to sell more.

    Pages read the cached row, so the number that they show is at most five seconds old, whoever writes to the table.
    What this site sells is seen at once.
    """

    caching = Caching(
        delay=5,
        key="slug",
        fields=["slug", "name", "kind", "price", "stock", "remaining", "opens_at", "ends_at"],
    )

    #: Day and number, "2026-11-21-1". The keys of a day's rows can be derived from the day.
    slug = models.SlugField(max_length=20, unique=True)
    name = models.CharField(max_length=80)
    kind = models.CharField(max_length=10, choices=Item.Kind.choices)
    price = models.PositiveIntegerField()
    stock = models.PositiveIntegerField()
    remaining = models.IntegerField()
    opens_at = models.DateTimeField()
    ends_at = models.DateTimeField()

    class Meta:
        ordering = ["-opens_at", "slug"]
        constraints = [
            models.CheckConstraint(condition=Q(price__gte=1), name="market_flashsale_price_positive"),
            models.CheckConstraint(
                condition=Q(remaining__gte=0, remaining__lte=F("stock")),
                name="market_flashsale_never_oversold",
            ),
            models.CheckConstraint(
                condition=Q(ends_at__gt=F("opens_at")), name="market_flashsale_ends_after_opening"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name}, {self.slug}"

    def is_open_at(self, now: datetime) -> bool:
        """Return True if one can be bought at this moment, if any remains."""
        return self.opens_at <= now < self.ends_at


class FlashPurchase(models.Model):
    """A purchase in a flash sale. Each player has at most one, so a form that is sent twice buys once."""

    sale = models.ForeignKey(FlashSale, on_delete=models.PROTECT, related_name="purchases")
    buyer = models.ForeignKey(Player, on_delete=models.PROTECT, related_name="flash_purchases")
    price = models.PositiveIntegerField()
    bought_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-bought_at", "-pk"]
        constraints = [
            models.UniqueConstraint(fields=["sale", "buyer"], name="market_flashpurchase_one_each")
        ]

    def __str__(self) -> str:
        return f"{self.sale} to {self.buyer}"
