"""Counting of blocks: what is taken, what is told of rejected lines; and tables of ranges."""

from __future__ import annotations

import array
from collections.abc import Callable
from datetime import date

import pytest

from components.exceptions import InvalidValue
from components.services.logs.lines import (
    KERNELS,
    Book,
    Counting,
    PlaceTable,
    Ranges,
    Reason,
    Rejected,
    choose_kernel,
)

GOOD = b"1.2.3.4 2011-10-10 13:55:36 achievement-762\n"
DAY = date(2011, 10, 10)


def table() -> PlaceTable:
    return PlaceTable(ipv4_ranges([(0x01000000, 0x01FFFFFF, 5)]))


def ipv4_ranges(ranges: list[tuple[int, int, int]]) -> Ranges:
    return Ranges(*(array.array("I", column) for column in zip(*ranges, strict=True)))


@pytest.fixture
def counting() -> Counting:
    return Counting(table(), Book(), kernel="naive")


def test_a_chunk_that_was_taken_is_not_taken_again(counting: Counting) -> None:
    counting.add(GOOD * 3 + b"junk\n", source="a.log")

    first, second = counting.take(), counting.take()
    counting.add(GOOD)
    third = counting.take()

    assert (first.lines, first.counts, first.rejected) == (4, {(DAY, 5): 3}, {Reason.FORMAT: 1})
    assert (second.lines, second.counts, second.rejected, second.samples) == (0, {}, {}, ())
    assert (second.first_day, second.last_day) == (None, None)
    assert (third.lines, third.counts, third.rejected) == (1, {(DAY, 5): 1}, {})


def test_blocks_are_added_up(counting: Counting) -> None:
    for number in range(3):
        counting.add(GOOD * number + b"9.9.9.9 2011-10-11 x\n")

    counts = counting.take()

    assert counts.counts == {(DAY, 5): 3, (date(2011, 10, 11), 0): 3}
    assert (counts.first_day, counts.last_day) == (DAY, date(2011, 10, 11))


def test_rejected_lines_are_told_with_their_place_and_beginning(counting: Counting) -> None:
    counting.add(GOOD + b"\0\xff" * 500 + b"\r\n", source="a.log", offset=1_000)
    counting.add(b"1.2.3.4 2011-02-29 x\n\n1.2.3 2011-10-10", source="b.log")

    assert counting.take().samples == (
        Rejected(Reason.FORMAT, "a.log", 2, 1_000 + len(GOOD), b"\0\xff" * 100),
        Rejected(Reason.EMPTY, "b.log", 2, 21, b""),
        Rejected(Reason.ADDRESS, "b.log", 3, 22, b"1.2.3 2011-10-10"),
        Rejected(Reason.DATE, "b.log", 1, 0, b"1.2.3.4 2011-02-29 x"),
    )


def test_all_rejected_lines_are_counted_and_five_of_each_reason_are_kept(counting: Counting) -> None:
    for number in range(3):
        counting.add(b"".join(b"junk-%d-%d\n" % (number, line) for line in range(3)) + b"\n" * 10)

    counts = counting.take()

    assert counts.rejected == {Reason.FORMAT: 9, Reason.EMPTY: 30}
    kept = [b"junk-0-0", b"junk-0-1", b"junk-0-2", b"junk-1-0", b"junk-1-1"]
    assert [each.head for each in counts.samples if each.reason is Reason.FORMAT] == kept
    assert len(counts.samples) == 10


@pytest.mark.parametrize("place", [1, 65_534, 65_535, 65_536, 2**31 - 1])
def test_places_are_not_taken_for_something_else(place: int) -> None:
    found = PlaceTable(ipv4_ranges([(0x01020304, 0x01020304, 7), (0x02000000, 0x020001FF, place)]))
    columns = choose_kernel("naive").columns(
        b"1.2.3.4 2011-10-10\n1.2.3.5 2011-10-10\n2.0.1.255 2011-10-10\n2.0.2.0 2011-10-10", Book()
    )

    for kernel in KERNELS:
        places = choose_kernel(kernel).places(columns, found)
        assert places.tolist() == [7, 0, place, 0]


def test_places_can_be_counted_by_the_group_they_belong_to() -> None:
    ranges = ipv4_ranges(
        [(0x01000000, 0x0100FFFF, 1), (0x01010000, 0x01FFFFFF, 2), (0x02000000, 0x02FFFFFF, 3)]
    )
    one = (1).to_bytes(16, "big")
    countries = array.array("I", [0, 9, 9, 4])
    found = PlaceTable(ranges, Ranges(one, one, array.array("I", [3])), groups=countries)
    counting = Counting(found, Book(), kernel="naive")

    counting.add(GOOD + b"1.0.0.1 2011-10-10\n2.0.0.0 2011-10-10\n::1 2011-10-10\n3.0.0.0 2011-10-10\n")

    assert counting.take().counts == {(DAY, 9): 2, (DAY, 4): 2, (DAY, 0): 1}


ONE, TWO = (1).to_bytes(16, "big"), (2).to_bytes(16, "big")


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: PlaceTable(ipv4_ranges([(1, 2, 1), (2, 3, 1)])), "IPv4 range number 1 .*overlap"),
        (
            lambda: PlaceTable(ipv4_ranges([(1, 2, 1), (9, 9, 1), (4, 5, 1)])),
            "IPv4 range number 2 .*not sorted",
        ),
        (lambda: PlaceTable(ipv4_ranges([(1, 2, 1), (5, 4, 1)])), "IPv4 range number 2 ends before"),
        (
            lambda: PlaceTable(Ranges(), Ranges(TWO, ONE, array.array("I", [1]))),
            "IPv6 range number 1 ends before",
        ),
        (
            lambda: PlaceTable(Ranges(b"\0" * 4, b"\0" * 8, b"\0" * 4)),
            "1 starts, 2 ends and 1 places of IPv4",
        ),
        (lambda: PlaceTable(Ranges(), Ranges(b"\0" * 8, b"\0" * 8, b"\0" * 4)), "IPv6 ranges: .* 16 bytes"),
        (lambda: PlaceTable(ipv4_ranges([(1, 2, 2**31)])), "2,147,483,648"),
        (
            lambda: PlaceTable(ipv4_ranges([(1, 2, 3)]), groups=array.array("I", [0, 9, 9])),
            "place 3 has none",
        ),
    ],
)
def test_ranges_that_cannot_be_right_are_refused(make: Callable[[], object], complaint: str) -> None:
    with pytest.raises(InvalidValue, match=complaint):
        make()
