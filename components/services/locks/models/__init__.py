"""
Fenced rows: what a lock protects, and only the newest of its holders can still write.

    with lock("item:42", timeout=10) as held:
        Item.objects.fenced(held.fence).filter(pk=42).update(owner=buyer)

A row keeps the fence of its last fenced write. One UPDATE both asks and writes (SET fence = token ... WHERE fence <=
token), so nothing can come between. If another transaction is writing the row, the UPDATE waits for it, and the
database then holds the condition against the row as that one left it (READ COMMITTED), or gives up (stricter
isolation); SQLite has one writer at a time. So no accepted write has a lower fence than one before it.

A holder that is stopped, or dies, leaves the row as its last transaction did. Writes without a fence pass, and leave
the fence as it is. A deleted row takes its fence along. docs/fencing.md.
"""

from components.services.locks.models.fields import FenceField
from components.services.locks.models.models import FencedModel
from components.services.locks.models.querysets import FencedQuerySet

__all__ = ["FenceField", "FencedModel", "FencedQuerySet"]
