"""
The stored form of lines and of file names.

The lines of a chunk are a frame of zstd, level 1, which costs little and takes a quarter of the space. The first
bytes of the frame identify the format: a release that finds other bytes is older than the one that wrote them.

The name of a file may have any bytes. It is stored with URL quoting, so that it has no blanks and fits into a record.
"""

import json
from collections.abc import Mapping
from types import ModuleType
from typing import Any
from urllib.parse import quote, unquote

from components.exceptions import ExtraNotInstalled, UnknownFormat

MAGIC = b"\x28\xb5\x2f\xfd"
_LEVEL = 1
#: The largest chunk; a frame that claims to be larger is refused.
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
    """Return the stored form of lines."""
    packed: bytes = zstandard().ZstdCompressor(level=_LEVEL).compress(lines)
    return packed


def most(size: int) -> int:
    """Return the most bytes that *size* bytes can have when compressed: random data become a little larger."""
    return size + size // 256 + 64


def decompress(payload: bytes) -> bytes:
    """Return the lines of a stored chunk. Raises UnknownFormat."""
    package = zstandard()
    size = package.frame_content_size(payload) if payload.startswith(MAGIC) else -1
    if not 0 <= size <= LARGEST:
        raise UnknownFormat(
            "This release does not know the format of a chunk of logs. Let workers of the newer release count it."
        )
    lines: bytes = package.ZstdDecompressor().decompress(payload)
    return lines


def read_fields(text: bytes, kinds: Mapping[str, tuple[type, ...]]) -> dict[str, Any]:
    """
    Return those fields of a JSON object that this release can read, by the types of their values in *kinds*: another
    release may have written it.
    """
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        told = None
    found = told if isinstance(told, dict) else {}
    return {name: found[name] for name, types in kinds.items() if type(found.get(name)) in types}


def write_name(name: str) -> str:
    """Return the stored form of a file name."""
    return quote(name, errors="surrogateescape")


def read_name(stored: str) -> str:
    """Return the name of a file, in one line."""
    return unquote(stored, errors="surrogateescape").replace("\n", "?")
