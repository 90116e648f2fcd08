"""The tables in PostgreSQL, filled."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import UUID

from django.core.management import call_command
from django.db import connection

from benchmarks.caching.models import Item, Offer

_BEGAN = datetime(2026, 11, 1, tzinfo=UTC)
_DESCRIPTION = "Forged under the mountain, and sold as it is. "


def fill(count: int) -> None:
    """Make the tables, both with rows from 1 to *count*."""
    call_command("migrate", run_syncdb=True, verbosity=0)
    Item.objects.bulk_create(map(_item, range(1, count + 1)), batch_size=5_000)
    offers = (Offer(pk=pk, title=f"Offer {pk}", percent=pk % 90) for pk in range(1, count + 1))
    Offer.objects.bulk_create(offers, batch_size=5_000)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


def _item(pk: int) -> Item:
    return Item(
        pk=pk,
        name=f"Item {pk}",
        description=_DESCRIPTION * 2,
        stock=pk % 1_000,
        price=Decimal(pk % 10_000) / 100,
        is_offered=pk % 2 == 0,
        seller=UUID(int=pk),
        changed_at=_BEGAN + timedelta(seconds=pk, microseconds=pk % 1_000_000),
    )
