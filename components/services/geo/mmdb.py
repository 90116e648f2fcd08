"""
Ranges and places from a MaxMind DB: GeoLite2 and GeoIP2 of cities or countries, DB-IP, and databases of the same
structure.

The package maxminddb, which the extra "logs" installs, reads it in a process of its own (mmdb_reader.py): a file that
is damaged, or shrinks meanwhile, can crash the reader, which is written in C.
"""

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from components.exceptions import ExtraNotInstalled, InvalidGeoSource
from components.services.geo import mmdb_reader
from components.services.geo.builder import Builder

#: The mark before the metadata, near the end of the file.
MARK = b"\xab\xcd\xefMaxMind.com"
MARKED = 131_072  # bytes at the end of the file that have the mark


def read_mmdb(path: Path, builder: Builder) -> str:
    """
    Add a file to *builder*, and return a description for people. Raises InvalidGeoSource, ExtraNotInstalled, OSError.
    """
    try:
        import maxminddb  # noqa: F401
    except ImportError:
        raise ExtraNotInstalled(
            f"{path} is a MaxMind DB, which needs the package maxminddb. "
            "Run pip install 'django-redis-components[logs]'."
        ) from None
    builder.begin(path.name)
    with path.open("rb"):
        pass  # it can be opened
    command = [sys.executable, "-P", mmdb_reader.__file__, str(path)]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        try:
            return _take_over(path, process, builder)
        except (ValueError, OverflowError, OSError) as error:  # junk may cause any of them
            raise _not_whole(path, str(error)) from None
        finally:
            process.kill()


def _take_over(path: Path, process: subprocess.Popen[bytes], builder: Builder) -> str:
    numbers: list[int] = []
    assert process.stdout
    for line in process.stdout:
        message = json.loads(line)
        match message:
            case {"places": places, "ranges": ranges}:
                numbers += [builder.place(*names) for names in places]
                for version, first, last, place in ranges:
                    family = builder.ipv4 if version == 4 else builder.ipv6
                    builder.add(family, first, last, numbers[place])
            case {"odd": network, "type": kind}:
                raise InvalidGeoSource(
                    f"{path}, network {network}: its record is not like those of GeoLite2 City or Country. "
                    f"The file is a {kind!r}."
                )
            case {"wrong": said}:
                raise _not_whole(path, said)
            case {"type": kind, "built": built}:
                return f"{kind}, built {datetime.fromtimestamp(built, UTC):%Y-%m-%d}"
    raise _not_whole(path, f"its reader ended with {process.wait()}")


def _not_whole(path: Path, said: str) -> InvalidGeoSource:
    return InvalidGeoSource(
        f"{path} is not a whole MaxMind DB: {said.rstrip('.')}. It may be cut off. Download it again."
    )
