"""
Rows of models, cached as JSON in Redis: read without a query, and never older than they may be.

    class Item(CachedRow, models.Model):
        caching = Caching(delay=5, fields=["name", "stock"])

    Item.cached.schedule(42)            # manage.py cacherows loads it every 5 seconds
    Item.cached.get(42).stock

A write that Django signals invalidates its row after the commit. One that it does not, update(), raw SQL, another
program, is seen when the row is loaded next: a row on the schedule is as old as its delay and a lease, and not older.
"""

from components.services.rows.models.caching import CachedRow, Caching
from components.services.rows.models.frozen import FrozenRow
from components.services.rows.models.models import CachedRows, cached_rows

__all__ = ["CachedRow", "CachedRows", "Caching", "FrozenRow", "cached_rows"]
