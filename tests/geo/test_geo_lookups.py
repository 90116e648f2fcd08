"""Lookups against a naive search, over ranges that are made up; what places are called; and the map."""

import asyncio
import logging
import re
from ipaddress import IPv4Address, IPv6Address, ip_address
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from redis import Redis

from components.exceptions import InvalidValue
from components.services.geo import (
    GeoTable,
    alocate,
    country_outlines,
    forget,
    importing,
    layout,
    locate,
    lookups,
    place_name,
)
from components.services.geo.builder import Builder, Family
from components.services.geo.keys import TableKeys
from components.services.geo.layout import (
    Manifest,
    compress,
    cut,
    decompress,
    digest,
    version_of,
    write_table,
)
from components.services.geo.table import parse
from components.testing import redis_at
from tests.support.geo import city, import_networks

Patch, Log = pytest.MonkeyPatch, pytest.LogCaptureFixture

V4, V6 = 2**32 - 1, 2**128 - 1
#: From, to, which place.
Range = tuple[int, int, int]


def table(builder: Builder) -> GeoTable:
    builder.finish()
    data = write_table(builder)
    read = bytearray()
    for part in cut(data):
        read += decompress(compress(part), len(part), digest(part))
    ipv4, ipv6 = len(builder.ipv4.places), len(builder.ipv6.places)
    manifest = Manifest(ipv4, ipv6, len(data), len(data), 0, [], "test")
    return GeoTable("test", version_of(data, ipv4, ipv6), read, manifest)


def numbers(most: int) -> st.SearchStrategy[int]:
    """Addresses, many of them close to each other, to words and to the ends."""
    words = [0, 2**32, 2**63, 2**64, 2**65, most]
    close = st.builds(lambda at, by: min(most, max(0, at + by)), st.sampled_from(words), st.integers(-20, 20))
    return close | st.integers(0, most)


def ranges(most: int) -> st.SearchStrategy[list[Range]]:
    """Ranges that do not overlap, of which many are neighbours, in any order."""

    def pair(points: set[int], places: list[int], is_dense: bool) -> list[Range]:
        edges = sorted(points)
        if is_dense:  # each begins where the one before ends
            edges = [edge for start, end in pairwise(edges) for edge in (start, end - 1)]
        return [*zip(edges[::2], edges[1::2], places, strict=False)]

    places = st.lists(st.integers(0, 3), min_size=40, max_size=40)
    some = st.builds(pair, st.sets(numbers(most), min_size=2, max_size=40), places, st.booleans())
    return some.flatmap(st.permutations)


def fill(builder: Builder, family: Family, found: list[Range]) -> None:
    for start, end, place in found:
        builder.add(family, start, end, builder.place(*["", *"ABC"][place : place + 1], "", "", "", ""))


def naive(found: list[Range], number: int) -> str | None:
    for start, end, place in found:
        if start <= number <= end and place:
            return " ABC"[place]
    return None


@settings(max_examples=40)
@given(ranges(V4), ranges(V6), st.lists(numbers(V4)), st.lists(numbers(V6)))
def test_lookups_find_what_a_loop_finds(
    four: list[Range], six: list[Range], ipv4: list[int], ipv6: list[int]
) -> None:
    if not any(place for *_, place in four + six):
        four = [(0, 0, 1)]
    builder = Builder()
    builder.begin("test")
    fill(builder, builder.ipv4, four)
    fill(builder, builder.ipv6, six)
    made = table(builder)

    for found, points, kind, most in ((four, ipv4, IPv4Address, V4), (six, ipv6, IPv6Address, V6)):
        points += [point for start, end, _ in found for point in (start - 1, start, end, end + 1)]
        for number in (each for each in points if 0 <= each <= most):
            address = kind(number)
            if getattr(address, "ipv4_mapped", None) is None:
                place = made.find(address)
                assert (place and place.country) == naive(found, number)


addresses = st.ip_addresses().map(str)
#: Addresses, some of them with a mistake, and what looks like one.
texts = st.builds(
    lambda text, at, more: text[:at] + more + text[at:],
    addresses
    | st.lists(st.integers(0, 300), min_size=3, max_size=5).map(lambda some: ".".join(map(str, some))),
    st.integers(0, 20),
    st.sampled_from(["", "", "0", " ", ".", ":", "\n", "\0", "\u0663", "\ud800", "x", "/24", "%a"]),
)


@example("01.2.3.4")
@example("1.2.3")
@example("0x1.2.3.4")
@given(texts | st.text())
def test_an_address_is_what_python_takes_for_one(text: str) -> None:
    try:
        address = ip_address(text)
    except ValueError:
        with pytest.raises(InvalidValue):
            parse(text)
    else:
        inner = address.ipv4_mapped if isinstance(address, IPv6Address) else None
        assert parse(text) == ((int(inner), False) if inner else (int(address), address.version == 6))
        assert parse(address) == parse(text)


def test_outlines_are_known_by_the_codes_of_address_tables() -> None:
    countries = country_outlines().countries
    assert len(countries) == 235
    assert {"US", "DE", "BR", "XK", "TW", "SG", "MT"} <= countries.keys()
    assert "AQ" not in countries
    assert all(re.fullmatch("[A-Z]{2}", code) for code in countries)


def record(country: str, region: str = "", name: str = "") -> dict[str, Any]:
    """A record whose names are longer than the codes."""
    found = city(country, region, name)
    found["country"]["names"]["en"] = f"Land of {country}"
    for part in found.get("subdivisions", ()):
        part["names"]["en"] = f"Part {region}"
    return found


NETWORKS = {
    "1.0.0.0/24": record("US", "CA", "Mountain View"),
    "1.0.2.0/24": record("DE"),
    "1.0.3.0/24": record("CH", "B/E%", "Biel/Bienne"),
    "1.0.4.0/24": record("SG", "", "Singapore"),
    "2001:db8::/33": record("US", "NY", "Albany"),
}


@pytest.fixture
def always_looks(monkeypatch: Patch) -> None:
    """Each call looks for another version."""
    monkeypatch.setattr(lookups, "INTERVAL", 0)


@pytest.mark.parametrize("part", [40, layout.PART], ids=["small parts", "one part"])
def test_an_id_has_its_names(redis: Redis, tmp_path: Path, monkeypatch: Patch, part: int) -> None:
    monkeypatch.setattr(layout, "PART", part)
    monkeypatch.setattr(importing, "PART", part)
    import_networks(tmp_path, NETWORKS)

    names = {
        "US": "Land of US",
        "US/CA": "Part CA, Land of US",
        "US/NY": "Part NY, Land of US",
        "US/CA/Mountain View": "Mountain View, Part CA, Land of US",
        "US/CA/A town of none": "A town of none, Part CA, Land of US",
        "US/XX/Somewhere": "Somewhere, XX, Land of US",
        "US/": "Land of US",
        "DE": "Land of DE",
        "SG//Singapore": "Singapore, Land of SG",
        "CH/B%2FE%25": "Part B/E%, Land of CH",
        "CH/B%2FE%25/Biel%2FBienne": "Biel/Bienne, Part B/E%, Land of CH",
        "FR/IDF": "FR/IDF",
        "unknown": "unknown",
        "": "",
    }
    assert {place: place_name(place) for place in names} == names
    import_networks(tmp_path, {"1.0.0.0/8": city("DE")}, name="other")
    place = locate("1.0.2.1")
    assert place is not None
    assert place_name(place.id) == place.country_name == "Land of DE"
    assert [place_name("DE", table="other"), place_name("US", table="other")] == ["de", "US"]


def test_names_are_read_once_without_ranges(redis: Redis, tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(layout, "PART", 100)
    monkeypatch.setattr(importing, "PART", 100)
    version = import_networks(tmp_path, {f"{n}.0.0.0/8": city(f"X{n}") for n in range(2, 80, 2)}).version
    for number in range(39 * 12 // 100):  # nothing but ranges
        assert redis.delete(TableKeys("default").part(f"{version}:{number}"))

    assert place_name("X4") == "x4"
    redis.config_resetstat()
    assert [place_name(f"X{n}") for n in range(2, 80, 2)] == [f"x{n}" for n in range(2, 80, 2)]
    commands = redis.info("commandstats")
    assert set(commands) <= {"cmdstat_config", "cmdstat_config|resetstat", "cmdstat_info"}


def test_without_a_table_or_with_one_that_cannot_be_read_ids_are_shown(
    redis: Redis, tmp_path: Path, monkeypatch: Patch, caplog: Log
) -> None:
    redis.config_resetstat()
    assert [place_name("US"), place_name("US/CA/Palo Alto")] == ["US", "US/CA/Palo Alto"]
    assert redis.info("commandstats")["cmdstat_hget"]["calls"] == 1
    assert caplog.records == []

    monkeypatch.setattr(lookups, "INTERVAL", 0)
    forget()
    import_networks(tmp_path, NETWORKS)
    redis.delete(*redis.keys("*:part:*"))
    with caplog.at_level(logging.WARNING):
        assert place_name("US") == "US"
    assert "Places are shown by their ids: The geo table 'default', part 0 of 1" in caplog.text

    import_networks(tmp_path, NETWORKS, force=True)

    assert place_name("US") == "Land of US"


@pytest.mark.usefixtures("always_looks")
def test_names_are_told_without_redis(redis: Redis, tmp_path: Path, caplog: Log) -> None:
    version = import_networks(tmp_path, NETWORKS).version
    assert place_name("US") == "Land of US"
    found = locate("1.0.0.1")

    with redis_at("redis://127.0.0.1:1"):
        assert locate("1.0.0.1") == asyncio.run(alocate("1.0.0.1")) == found is not None
        assert [place_name("US"), place_name("DE")] == ["Land of US", "Land of DE"]
        assert place_name("US", table="other") == "US"

    assert [each.getMessage().split(":")[0] for each in caplog.records] == [
        *[f"Addresses are still located by version {version}"] * 2,  # names are kept apart
        "Places are shown by their ids",
    ]


@pytest.mark.usefixtures("always_looks")
def test_names_of_another_version_are_seen(redis: Redis, tmp_path: Path) -> None:
    before = place_name("US/CA")
    import_networks(tmp_path, NETWORKS)
    first = place_name("US/CA")
    import_networks(tmp_path, {"1.0.0.0/8": city("US", "CA")})
    assert [before, first, place_name("US/CA")] == ["US/CA", "Part CA, Land of US", "ca, us"]
