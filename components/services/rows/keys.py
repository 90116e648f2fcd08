"""Keys of cached rows. The entity is a bucket of rows, so that one script claims many. (services/rows)"""

from __future__ import annotations

from components.kit.keyspace import _key


def row(tag: str, member: str) -> str:
    """
    STRING JSON: microseconds of the claim that loaded it and until when it is good, its shape, its values or null (in
    scripts a prefix of the member). Goes when it is invalidated. Expires some time after it was good.
    """
    return _key("rows", tag, f"row:{member}")


def row_claim(tag: str, member: str) -> str:
    """
    STRING microseconds of the claim and of the end of its lease, and the token of who loads (in scripts a prefix of
    the member). Goes with the load, or when the row is invalidated. Expires some time after the lease.
    """
    return _key("rows", tag, f"claim:{member}")


def rows_call(tag: str, call: str) -> str:
    """LIST the number of the last call of a daemon, and what it claimed, if it asks again. Expires after a minute."""
    return _key("rows", tag, f"call:{call}")


def rows_counts(tag: str) -> str:
    """
    HASH name of a cache -> how many of its rows are on the schedule; name:failing -> how many of these fail. A field
    goes with the last of them.
    """
    return _key("rows", tag, "counts")


def rows_schedule(tag: str) -> str:
    """ZSET name, ":", key of a row by the microsecond it is due. A member goes when it is unscheduled or gone."""
    return _key("rows", tag, "schedule")


def rows_delays(tag: str) -> str:
    """HASH member of the schedule -> microseconds between two loads. A field goes with the member."""
    return _key("rows", tag, "delays")


def rows_failures(tag: str) -> str:
    """HASH member -> how often it failed in a row, microsecond, error. A field goes with a load, or the member."""
    return _key("rows", tag, "failures")
