"""Lookups against a naive search, over ranges that are made up, and what of them is refused. No Redis is needed."""

from __future__ import annotations

import sys
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from components.exceptions import InvalidGeoSource, InvalidValue
from components.services.geo import GeoTable, Place
from components.services.geo.builder import Builder, Family
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
            return [
                (start, end - 1, place) for start, end, place in zip(edges, edges[1:], places, strict=False)
            ]
        return [
            (start, end, place) for start, end, place in zip(edges[::2], edges[1::2], places, strict=False)
        ]

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


@settings(max_examples=40, deadline=None)
@given(ranges(V4), ranges(V6), st.lists(numbers(V4)), st.lists(numbers(V6)))
def test_lookups_are_those_of_a_naive_search(
    four: list[Range], six: list[Range], ipv4: list[int], ipv6: list[int]
) -> None:
    builder = Builder()
    builder.begin("test")
    fill(builder, builder.ipv4, [(0, 0, 1)] if not any(place for *_, place in four + six) else four)
    fill(builder, builder.ipv6, six)
    if not any(place for *_, place in four + six):
        four = [(0, 0, 1)]
    made = table(builder)

    ipv4 += [
        point for start, end, _ in four for point in (start - 1, start, end, end + 1) if 0 <= point <= V4
    ]
    ipv6 += [point for start, end, _ in six for point in (start - 1, start, end, end + 1) if 0 <= point <= V6]
    for number in ipv4:
        place = made.find(IPv4Address(number))
        assert (place and place.country) == naive(four, number)
    for number in ipv6:
        address = IPv6Address(number)
        if address.ipv4_mapped is None:
            place = made.find(address)
            assert (place and place.country) == naive(six, number)


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


@settings(max_examples=30, deadline=None)
@given(ranges(V4), st.randoms(use_true_random=False))
def test_the_order_of_ranges_does_not_matter(found: list[Range], random: object) -> None:
    kept = [(start, end, 1 + place % 2) for start, end, place in found]
    shuffled = list(kept)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    tables = []
    for each in (kept, shuffled):
        builder = Builder()
        builder.begin("test")
        builder.place("A", "", "", "", "")
        builder.place("B", "", "", "", "")
        fill(builder, builder.ipv4, each)
        tables.append(table(builder))

    one, other = tables
    assert one.version == other.version
    assert all(start > end + 1 or place != before for start, end, place, before in _pairs(one))


def _pairs(made: GeoTable) -> list[tuple[int, int, int, int]]:
    four = made.ipv4
    return [
        (four.starts[at + 1], four.ends[at], four.places[at + 1], four.places[at])
        for at in range(len(four) - 1)
    ]


@pytest.mark.parametrize("is_ipv6", [False, True])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((10, 20), (20, 30)),
        ((20, 30), (10, 20)),
        ((10, 30), (15, 16)),
        ((15, 16), (10, 30)),
        ((10, 20), (10, 20)),
    ],
)
def test_ranges_that_overlap_are_both_told(
    first: tuple[int, int], second: tuple[int, int], is_ipv6: bool
) -> None:
    builder = Builder()
    builder.begin("blocks.csv")
    family = builder.ipv6 if is_ipv6 else builder.ipv4
    place = builder.place("A", "", "", "", "")
    builder.add(family, 1, 2, place, 3)
    builder.add(family, *first, place, 4)
    builder.add(family, *second, place, 5)

    with pytest.raises(InvalidGeoSource) as refused:
        builder.finish()

    said = str(refused.value)
    shown = [f"{family._address(number)}" for number in (*second, *first)]
    assert said.startswith(
        f"blocks.csv, line 5: {shown[0]} to {shown[1]} overlaps {shown[2]} to {shown[3]} of "
    )
    assert "of blocks.csv, line 4." in said


@pytest.mark.parametrize(("start", "end"), [(2, 1), (-1, 1), (0, V4 + 1)])
def test_a_range_that_cannot_be_is_reported(start: int, end: int) -> None:
    builder = Builder()
    builder.begin("blocks.csv")

    with pytest.raises(InvalidGeoSource, match=f"blocks.csv, line 7: the range from {start} to {end}"):
        builder.add(builder.ipv4, start, end, 1, 7)


def test_a_machine_of_the_other_byte_order_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    builder = Builder()
    builder.begin("test")
    fill(builder, builder.ipv4, [(1, 258, 1)])
    fill(builder, builder.ipv6, [(2**80, 2**100, 2)])
    little = write_table(builder)

    monkeypatch.setattr(sys, "byteorder", "big")
    swapped = write_table(builder)
    found = table(builder)

    four = slice(2 * 16, 2 * 16 + 4)
    assert (bytes(little[four]), bytes(swapped[four])) == (b"\1\0\0\0", b"\0\0\0\1")
    assert len(swapped) == len(little)
    assert found.find("0.0.1.2") == Place("A", "A")
    assert found.find("0.0.1.3") is None
    assert found.find(IPv6Address(2**100)) == Place("B", "B")
