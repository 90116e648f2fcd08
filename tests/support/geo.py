"""Writers of geolocation databases: of a minimal MaxMind DB, and of CSV files."""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Any, TypeAlias

from components.services.geo import Imported, import_places

#: A node of the tree: what a bit of 0 and a bit of 1 lead to, another node, a record or nothing.
Node: TypeAlias = list[Any]


@dataclass(frozen=True)
class Number:
    """A number of a given type: 5 has 16 bits, 6 has 32, 9 has 64."""

    kind: int
    value: int


def city(country: str, region: str = "", name: str = "") -> dict[str, Any]:
    """Return a record like those of GeoLite2-City, whose names are the codes in lower case."""
    record: dict[str, Any] = {"country": {"iso_code": country, "names": {"en": country.lower()}}}
    if region:
        record["subdivisions"] = [{"iso_code": region, "names": {"de": "nein", "en": region.lower()}}]
    if name:
        record["city"] = {"geoname_id": 1, "names": {"en": name}}
    return record


def write_mmdb(
    path: Path,
    networks: Mapping[str, Any],
    *,
    record_size: int = 24,
    ip_version: int = 6,
    database_type: str = "Test-City",
    aliases: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
) -> Path:
    """
    Write the records of *networks*, which do not overlap; all of IPv4 is found again below *aliases*. *metadata* may
    be false.
    """
    root: Node = [None, None]
    for text, record in networks.items():
        network = ip_network(text)
        above = 96 if network.version == 4 and ip_version == 6 else 0
        bits = f"{int(network.network_address):0{network.max_prefixlen}b}"[: network.prefixlen]
        _insert(root, "0" * above + bits, record)
    ipv4 = root
    for _ in range(96 if aliases else 0):
        ipv4 = ipv4[0]
    for text in aliases:
        alias = ip_network(text)
        _insert(root, f"{int(alias.network_address):0128b}"[: alias.prefixlen], ipv4)
    nodes, numbers = _numbered(root)
    data, places = b"", {}
    for record in networks.values():
        if id(record) not in places:
            places[id(record)] = len(data)
            data += encode(record)

    def value(child: Any) -> int:
        if child is None:
            return len(nodes)
        if isinstance(child, list):
            return numbers[id(child)]
        return len(nodes) + 16 + places[id(child)]

    tree = b"".join(_pack(value(left), value(right), record_size) for left, right in nodes)
    said = {
        "binary_format_major_version": Number(5, 2),
        "binary_format_minor_version": Number(5, 0),
        "build_epoch": Number(9, 1_790_000_000),
        "database_type": database_type,
        "description": {"en": "for tests"},
        "ip_version": Number(5, ip_version),
        "languages": ["en"],
        "node_count": Number(6, len(nodes)),
        "record_size": Number(5, record_size),
        **(metadata or {}),
    }
    path.write_bytes(tree + bytes(16) + data + b"\xab\xcd\xefMaxMind.com" + encode(said))
    return path


def _insert(root: Node, bits: str, record: Any) -> None:
    node = root
    for bit in map(int, bits[:-1]):
        if node[bit] is None:
            node[bit] = [None, None]
        node = node[bit]
    node[int(bits[-1])] = record


def _numbered(root: Node) -> tuple[list[Node], dict[int, int]]:
    nodes, numbers = [root], {id(root): 0}
    for node in nodes:  # grows meanwhile
        for child in node:
            if isinstance(child, list) and id(child) not in numbers:
                numbers[id(child)] = len(nodes)
                nodes.append(child)
    return nodes, numbers


def _pack(left: int, right: int, size: int) -> bytes:
    if size == 28:  # the fourth byte has the highest bits of both
        middle = (left >> 24 & 15) << 4 | right >> 24 & 15
        return (left & 0xFFFFFF).to_bytes(3, "big") + bytes([middle]) + (right & 0xFFFFFF).to_bytes(3, "big")
    return left.to_bytes(size // 8, "big") + right.to_bytes(size // 8, "big")


def encode(value: Any) -> bytes:
    match value:
        case str():
            return _control(2, len(value.encode())) + value.encode()
        case bool():
            return _control(14, int(value))
        case Number():
            raw = value.value.to_bytes(8, "big").lstrip(b"\0")
            return _control(value.kind, len(raw)) + raw
        case int():
            return encode(Number(6, value))
        case float():
            return _control(3, 8) + struct.pack(">d", value)
        case dict():
            inner = b"".join(encode(key) + encode(each) for key, each in value.items())
            return _control(7, len(value)) + inner
        case list():
            return _control(11, len(value)) + b"".join(map(encode, value))
    raise TypeError(value)


def _control(kind: int, size: int) -> bytes:
    assert size < 285
    more = b"" if size < 29 else bytes([size - 29])
    low = min(size, 29)
    return (bytes([kind << 5 | low]) if kind < 8 else bytes([low, kind - 7])) + more


def write_old_csv(
    folder: Path, blocks: Sequence[tuple[object, object, object]], locations: Sequence[tuple[object, ...]]
) -> tuple[Path, Path]:
    """
    Write the two files of the book: blocks (from, to, number of a location), and locations (number, country, region,
    city).
    """
    first, second = folder / "GeoLiteCity-Blocks.csv", folder / "GeoLiteCity-Location.csv"
    lines = ["Copyright (c) 2011 MaxMind Inc.  All Rights Reserved.", "startIpNum,endIpNum,locId"]
    lines += [",".join(f'"{each}"' for each in block) for block in blocks]
    first.write_text("\n".join(lines) + "\n")
    lines = [lines[0], "locId,country,region,city,postalCode,latitude,longitude,metroCode,areaCode"]
    lines += [
        f'{number},"{country}","{region}","{name}","",1.0,2.0,,'
        for number, country, region, name in locations
    ]
    second.write_text("\n".join(lines) + "\n", encoding="latin-1")
    return first, second


def write_new_csv(folder: Path, blocks: Sequence[tuple[str, str]]) -> tuple[Path, Path]:
    """Write files of GeoLite2: blocks (network, number of a location); location 1 is Zürich, 2 is Germany."""
    first, second = folder / "GeoLite2-City-Blocks.csv", folder / "GeoLite2-City-Locations-en.csv"
    lines = ["network,geoname_id,registered_country_geoname_id,latitude"]
    first.write_text("\n".join([*lines, *(f"{network},{number},2,1.5" for network, number in blocks)]) + "\n")
    second.write_text(
        "\ufeffgeoname_id,locale_code,continent_code,continent_name,country_iso_code,country_name,"
        "subdivision_1_iso_code,subdivision_1_name,subdivision_2_iso_code,subdivision_2_name,city_name\n"
        '1,en,EU,Europe,CH,Switzerland,ZH,Zurich,,,"Zürich"\n'
        '2,en,EU,Europe,DE,Germany,,,,,""\n',
        encoding="utf-8",
    )
    return first, second


def import_networks(folder: Path, networks: Mapping[str, Any], **options: Any) -> Imported:
    """Make these networks the current version of the table."""
    return import_places(write_mmdb(folder / "test.mmdb", networks), **options)
