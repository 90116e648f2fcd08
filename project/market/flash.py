"""
The daily flash sale: a few things at a low price, a limited number of each, from midnight to midnight.

The day determines the offers and the keys of their rows. So readers need no query, and do not depend on a task: a
reader that finds rows of the day missing creates them. A task creates tomorrow's rows ahead, puts today's on the
schedule of the cache, and removes those that are over; a row that is not on the schedule yet is loaded by its reader.
While Redis is away the page asks the database, which decides who buys in any case (ledger.sell_flash).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, timedelta

from django.utils import timezone

from components.exceptions import RedisUnavailable, RowNotLoaded
from components.services.rows.models import FrozenRow

from .models import FlashSale, Item

logger = logging.getLogger(__name__)

#: The offers, in rotation: kind, name, price and number.
_GOODS: Sequence[tuple[Item.Kind, str, int, int]] = [
    (Item.Kind.CURIO, "Lantern of Long Evenings", 40, 60),
    (Item.Kind.POTION, "Thermos of Eternal Cocoa", 8, 200),
    (Item.Kind.WEAPON, "Sword of the Last Minute", 350, 5),
    (Item.Kind.ARMOUR, "Cloak with Inner Pockets", 90, 25),
    (Item.Kind.SCROLL, "Coupon of Mild Discounts", 5, 120),
    (Item.Kind.POTION, "Elixir of Early Rising", 30, 40),
    (Item.Kind.CURIO, "Umbrella Against Meteors", 160, 12),
]
_EACH_DAY = 3
_ONE_DAY = timedelta(days=1)
#: For how long after its end a sale is still removed from the schedule, in case the task did not run for some days.
_LOOKS_BACK = timedelta(days=30)


def keys_of(day: date) -> list[str]:
    """Return the keys of the day's sales, whether they exist or not."""
    return [f"{day.isoformat()}-{number + 1}" for number in range(_EACH_DAY)]


def on_sale(day: date) -> Sequence[FrozenRow | FlashSale]:
    """Return the sales of this day: from the cache or, while Redis is away, from the database."""
    keys = keys_of(day)
    try:
        found = FlashSale.cached.get_many(keys)
        if len(found) < len(keys):
            _make(day)
            FlashSale.cached.invalidate(*keys)  # the cache has stored their absence
            found = FlashSale.cached.get_many(keys)
    except (RedisUnavailable, RowNotLoaded) as error:
        logger.warning("reading the flash sale from the database (%s)", error)
        _make(day)
        return list(FlashSale.objects.filter(slug__in=keys).order_by("slug"))
    return [found[key] for key in keys if key in found]


def look_after() -> None:
    """Create tomorrow's sales, and put today's on the schedule. Raises RedisUnavailable."""
    now, today = timezone.now(), timezone.localdate()
    for day in (today, today + _ONE_DAY):
        _make(day)
    FlashSale.cached.schedule_many(keys_of(today))
    over = FlashSale.objects.filter(ends_at__lte=now, ends_at__gt=now - _LOOKS_BACK)
    FlashSale.cached.unschedule(*over.values_list("slug", flat=True))


def _make(day: date) -> None:
    """Create the sales of a day that are missing."""
    FlashSale.objects.bulk_create(_sales(day), ignore_conflicts=True)


def _sales(day: date) -> Iterator[FlashSale]:
    opens_at, ends_at = _midnight(day), _midnight(day + _ONE_DAY)
    for number, slug in enumerate(keys_of(day)):
        kind, name, price, stock = _GOODS[(day.toordinal() * _EACH_DAY + number) % len(_GOODS)]
        yield FlashSale(
            slug=slug,
            name=name,
            kind=kind,
            price=price,
            stock=stock,
            remaining=stock,
            opens_at=opens_at,
            ends_at=ends_at,
        )


def _midnight(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time()))
