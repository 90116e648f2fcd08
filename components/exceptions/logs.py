"""What can go wrong with logs: when they are handed out, read, located and counted."""

from components.exceptions.base import ComponentsError


class InvalidLevel(ComponentsError, ValueError):
    """There is no such level of places, or a place cannot be divided by it."""


class LogsFull(ComponentsError):
    """As many bytes of logs are in flight as the limit allows, and nobody made room in time."""


class ChunkTooLarge(ComponentsError, ValueError):
    """A chunk of logs is larger than all that may be in flight."""


class CopiedElsewhere(ComponentsError):
    """A file is copied up to another place than the one its next chunk begins at: read it again from there."""


class FileDiffers(ComponentsError):
    """A file begins as one that was copied, and differs from it, or is shorter, where it should go on."""


class FileDamaged(ComponentsError):
    """A file ends too early, or cannot be decompressed: what came before was read."""


class AggregationNotFound(ComponentsError):
    """No aggregation of this name takes part in the job: it has not joined, or it has left."""


class ChunkNotFound(ComponentsError):
    """The lines of a chunk are not in Redis: it was counted by others after its lease, or evicted."""


class ChunksLost(ComponentsError):
    """Others have claimed some of the chunks since, so nothing was added; *lost* says which."""

    def __init__(self, message: str, lost: frozenset[str]) -> None:
        super().__init__(message)
        self.lost = lost


class WorkersDiffer(ComponentsError):
    """Workers of one aggregation would count the same lines in different ways."""


class InvalidAddress(ComponentsError, ValueError):
    """What is to be located is no address of IPv4 or IPv6."""


class InvalidGeoSource(ComponentsError, ValueError):
    """A file that says where addresses live cannot be imported; the table is as it was."""


class GeoTableNotFound(ComponentsError):
    """There is no table of addresses of this name: none was ever imported."""


class GeoTableDamaged(ComponentsError):
    """Parts of a table of addresses are not in Redis any more, or are not what was written."""


class InvalidFormat(ComponentsError, ValueError):
    """A format of log lines is not known, or its regular expression cannot be used."""


class InvalidRanges(ComponentsError, ValueError):
    """Ranges of addresses overlap, are turned round, unsorted, or not stored as they must be."""


class UnknownKernel(ComponentsError, ValueError):
    """There is no kernel of this name to count logs with."""
