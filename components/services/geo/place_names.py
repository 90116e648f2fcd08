"""
place_name(): the name of a place for people, by its id.

The names of countries and regions are in the last parts of the table of addresses. Only these parts are read, and
some thousand names are kept in memory. It looks for another version in the same way as locate(). Names never fail: if
there is no table, or it cannot be read, places are shown by their ids, and that is logged.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from components.exceptions import GeoTableDamaged, GeoTableNotFound, RedisUnavailable, UnknownFormat
from components.kit.client import get_client
from components.kit.twins import at_once
from components.kit.values import check_name
from components.services.geo.layout import Manifest, names_start, read_regions
from components.services.geo.lookups import kept
from components.services.geo.table import DEFAULT, current_version, load_version, read_data

logger = logging.getLogger(__name__)


class PlaceNames:
    """The names of a version of a table; empty if there is no table."""

    def __init__(
        self, name: str, version: str = "", names: Mapping[str, tuple[str, str]] | None = None
    ) -> None:
        self.name, self.version = name, version
        self._names = names or {}

    @classmethod
    def load(cls, name: str) -> PlaceNames:
        try:
            return cls._load(name)
        except GeoTableNotFound:
            pass  # counting by address needs a table, showing what was counted does not
        except (GeoTableDamaged, UnknownFormat, RedisUnavailable) as error:
            logger.warning("Places are shown by their ids: %s", error)
        return cls(name)

    @classmethod
    def _load(cls, name: str) -> PlaceNames:
        def read(version: str, manifest: Manifest) -> PlaceNames:
            first, start = divmod(names_start(manifest), manifest.part)
            return cls(name, version, read_regions(read_data(name, version, manifest, first)[start:]))

        return load_version(name, read)

    def newest(self) -> PlaceNames:
        if not self.version:
            return self.load(self.name)
        is_current = at_once(current_version(get_client(), self.name)) == self.version
        return self if is_current else self._load(self.name)

    def find(self, place: str) -> str:
        parts = place.split("/", 2)
        if parts[0] not in self._names:
            return place
        country, _ = self._names[parts[0]]
        _, region = self._names.get("/".join(parts[:2]), ("", ""))
        codes = [part.replace("%2F", "/").replace("%25", "%") for part in parts[1:]]
        shown = [country, *([region or codes[0]] if codes else []), *codes[1:]]
        return ", ".join(filter(None, reversed(shown)))


def place_name(place: str, *, table: str = DEFAULT) -> str:
    """
    Return the name of the place with this id of Place.id_at(): "California, United States" for "US/CA". Return the id
    itself if *table* does not have its country, or cannot be read. Raises InvalidName for *table*.
    """
    check_name("geo table", table)
    return kept(PlaceNames, table).get().find(place)
