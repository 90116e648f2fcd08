"""The keys of cached rows. The entity is a bucket of rows, so that one script claims many."""

from components.kit.keyspace import Key, SharedKey, stem


class RowKeys:
    """The keys of the bucket *tag*, named as in the scripts."""

    def __init__(self, tag: str) -> None:
        self._stem = stem("rows", tag)

    row = SharedKey(
        'STRING per row (prefix of it: ends in ":" and the member): JSON, a list of the microsecond of the claim '
        "that loaded it, the microsecond until which it is good, its shape, and its values or null. Goes when the "
        "row is invalidated. Expires some time after it has become stale."
    )
    claim = SharedKey(
        'STRING per row (prefix of it: ends in ":" and the member): the record of its load, see _claim.lua. Goes '
        "when the row is loaded or invalidated. Expires some time after the lease."
    )

    def row_of(self, member: str) -> str:
        """STRING of one row, see *row*. Expires as described there."""
        return f"{self._stem}row:{member}"

    def claim_of(self, member: str) -> str:
        """STRING of one row, see *claim*. Expires as described there."""
        return f"{self._stem}claim:{member}"

    counts = SharedKey(
        "HASH name of a cache -> number of its rows on the schedule; name:failing -> number of these that fail. A "
        "field goes with the last of them."
    )
    schedule = SharedKey(
        "ZSET member by the microsecond it is due. A member goes when it is unscheduled, or its row is deleted."
    )
    delays = SharedKey(
        "HASH member of the schedule -> microseconds between two loads. A field goes with the member."
    )
    failures = SharedKey(
        "HASH member -> number of failed loads since the last successful one, with time and error, see "
        "_failure.lua. A field goes when the row is loaded, and with the member."
    )


class DaemonKeys(RowKeys):
    """The keys of a bucket, and of the claims of one daemon in it."""

    def __init__(self, tag: str, daemon: str) -> None:
        super().__init__(tag)
        self._end = f":{daemon}"

    call = Key("LIST token of the daemon's last call, and the answer to it. Expires after a minute.")
