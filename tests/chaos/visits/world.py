"""
A made-up world: networks of IPv4 and IPv6 with gaps between them, who lives there, and addresses of visitors.

It is the same in each run. Where an address lives is found by the standard library alone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from random import Random
from typing import Any, TypeAlias

from tests.support.geo import city

Network: TypeAlias = IPv4Network | IPv6Network
#: The ids of its country, of its region and of its city, or of what is known of them.
Ids: TypeAlias = tuple[str, str, str]

UNKNOWN = ("unknown", "unknown", "unknown")
ADDRESSES = 3_000
_NETWORKS = {4: 150, 6: 20}
#: By version: where the first network begins, bits of an address, and how long prefixes may be.
_SPACES = {4: ("16.0.0.0", 32, (13, 28)), 6: ("2001:db8::", 128, (40, 64))}
_COUNTRIES = ("US", "DE", "FR", "BR", "JP", "IN", "ZA", "AU")


def places() -> list[tuple[str, ...]]:
    """Country, region and city: of some only the country is known, of some no city."""
    found: list[tuple[str, ...]] = []
    for number, country in enumerate(_COUNTRIES):
        found.append((country,))
        for region in "ABC"[: 1 + number % 3]:
            found.append((country, region))
            found += [(country, region, f"{region}-Town {each}") for each in range(1 + number)]
    return found


@cache
def networks() -> dict[Network, tuple[str, ...]]:
    """Apart from each other, each with its place; in order."""
    random, there = Random(11), places()
    return {network: random.choice(there) for version in _SPACES for network in _networks(random, version)}


def _networks(random: Random, version: int) -> Iterator[Network]:
    first, bits, prefixes = _SPACES[version]
    at = int(ip_address(first))
    for _ in range(_NETWORKS[version]):
        size = 1 << bits - random.randint(*prefixes)
        at += random.choice((0, 1, 300)) * (random.random() < 0.4)
        at = -(-at // size) * size
        kind = IPv4Address if version == 4 else IPv6Address
        yield ip_network(f"{kind(at)}/{bits - size.bit_length() + 1}")
        at += size


def records() -> dict[str, Any]:
    """For a MaxMind DB: the same object for the same place."""
    of = {place: city(*place) for place in places()}
    return {str(network): of[place] for network, place in networks().items()}


@cache
def _columns(version: int) -> tuple[list[int], list[int], list[tuple[str, ...]]]:
    there = [(network, place) for network, place in networks().items() if network.version == version]
    firsts = [int(network[0]) for network, _place in there]
    return firsts, [int(network[-1]) for network, _place in there], [place for _network, place in there]


@cache
def ids_of(text: str) -> Ids:
    """Where the address lives that is written so."""
    address = ip_address(text)
    if isinstance(address, IPv6Address):
        address = address.ipv4_mapped or address
    firsts, lasts, found = _columns(address.version)
    at = bisect_right(firsts, int(address)) - 1
    if at < 0 or int(address) > lasts[at]:
        return UNKNOWN
    place = found[at]
    return place[0], "/".join(place[:2]), "/".join(place)


@cache
def addresses() -> list[str]:
    """Of visitors; those come most often that stand first. Many stand at the border of a network, or beside it."""
    random, there = Random(7), list(networks())
    found: dict[str, None] = {}
    while len(found) < ADDRESSES:
        network = random.choice(there)
        first, last = int(network[0]), int(network[-1])
        number = random.choice(
            (first - 1, first, last, last + 1, *(random.randint(first, last) for _ in "12345"))
        )
        found[_written(random, number, network.version)] = None
    return list(found)


def _written(random: Random, number: int, version: int) -> str:
    if version == 4:
        return ("::ffff:" if random.random() < 0.05 else "") + str(IPv4Address(number))
    return random.choice((str, lambda each: each.exploded.upper()))(IPv6Address(number))
