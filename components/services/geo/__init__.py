"""Places of addresses: ranges of IPv4 and IPv6 and their places, from the files of geolocation databases."""

# Read table.py, importing.py and builder.py, then lookups.py.

from components.services.geo.facts import UNKNOWN, Imported, Level, Place, TableInfo
from components.services.geo.importing import import_places, remove
from components.services.geo.lookups import Kept, alocate, forget, locate, place_name
from components.services.geo.outlines import Outline, Outlines, country_outlines
from components.services.geo.ranges import Ipv4Ranges, Ipv6Ranges
from components.services.geo.table import DEFAULT as DEFAULT_TABLE
from components.services.geo.table import GeoTable, PerhapsTable, alook, look

__all__ = [
    "DEFAULT_TABLE",
    "UNKNOWN",
    "GeoTable",
    "Imported",
    "Ipv4Ranges",
    "Ipv6Ranges",
    "Kept",
    "Level",
    "Outline",
    "Outlines",
    "PerhapsTable",
    "Place",
    "TableInfo",
    "alocate",
    "alook",
    "country_outlines",
    "forget",
    "import_places",
    "locate",
    "look",
    "place_name",
    "remove",
]
