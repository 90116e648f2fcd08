"""Rows of a database as JSON in Redis, loaded anew every so often, and never older than they may be."""

from components.services.rows.caches import RowCache
from components.services.rows.claims import AT_A_TIME, Loader, Stored
from components.services.rows.controls import Changed, RowControls
from components.services.rows.core import LEASE, SHORTEST_DELAY, check_delay, member, name_and_key
from components.services.rows.loading import Load, Unshared
from components.services.rows.readers import REACH, RowReader
from components.services.rows.records import CacheInfo, Claim, Claims, Failure, Listed, Row, RowInfo
from components.services.rows.shapes import MAX_ROW, Shape
from components.services.rows.values import KINDS, Kind, list_of

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
