"""Counting of blocks: what is taken, what is told of rejected lines; and tables of ranges that cannot be right."""

from __future__ import annotations

import array
from datetime import date

import numpy as np
import pytest

from components.exceptions import InvalidValue
from components.services.logs.lines import (
    KERNELS,
    Book,
    Columns,
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


@pytest.fixture(params=KERNELS)
def counting(request: pytest.FixtureRequest) -> Counting:
    return Counting(table(), Book(), kernel=request.param)


def test_a_chunk_that_was_taken_is_not_taken_again(counting: Counting) -> None:
    counting.add(GOOD * 3 + b"junk\n", source="a.log")

    first, second = counting.take(), counting.take()
    counting.add(GOOD)
    third = counting.take()

    assert (first.lines, first.counts, first.rejected) == (4, {(DAY, 5): 3}, {Reason.FORMAT: 1})
    assert (second.lines, second.counts, second.rejected, second.samples) == (0, {}, {}, ())
    assert (third.lines, third.counts, third.rejected) == (1, {(DAY, 5): 1}, {})


def test_blocks_are_added_up(counting: Counting) -> None:
    for number in range(3):
        counting.add(GOOD * number + b"9.9.9.9 2011-10-11 x\n")

    counts = counting.take()

    assert counts.counts == {(DAY, 5): 3, (date(2011, 10, 11), 0): 3}
    assert (counts.first_day, counts.last_day) == (DAY, date(2011, 10, 11))


def test_nothing_has_neither_a_first_nor_a_last_day(counting: Counting) -> None:
    counting.add(b"\n\n")

    counts = counting.take()

    assert (counts.first_day, counts.last_day, counts.lines) == (None, None, 2)
    assert counts.rejected == {Reason.EMPTY: 2}


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
    assert [sample.head for sample in counts.samples if sample.reason is Reason.FORMAT] == [
        b"junk-0-0",
        b"junk-0-1",
        b"junk-0-2",
        b"junk-1-0",
        b"junk-1-1",
    ]
    assert len(counts.samples) == 10


def test_callbacks_are_given_columns(counting: Counting) -> None:
    block = GOOD + b"junk\n" + b"::1 2011-10-11 12:00:00 x\r\n"

    columns = counting.add(block)

    assert isinstance(columns, Columns)
    assert [block[start:end] for start, end in zip(columns.starts, columns.ends, strict=True)] == [
        GOOD[:-1],
        b"::1 2011-10-11 12:00:00 x",
    ]
    assert [block[rest:end] for rest, end in zip(columns.rests, columns.ends, strict=True)] == [
        b"13:55:36 achievement-762",
        b"12:00:00 x",
    ]
    assert [date.fromordinal(day) for day in columns.days] == [DAY, date(2011, 10, 11)]
    assert columns.addresses.tolist() == [0x01020304, 0]
    assert columns.ipv6_lines.tolist() == [1]
    assert columns.ipv6[0].tobytes() == (1).to_bytes(16, "big")


def test_a_table_without_ranges_knows_no_place() -> None:
    counting = Counting(PlaceTable(Ranges()), Book())

    counting.add(GOOD + b"::1 2011-10-10 x\n")

    assert counting.take().counts == {(DAY, 0): 2}


@pytest.mark.parametrize("place", [1, 65_534, 65_535, 65_536, 2**31 - 1])
def test_places_are_not_taken_for_something_else(place: int) -> None:
    found = PlaceTable(ipv4_ranges([(0x01020304, 0x01020304, 7), (0x02000000, 0x020001FF, place)]))
    columns = choose_kernel("naive").columns(
        b"1.2.3.4 2011-10-10\n1.2.3.5 2011-10-10\n2.0.1.255 2011-10-10\n2.0.2.0 2011-10-10", Book()
    )

    for kernel in KERNELS:
        places = choose_kernel(kernel).places(columns, found)
        assert places.tolist() == [7, 0, place, 0]


def test_a_place_of_more_than_31_bits_is_refused() -> None:
    with pytest.raises(
        InvalidValue, match=r"The largest place is 2,147,483,648; places are numbers below 2\^31"
    ):
        PlaceTable(ipv4_ranges([(1, 2, 2**31)]))


def test_places_can_be_counted_by_the_group_they_belong_to() -> None:
    ranges = ipv4_ranges(
        [(0x01000000, 0x0100FFFF, 1), (0x01010000, 0x01FFFFFF, 2), (0x02000000, 0x02FFFFFF, 3)]
    )
    one = (1).to_bytes(16, "big")
    countries = array.array("I", [0, 9, 9, 4])
    found = PlaceTable(ranges, Ranges(one, one, array.array("I", [3])), groups=countries)
    counting = Counting(found, Book())

    counting.add(GOOD + b"1.0.0.1 2011-10-10\n2.0.0.0 2011-10-10\n::1 2011-10-10\n3.0.0.0 2011-10-10\n")

    assert counting.take().counts == {(DAY, 9): 2, (DAY, 4): 2, (DAY, 0): 1}
    with pytest.raises(InvalidValue, match="There are groups for 3 places; place 3 has none"):
        PlaceTable(ranges, groups=countries[:3])


@pytest.mark.parametrize(
    ("ranges", "complaint"),
    [
        ([(1, 2, 1), (2, 3, 1)], "IPv4 range number 1 and the next one overlap"),
        (
            [(1, 2, 1), (9, 9, 1), (4, 5, 1)],
            "IPv4 range number 2 and the next one overlap, or are not sorted",
        ),
        ([(1, 2, 1), (5, 4, 1)], "IPv4 range number 2 ends before it starts"),
    ],
)
def test_ranges_that_cannot_be_right_are_refused(ranges: list[tuple[int, int, int]], complaint: str) -> None:
    with pytest.raises(InvalidValue, match=complaint):
        PlaceTable(ipv4_ranges(ranges))


def test_ipv6_ranges_are_checked_alike() -> None:
    one, two = (1).to_bytes(16, "big"), (2).to_bytes(16, "big")

    with pytest.raises(InvalidValue, match="IPv6 range number 1 ends before it starts"):
        PlaceTable(Ranges(), Ranges(two, one, np.ones(1, np.uint32)))


def test_buffers_of_the_wrong_length_are_refused() -> None:
    with pytest.raises(InvalidValue, match="There are 1 starts, 2 ends and 1 places of IPv4 ranges"):
        PlaceTable(Ranges(b"\0" * 4, b"\0" * 8, b"\0" * 4))
    with pytest.raises(InvalidValue, match="IPv6 ranges: a column does not have 16 bytes for each entry"):
        PlaceTable(Ranges(), Ranges(b"\0" * 8, b"\0" * 8, b"\0" * 4))
