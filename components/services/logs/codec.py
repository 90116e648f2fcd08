"""
How the lines of a chunk lie in Redis: a frame of zstd, level 1, which costs little and takes a quarter of the space.

The frame's first bytes are the number of the format: whoever finds others is older than what was written.
"""

from __future__ import annotations

from types import ModuleType

from components.exceptions import ExtraNotInstalled, UnknownFormat

MAGIC = b"\x28\xb5\x2f\xfd"
_LEVEL = 1
#: No chunk is larger, so no frame may say that it is.
LARGEST = 64 * 1024 * 1024


def zstandard() -> ModuleType:
    """The package, imported when it is needed: all that needs it not works without. Raises ExtraNotInstalled."""
    try:
        import zstandard
    except ImportError:
        raise ExtraNotInstalled(
            "Logs in Redis, and .zst files, need zstandard, which is not installed: pip install 'components[logs]'."
        ) from None
    return zstandard


def compress(lines: bytes) -> bytes:
    packed: bytes = zstandard().ZstdCompressor(level=_LEVEL).compress(lines)
    return packed


def most(size: int) -> int:
    """How many bytes *size* bytes can have, compressed: junk becomes a little larger."""
    return size + size // 256 + 64


def decompress(payload: bytes) -> bytes:
    """Raises UnknownFormat."""
    package = zstandard()
    size = package.frame_content_size(payload) if payload.startswith(MAGIC) else -1
    if not 0 <= size <= LARGEST:
        raise UnknownFormat(
            "A chunk of logs is in no format that this release knows: let workers of the new release count it."
        )
    lines: bytes = package.ZstdDecompressor().decompress(payload)
    return lines
