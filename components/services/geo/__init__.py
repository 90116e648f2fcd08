"""Where addresses live: ranges of IPv4 and IPv6 and their places, from the files of geolocation databases."""

from components.services.geo.importing import import_places
from components.services.geo.lookups import alocate, forget, locate
from components.services.geo.names import place_name
from components.services.geo.ranges import Ipv4Ranges, Ipv6Ranges
from components.services.geo.records import UNKNOWN, Imported, Level, Place, TableInfo
from components.services.geo.storing import remove
from components.services.geo.tables import DEFAULT as DEFAULT_TABLE
from components.services.geo.tables import GeoTable, alook, look

__all__ = [
    "DEFAULT_TABLE",
    "UNKNOWN",
    "GeoTable",
    "Imported",
    "Ipv4Ranges",
    "Ipv6Ranges",
    "Level",
    "Place",
    "TableInfo",
    "alocate",
    "alook",
    "forget",
    "import_places",
    "locate",
    "look",
    "place_name",
    "remove",
]
