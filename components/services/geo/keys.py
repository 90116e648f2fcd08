"""The keys of tables of addresses. The entity is a table: one script makes a version of it current."""

from components.kit.keyspace import SharedKey, stem
from components.kit.validation import check_name


class TableKeys:
    """The keys of the table *name*, named as in the scripts. Raises InvalidName."""

    def __init__(self, name: str) -> None:
        self._stem = stem("geo", check_name("geo table", name))

    current = SharedKey(
        "HASH version, how many parts it has, microsecond of its import. Goes when the table is removed."
    )

    def manifest(self, version: str) -> str:
        """STRING JSON: what a version is made of, and its source. Goes an hour after another became current."""
        return f"{self._stem}manifest:{version}"

    def part(self, part: str) -> str:
        """
        STRING version, ":", number from 0 on -> compressed part of that version. Goes an hour after another version
        became current, or after an import that ended before all parts were there.
        """
        return f"{self._stem}part:{part}"

    def call(self, call: str) -> str:
        """STRING mark of a call that was carried out, in case it is repeated. Expires after a minute."""
        return f"{self._stem}call:{call}"
