"""
Parsing of addresses in logs. Both kernels follow these rules; the compiled one leaves unusual addresses to Python.

The rules are those of Python's ipaddress: four numbers from 0 to 255 without leading zeros (some programs read these
as octal), or IPv6. An IPv6 address that contains an IPv4 one (::ffff:1.2.3.4) is that one. A zone (fe80::1%eth0) is
not allowed.
"""

from codecs import BOM_UTF8
from functools import lru_cache
from ipaddress import IPv6Address, ip_address

LONGEST = 45  # characters of an IPv6 address that ends as an IPv4 one does
REMEMBERED = 65_536  # addresses: visitors return, and reading one takes 3 µs


def parse_address(text: bytes) -> tuple[int, int] | None:
    """Return 4 or 6, and the address as a number; None if *text* is not an address. A UTF-8 BOM may precede it."""
    if text.startswith(BOM_UTF8):
        text = text[len(BOM_UTF8) :]
    return None if len(text) > LONGEST or b"%" in text else _parse(text)


@lru_cache(REMEMBERED)
def _parse(text: bytes) -> tuple[int, int] | None:
    try:
        address = ip_address(text.decode("ascii"))
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.version, int(address)
