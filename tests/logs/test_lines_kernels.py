"""
All kernels for logs do the same: each is held against a plain loop, over lines that are right, nearly right and junk.

The rules of formats are tested in test_logs_formats.py, where the plain loop is held against what a person would say.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from datetime import date

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from components.services.logs.lines import (
    KERNELS,
    Book,
    Columns,
    Combined,
    Counting,
    Format,
    JsonLines,
    Pattern,
    PlaceTable,
    Ranges,
    choose_kernel,
)

FAST = [name for name in KERNELS if name != "naive"]
FORMATS = {
    "book": Book(),
    "combined": Combined(),
    "json": JsonLines(),
    "pattern": Pattern(r"(?P<ip>\S+) (?P<time>\S+)"),
}
BOOK = b"173.194.38.137 2011-10-10 13:55:36 achievement-762"
COMBINED = b'173.194.38.137 - jim [10/Oct/2011:13:55:36 +0200] "GET / HTTP/1.1" 200 5 "-" "curl"'
MONTHS = [
    "Jan",
    "Feb",
    "Mar",
    "Apr",
    "May",
    "Jun",
    "Jul",
    "Aug",
    "Sep",
    "Oct",
    "Nov",
    "Dec",
    "jan",
    "Foo",
    "J\n",
]

numbers = st.one_of(
    st.integers(0, 260).map(str), st.sampled_from(["", "00", "01", "001", "256", "1000", "+1", "a"])
)
ipv4 = st.one_of(
    st.integers(0, 2**32 - 1).map(lambda n: f"{n >> 24}.{n >> 16 & 255}.{n >> 8 & 255}.{n & 255}"),
    st.lists(numbers, min_size=3, max_size=5).map(".".join),
)
groups = st.sampled_from(["", "", "0", "1", "7", "00ab", "ffff", "FFFF", "12345", "g", "1.2.3.4"])
ipv6 = st.one_of(
    st.lists(groups, min_size=2, max_size=10).map(":".join),
    st.ip_addresses(v=6).map(str),
    ipv4.map("::ffff:{}".format),
    st.sampled_from(
        ["::", "::1", "1::", "::ffff:1.2.3.4", ":::", "fe80::1%eth0", "1:2", "1.2.3.4:80", "0" * 46 + ":"]
    ),
)
addresses = st.one_of(ipv4, ipv6, st.text("0123456789abc.:-x", max_size=50))
years = st.one_of(st.sampled_from([0, 1, 4, 100, 1900, 2000, 2024, 9999]), st.integers(0, 9999))
parts_of_dates = st.tuples(
    years, st.integers(0, 13), st.one_of(st.integers(0, 32), st.sampled_from([28, 29, 30, 31]))
)
iso_dates = st.one_of(
    st.dates().map(str),
    parts_of_dates.map(lambda each: f"{each[0]:04}-{each[1]:02}-{each[2]:02}"),
    st.text("0123456789-", max_size=12),
)
web_dates = st.one_of(
    parts_of_dates.map(lambda each: f"{each[2]:02}/{MONTHS[each[1]]}/{each[0]:04}"),
    st.text("0123456789/OctFeb", max_size=12),
)
book_lines = st.builds(
    "{}{}{}{}".format,
    addresses,
    st.sampled_from([" ", " ", "  ", "\t", ""]),
    iso_dates,
    st.sampled_from([" x", "", " ", "x", "\r", " 13:55:36 x", " 23:59", " 24:00", " 1:2", " 13:5\r"]),
)
clocks = st.one_of(
    st.times().map(lambda each: each.replace(microsecond=0).isoformat()),
    st.sampled_from(
        ["13:55:36", "99:99:99", "24:00:00", "23:60:00", "23:59:60", "23:59:61", "13:55", "1:2:3"]
    ),
    st.text("0123456789:", max_size=9),
)
fractions = st.one_of(
    st.just(""),
    st.tuples(st.sampled_from(".,"), st.integers(0, 11)).map(lambda each: each[0] + "1234567890x"[: each[1]]),
)
zones = st.one_of(
    st.sampled_from(
        ["", " +0200", " +02:00", "+0200", "-07:00", " Z", "Z", " ABCDE", " +2400", " +0260", " "]
    ),
    st.text("+-0123456789: Z", max_size=8),
)
times = st.builds("{}:{}{}{}".format, web_dates, clocks, fractions, zones)
stamps = st.one_of(
    web_dates.map("[{}:13:55:36 +0200] ".format),
    st.builds("{}[{}] ".format, st.sampled_from(["", "", "[", " [", "x"]), times),
    times.map("[{}] ".format),
    web_dates.map("[{}] ".format),
    st.just("] "),
)
users = st.sampled_from(["- - ", "", "- [01/Jan/1999:00:00:00 +0000] ", '- \\" ', '] "', '[] "', "]]] "])
combined_lines = st.builds(
    "{} {}{}{}".format,
    addresses,
    users,
    stamps,
    st.one_of(
        st.sampled_from(['"GET /', '"', "GET", "", "\r"]),
        st.builds(
            '"{}"{}'.format,
            st.sampled_from(["GET / HTTP/1.1", "", '\\" 404 ', "\\", '" 301 "', "é"]),
            st.sampled_from(
                [" 200 5", " 404", " 599\r", " 099", " 600 ", " 2000", " 20", "  200", " -", "200"]
            ),
        ),
    ),
)


#: A time with all that may be in it; three bytes of it are changed, cut out or put in.
LONGEST = b'::1 - jim [10/Oct/2011:13:55:36.123456789 +02:00] "GET / HTTP/1.1" 200 5 "-" "curl"'


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A line with some bytes changed, cut out or put in."""
    line = bytearray(draw(st.sampled_from([BOOK, COMBINED, LONGEST])))
    for at in draw(st.lists(st.integers(0, 60), max_size=3)):
        line[at : at + draw(st.integers(0, 2))] = draw(st.binary(max_size=2))
    return bytes(line)


lines = st.one_of(
    st.sampled_from([BOOK, COMBINED, b"", b" ", b"\r", b"\0", b"x" * 5_000, b"1.2.3.4 " * 900]),
    book_lines.map(str.encode),
    combined_lines.map(str.encode),
    damaged(),
    st.binary(max_size=80),
)
blocks = st.builds(
    lambda each, last: b"".join(line + end for line, end in each) + last,
    st.lists(st.tuples(lines, st.sampled_from([b"\n", b"\n", b"\r\n", b"\n\n"])), max_size=12),
    st.one_of(st.just(b""), lines),
)


def ranges_of(edges: list[int], places: list[int], *, ipv6: bool = False) -> Ranges:
    """From each second edge to the next one: sorted, not overlapping, some next to each other."""
    starts, ends = edges[:-1:2], edges[1::2]
    taken = [places[at % len(places)] for at in range(len(starts))]
    if ipv6:
        wide = [b"".join(each.to_bytes(16, "big") for each in side) for side in (starts, ends)]
        return Ranges(*wide, np.array(taken, np.uint32))
    return Ranges(np.array(starts, np.uint32), np.array(ends, np.uint32), np.array(taken, np.uint32))


def edges(bits: int) -> st.SearchStrategy[list[int]]:
    """Many near each other, so that several are within a /24 and others next to each other."""
    anywhere = st.integers(0, 2**bits - 1)
    near = st.builds(lambda high, low: high << 16 | low, st.integers(0, 3), st.integers(0, 0xFFFF))
    ends = st.sampled_from([0, 1, 255, 256, 257, 0xFFFF, 0x10000, 2**bits - 256, 2**bits - 1])
    halves = st.integers(0, 511).map(lambda number: number * 128)  # of a /24
    return st.lists(st.one_of(anywhere, near, ends, halves), max_size=40, unique=True).map(sorted)


places = st.lists(st.sampled_from([1, 2, 3, 65_534]), min_size=1, max_size=4)
many_places = st.lists(st.sampled_from([1, 2, 65_535, 200_000]), min_size=1, max_size=4)
tables = st.builds(
    lambda four, six, these: PlaceTable(ranges_of(four, these), ranges_of(six, these, ipv6=True)),
    edges(32),
    edges(128),
    st.one_of(places, many_places),
)
TABLE = PlaceTable(
    ranges_of([0x01000000, 0x01FFFFFF, 0xADC22600, 0xADC22688, 0xADC22689, 0xADC226FF], [5, 6, 7]),
    ranges_of([1, 0xFFFF << 112], [8], ipv6=True),
)


def assert_same(found: Columns, expected: Columns) -> None:
    assert found.data == expected.data
    for field in fields(Columns)[1:]:
        ours, theirs = getattr(found, field.name), getattr(expected, field.name)
        assert ours.dtype == theirs.dtype, field.name
        assert ours.tobytes() == theirs.tobytes(), (field.name, ours, theirs)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", FAST)
@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
@settings(max_examples=300, deadline=None)
@given(block=blocks)
@example(block=b"")
@example(block=b"\n")
@example(block=b"\r")
@example(block=BOOK)
@example(block=BOOK + b"\r\n" + COMBINED + b"\r\n")
@example(block=b"1.2.3.4")
@example(block=b'x [10/Oct/2011:\n1.2.3.4 abcde] "')  # a time that begins in the line before
@example(block=b"]")
@example(block=b'] "')
@example(block=b'1.2.3.4 ] "\n' + COMBINED)
@example(block=b"::1 2011-02-29\n::1 2012-02-29\nx: 2012-02-29")
def test_every_line_is_read_as_the_plain_loop_reads_it(kernel: str, form: Format, block: bytes) -> None:
    expected = choose_kernel("naive").columns(block, form)

    found = choose_kernel(kernel).columns(block, form)

    assert_same(found, expected)


@pytest.mark.parametrize("kernel", FAST)
def test_ipv6_addresses_are_read_as_the_plain_loop_reads_them(kernel: str) -> None:
    """With any number of groups before "::" and after it, and with two of it; and what else is nearly an address."""
    groups = ["1", "ab", "00ff", "FFFF", "0", "6", "7", "8", "9", "10"]
    texts = [
        ":".join(groups[:before]) + middle + ":".join(groups[before : before + after])
        for before in range(10)
        for after in range(10 - before)
        for middle in ("::", ":", ":::", "::ffff::", "::ffff:", "::12345:", "::g:", ":@::")
    ]
    block = "".join(f"{text} 2011-10-10 x\n{text}\n{text}x 2011-10-10\n" for text in texts).encode()

    found = choose_kernel(kernel).columns(block, Book())

    assert len(found.ipv6_lines) > 40
    assert_same(found, choose_kernel("naive").columns(block, Book()))


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
@settings(max_examples=100, deadline=None)
@given(table=tables, data=st.data())
def test_every_address_is_found_where_it_lies(kernel: str, table: PlaceTable, data: st.DataObject) -> None:
    starts, ends = table.ipv4_starts.tolist(), table.ipv4_ends.tolist()
    wide = [
        [int.from_bytes(each.ljust(16, b"\0"), "big") for each in side.tolist()]
        for side in (table.ipv6_starts, table.ipv6_ends)
    ]
    near = [each + step for each in starts + ends for step in (-1, 0, 1) if 0 <= each + step < 2**32]
    near_wide = [
        each + step for each in wide[0] + wide[1] for step in (-1, 0, 1) if 0 <= each + step < 2**128
    ]
    four = near + data.draw(st.lists(st.integers(0, 2**32 - 1), max_size=5))
    six = near_wide + data.draw(st.lists(st.integers(0, 2**128 - 1), max_size=5))
    columns = columns_of(four, six)

    found = choose_kernel(kernel).places(columns, table)

    expected = [where(starts, ends, table.ipv4_places.tolist(), address) for address in four]
    expected += [where(*wide, table.ipv6_places.tolist(), address) for address in six]
    assert found.tolist() == expected


def columns_of(four: list[int], six: list[int]) -> Columns:
    """Of lines that have these addresses."""
    count, none = len(four) + len(six), np.zeros(0, np.int64)
    zeros = np.zeros(count, np.int64)
    return Columns(
        data=b"",
        starts=zeros,
        ends=zeros,
        rests=zeros,
        days=zeros.astype(np.int32),
        addresses=np.array(four + [0] * len(six), np.uint32),
        ipv6_lines=np.arange(len(four), count, dtype=np.int64),
        ipv6=np.frombuffer(b"".join(each.to_bytes(16, "big") for each in six), "V16"),
        rejected_starts=none,
        rejected_ends=none,
        reasons=none.astype(np.uint8),
        minutes=zeros.astype(np.int16),
        statuses=zeros.astype(np.int16),
    )


def where(starts: list[int], ends: list[int], places: list[int], address: int) -> int:
    """Through all ranges, one after the other."""
    for start, end, place in zip(starts, ends, places, strict=True):
        if start <= address <= end:
            return place
    return 0


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("form", [Book(), Combined()], ids=["book", "combined"])
@settings(max_examples=100, deadline=None)
@given(given_blocks=st.lists(blocks, max_size=4))
def test_counts_are_those_of_the_plain_loop(kernel: str, form: Format, given_blocks: list[bytes]) -> None:
    expected, bad, lines = Counter(), Counter(), 0
    for block in given_blocks:
        for line in plain_lines(block):
            lines += 1
            found = form.read(line) if line else 1
            if isinstance(found, int):
                bad[found] += 1
            else:
                expected[found.day, place_of(found.version, found.address)] += 1
    counting = Counting(TABLE, form, kernel=kernel)

    for block in given_blocks:
        counting.add(block)
    counts = counting.take()

    assert {(day.toordinal(), place): count for (day, place), count in counts.counts.items()} == expected
    assert counts.rejected == bad
    assert counts.lines == lines == sum(counts.counts.values()) + sum(counts.rejected.values())


def plain_lines(block: bytes) -> list[bytes]:
    every = block.split(b"\n")
    if not every[-1]:
        every.pop()
    return [line[:-1] if line.endswith(b"\r") else line for line in every]


def place_of(version: int, address: int) -> int:
    if version == 6:
        return 8 if 1 <= address <= 0xFFFF << 112 else 0
    if address >> 24 == 1:
        return 5
    if address >> 8 == 0xADC226:
        return 6 if address & 255 <= 0x88 else 7
    return 0


@pytest.mark.parametrize("kernel", KERNELS)
def test_more_days_than_there_are_rows_for_are_counted_all_the_same(kernel: str) -> None:
    days = [f"1.2.3.4 {year:04}-{month:02}-01" for year in range(1, 1_000, 9) for month in (1, 12)]
    counting = Counting(TABLE, Book(), kernel=kernel)

    counting.add("\n".join([*days, *days, *reversed(days)]).encode())

    counts = counting.take().counts
    assert len(days) > 200
    assert counts == {(date.fromisoformat(line.split()[1]), 5): 3 for line in days}


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_that_is_asked_for_is_given(kernel: str) -> None:
    assert choose_kernel(kernel).name == kernel
