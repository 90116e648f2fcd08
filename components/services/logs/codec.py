"""
How lines and names of files are stored in Redis.

The lines of a chunk are a frame of zstd, level 1, which costs little and takes a quarter of the space. The first
bytes of the frame are the number of the format: a release that finds other bytes is older than what was written.

The name of a file may have any bytes. It is stored as in a URL, so that it has no blanks and can stand in a record.
"""

from __future__ import annotations

from types import ModuleType
from urllib.parse import quote, unquote

from components.exceptions import ExtraNotInstalled, UnknownFormat

MAGIC = b"\x28\xb5\x2f\xfd"
_LEVEL = 1
#: No chunk is larger, so no frame may say that it is.
LARGEST = 64 * 1024 * 1024


def zstandard() -> ModuleType:
    """Return the package, which is imported when it is first needed. Raises ExtraNotInstalled."""
    try:
        import zstandard
    except ImportError:
        raise ExtraNotInstalled(
            "Logs in Redis and .zst files need zstandard, which is not installed. "
            "Run pip install 'django-redis-components[logs]'."
        ) from None
    return zstandard


def compress(lines: bytes) -> bytes:
    """Return lines as they are stored."""
    packed: bytes = zstandard().ZstdCompressor(level=_LEVEL).compress(lines)
    return packed


def most(size: int) -> int:
    """Return how many bytes *size* bytes can have, compressed: junk becomes a little larger."""
    return size + size // 256 + 64


def decompress(payload: bytes) -> bytes:
    """Return the lines of what is stored. Raises UnknownFormat."""
    package = zstandard()
    size = package.frame_content_size(payload) if payload.startswith(MAGIC) else -1
    if not 0 <= size <= LARGEST:
        raise UnknownFormat(
            "This release does not know the format of a chunk of logs. Let workers of the newer release count it."
        )
    lines: bytes = package.ZstdDecompressor().decompress(payload)
    return lines


def write_name(name: str) -> str:
    """Return the name of a file as it is stored."""
    return quote(name, errors="surrogateescape")


def read_name(stored: str) -> str:
    """Return the name of a file, in one line."""
    return unquote(stored, errors="surrogateescape").replace("\n", "?")
