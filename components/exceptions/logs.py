"""The errors of logs: copying, reading, locating and counting."""

from components.exceptions.base import ComponentsError


class InvalidLevel(ComponentsError, ValueError):
    """There is no such level of places, or a place cannot be divided by it."""


class LogsFull(ComponentsError):
    """As many bytes of logs are in flight as the limit allows, and no room was made in time."""


class ChunkTooLarge(ComponentsError, ValueError):
    """A chunk of logs is larger than the limit of bytes in flight."""


class CopiedElsewhere(ComponentsError):
    """The next chunk does not begin where the copied part of the file ends; read the file again from that place."""


class FileDiffers(ComponentsError):
    """A file begins like one that was copied, but is shorter or differs from it later."""


class FileDamaged(ComponentsError):
    """A file ends too early or cannot be decompressed. Everything before that was read."""


class AggregationNotFound(ComponentsError):
    """The job has no aggregation with this name: it has not joined, or it has left."""


class ChunkNotFound(ComponentsError):
    """The lines of a chunk are not in Redis: others counted it after its lease, or Redis evicted it."""


class ChunksLost(ComponentsError):
    """Others have claimed some of the chunks, so nothing was added; *lost* has their ids."""

    def __init__(self, message: str, lost: frozenset[str]) -> None:
        super().__init__(message)
        self.lost = lost


class WorkersDiffer(ComponentsError):
    """Workers of one aggregation would count the same lines in different ways."""


class InvalidAddress(ComponentsError, ValueError):
    """The text to locate is not an IPv4 or IPv6 address."""


class InvalidGeoSource(ComponentsError, ValueError):
    """A file of a geolocation database cannot be imported; the table is unchanged."""


class GeoTableNotFound(ComponentsError):
    """There is no table of addresses with this name: none was ever imported."""


class GeoTableDamaged(ComponentsError):
    """Parts of a table of addresses are missing in Redis, or differ from what was written."""


class InvalidFormat(ComponentsError, ValueError):
    """A format of log lines is not known, or its regular expression cannot be used."""


class InvalidRanges(ComponentsError, ValueError):
    """Ranges of addresses overlap, are reversed or unsorted, or have the wrong type."""


class UnknownKernel(ComponentsError, ValueError):
    """There is no kernel with this name to count logs."""
