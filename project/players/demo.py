"""Demo data: a made-up table of addresses, unless another was imported."""

from __future__ import annotations

import logging

from components.exceptions import GeoTableDamaged, RedisUnavailable
from components.services.geo import import_places, look

from .geography import BLOCKS, LOCATIONS

logger = logging.getLogger(__name__)

_SOURCE = f"{BLOCKS.name}, {LOCATIONS.name}"


def load() -> None:
    """Import the table; a second import is the same version."""
    try:
        found = look()
        if found is None or found.source == _SOURCE:
            import_places(BLOCKS, LOCATIONS)
    except (GeoTableDamaged, RedisUnavailable) as error:
        logger.warning("the table of addresses is not imported; run importgeoip (%s)", error)
