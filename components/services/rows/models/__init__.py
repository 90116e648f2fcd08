"""
Rows of models, cached as JSON in Redis: read without a query, and never older than they may be.

A write that Django signals invalidates its row after the commit. Another write, by update(), raw SQL or another
program, is seen when the row is loaded next: a row on the schedule is never older than its delay and a lease.
"""

from components.services.rows.models.cached import CachedRow, CachedRows, Caching, cached_rows
from components.services.rows.models.frozen import FrozenRow

__all__ = ["CachedRow", "CachedRows", "Caching", "FrozenRow", "cached_rows"]
