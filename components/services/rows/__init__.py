"""Database rows cached as JSON in Redis, reloaded on a schedule, and never older than allowed."""

# Read cache.py, shape.py and loader.py first, then worker.py, then models/.

from components.services.rows.cache import Load, RowCache, Unshared
from components.services.rows.controls import Changed, RowControls
from components.services.rows.loader import AT_A_TIME, Claim, Claims, Loader, Stored
from components.services.rows.members import LEASE, SHORTEST_DELAY, check_delay, member, name_and_key
from components.services.rows.reader import REACH, CacheInfo, Failure, Listed, RowInfo, RowReader
from components.services.rows.shape import KINDS, MAX_ROW, Kind, Row, Shape, list_of

__all__ = [
    "AT_A_TIME",
    "KINDS",
    "LEASE",
    "MAX_ROW",
    "REACH",
    "SHORTEST_DELAY",
    "CacheInfo",
    "Changed",
    "Claim",
    "Claims",
    "Failure",
    "Kind",
    "Listed",
    "Load",
    "Loader",
    "Row",
    "RowCache",
    "RowControls",
    "RowInfo",
    "RowReader",
    "Shape",
    "Stored",
    "Unshared",
    "check_delay",
    "list_of",
    "member",
    "name_and_key",
]
