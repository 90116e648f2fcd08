"""Both kernels return the same for lines that are right, nearly right and junk; test_lines.py says what."""

import re
from collections import Counter
from dataclasses import fields
from datetime import date
from ipaddress import ip_address
from random import Random
from typing import Any

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
    Line,
    PlaceTable,
    Ranges,
    Reason,
    choose_kernel,
)

NUMBA, NAIVE = (choose_kernel(name) for name in KERNELS)
FORMATS = {"book": Book(), "combined": Combined()}
BOOK = b"173.194.38.137 2011-10-10 13:55:36 achievement-762"
COMBINED = b'173.194.38.137 - jim [10/Oct/2011:13:55:36 +0200] "GET / HTTP/1.1" 200 5 "-" "curl"'
#: A time with all that may be in it.
LONGEST = b'::1 - jim [10/Oct/2011:13:55:36.123456789 +02:00] "GET / HTTP/1.1" 200 5 "-" "curl"'

#: Each name stands for one of its texts, with "|" between them; names in these stand for texts in turn.
RULES = r"""
line: <book>|<book>|<web>|<web>|<web>|<junk>|173.194.38.137 2011-10-10 13:55:36 achievement-762
book: <address><gap><iso><after>|<v4> <iso><after>|<v6> 2011-<month>-<two> <clock>
web: <v4> - - [10/Oct/2011:13:55:36<zone>] <request> <text> <text> <text>|<v4> - - [<date>] <request> <text>
web: <v4> <user>[<day>:<clock> +0200] "GET <target> HTTP/1.1"<status> <text> <text>
web: <v6> - jim [10/<name>/2011:<clock><fraction>] <request>|<address> <user><open><date><close> <request>
junk: |0000000000000000000000000000000000000000000000: 2011-10-10| |\r|\0|é|<address>|<d><gap><clock>|1.2.3.4 1.2.3.4
address: <v4>|<v4>|<v6>|<odd>.<odd>.<odd>.<odd>|fe80::1%eth0|1.2.3.4:80|<group>:<group>:<group>:<group>x
address: <bom><v4>|<bom><v6>
v4: <n>.<n>.<n>.<n>
v6: ::|::1|1::|::ffff:<v4>|<group>:<group>:<group><groups>|<group>::<group><groups>|2001:db8::<group>|<group><groups>
groups: |:<group>|:<group><groups>|:<group><groups>|:<group>:<group><groups>|::<group><groups>
group: 0|1|7|00ab|ffff|FFFF|<d><d><d>||12345|g|<v4>
odd: <n>|<n>|<n>|<n>||00|01|256|1000|+1|a
iso: <year>-<month>-<two>|2011-<month>-<two>|2012-<month>-<two>|<year>-<two>-<two>|<d><d>-<two>|<year>/<two>/<two>
date: <day>:<clock><zone>|<day>:<clock><fraction><zone>|<day>:13:55:36<fraction> +0200|<day><gap><clock>|<day>
day: <two>/<name>/<year>|<two>/<name>/2011|<two>/<name>/2012|10/Oct/2011|<d>/<name>/<year>
year: 2011|2012|2023|1900|2000|0000|0001|9999|<d><d><d><d>
name: Jan|Feb|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec|jan|Foo
clock: 00:00:00|13:55:36|09:07:59|23:59:60|1<d>:4<d>:3<d>|<two>:<two>:<two>|23:59:61|24:00:00|23:60:00|13:55|1:2:3|
fraction: |.1|,123|.123456789|.1234567890|.|;1|.x
zone: | +0200| +<two>:<two>|-07:00| Z|Z| ABCDE| +02| |:
gap: | | | |  |\t|
after: |\r| x| | 13:55:36 x| <clock>| 1:2|x| 13:5\r
user: - - |- jim ||- [01/Jan/1999:00:00:00 +0000] |- \" |] "|[] "|]]] |
open: [|[|[|[||[[| [|x[
close: ]|]|]|]|] ]|
request: "GET <target> HTTP/1.1"<status>|"GET <target>"<status>|"<target>"<status>|"<target>\" 404 "<status>
request: "GET <target>" 301 "|"GET <target>|"|GET
target: /|/a?b#c| /a|-|/a//b#|\"|http://a/b|\|é|x://u:p@a/b|u@a:1|:/@|a:b://c|\\|\\\
status: | 200 5| <d><d><d>| 404| 599\r| 099| 600 | 2000| 20|  200| -|200
text: "-"|"http://u:p@a:80/x?y"|"ftp://"|"://"|"a//b"|"#"|"a \"b\" c"|"u@a\\"|"é||"
"""
RULES = RULES.replace(r"\r", "\r").replace(r"\t", "\t").replace(r"\0", "\0")
GRAMMAR: dict[str, list[str]] = {
    "bom": ["\ufeff"],
    "n": [str(number) for number in range(256)],
    "d": [*"0123456789"],
    "two": [f"{number:02}" for number in range(34)],
    "month": [f"{number:02}" for number in range(14)],
}
for name, _, texts in (rule.partition(": ") for rule in RULES.strip().splitlines()):
    GRAMMAR.setdefault(name, []).extend(texts.split("|"))
ENDS = [b"\n", b"\n", b"\n", b"\r\n", b"\n\n"]


def grown(random: Random, text: str) -> str:
    return re.sub("<([a-z0-9-]+)>", lambda found: grown(random, random.choice(GRAMMAR[found[1]])), text)


def some_line(random: Random) -> bytes:
    """Return a line; in every third one some bytes are changed, cut out or put in."""
    line = bytearray(grown(random, "<line>").encode())
    for _ in range(random.choice([0, 0, 0, 0, 1, 3])):
        at = random.randrange(len(line) + 1)
        line[at : at + random.randrange(3)] = random.choice(
            [random.randbytes(2), b"", b"\\", b'"', b" ", b"]"]
        )
    return bytes(line)


def some_block(random: Random, lines: int) -> bytes:
    """Return so many lines, or a few more, since an end may be in a line."""
    return b"".join(some_line(random) + random.choice(ENDS) for _ in range(lines)) + some_line(random)


def assert_same(found: Columns, expected: Columns) -> None:
    assert found.data == expected.data
    for field in fields(Columns)[1:]:
        ours, theirs = getattr(found, field.name), getattr(expected, field.name)
        assert ours.dtype == theirs.dtype, field.name
        assert ours.tobytes() == theirs.tobytes(), (field.name, ours, theirs)


def parts_of(kernel: Any, columns: Columns, form: Format) -> list[tuple[bytes, ...]]:
    spans = kernel.spans(columns, form)
    rows = [
        [spans.data[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
        for starts, ends in zip(spans.starts, spans.ends, strict=True)
    ]
    return list(zip(*rows, strict=True))


def compare(block: bytes) -> int:
    """Read a block by both kernels, compare what they return, and return how many lines it has."""
    for form in FORMATS.values():
        expected = NAIVE.columns(block, form)
        found = NUMBA.columns(block, form)
        assert_same(found, expected)
        assert NUMBA.places(found, TABLE).tolist() == NAIVE.places(expected, TABLE).tolist()
    assert parts_of(NUMBA, found, form) == parts_of(NAIVE, expected, form)  # of the combined format
    return len(expected) + len(expected.reasons)


def ranges_of(edges: list[int], places: list[int], *, ipv6: bool = False) -> Ranges:
    """From each second edge to the next one: sorted, not overlapping, some next to each other."""
    starts, ends = edges[:-1:2], edges[1::2]
    taken = [places[at % len(places)] for at in range(len(starts))]
    if ipv6:
        wide = [b"".join(each.to_bytes(16, "big") for each in side) for side in (starts, ends)]
        return Ranges(*wide, np.array(taken, np.uint32))
    return Ranges(np.array(starts, np.uint32), np.array(ends, np.uint32), np.array(taken, np.uint32))


TABLE = PlaceTable(
    ranges_of([0x01000000, 0x01FFFFFF, 0xADC22600, 0xADC22688, 0xADC22689, 0xADC226FF], [5, 6, 7]),
    ranges_of([1, 0xFFFF << 112], [8], ipv6=True),
)


@settings(max_examples=60)
@given(seed=st.integers(0, 2**64), lines=st.integers(0, 60))
def test_both_kernels_return_the_same(seed: int, lines: int) -> None:
    compare(some_block(Random(seed), lines))


@pytest.mark.long
@pytest.mark.slow
def test_both_kernels_return_the_same_for_many_lines() -> None:
    random, lines = Random(29), 0
    while lines < 200_000:
        lines += compare(some_block(random, 5_000))


@pytest.mark.parametrize(
    "block",
    [
        b"",
        b"\n",
        b"\r",
        BOOK,
        BOOK + b"\r\n" + COMBINED + b"\r\n",
        b"1.2.3.4",
        b'x [10/Oct/2011:\n1.2.3.4 abcde] "',  # a time that begins in the line before
        b"]",
        b'] "',
        b'1.2.3.4 ] "\n' + COMBINED,
        b"::1 2011-02-29\n::1 2012-02-29\nx: 2012-02-29",
        b"0000:0000:0000:0000:0000:ffff:255.255.255.255 2012-02-29\n00000:0000:0000:0000:0000:ffff:255.255.255.255 -",
        b'1.2.3.4 - - [10/Oct/2011:13:55:36 +0200] "" 200 5 "a:/b" "',
    ],
)
def test_both_kernels_return_the_same_for_ends_of_blocks(block: bytes) -> None:
    compare(block)


def test_both_kernels_read_all_forms_of_ipv6() -> None:
    """With any number of groups before "::" and after it, and with two of it; and what else is nearly an address."""
    groups = ["1", "ab", "00ff", "FFFF", "0", "6", "7", "8", "9", "10"]
    texts = [
        ":".join(groups[:before]) + middle + ":".join(groups[before : before + after])
        for before in range(10)
        for after in range(10 - before)
        for middle in ("::", ":", ":::", "::ffff::", "::ffff:", "::12345:", "::g:", ":@::")
    ]
    block = "".join(f"{text} 2011-10-10 x\n{text}\n{text}x 2011-10-10\n" for text in texts).encode()

    assert len(NAIVE.columns(block, Book()).ipv6_lines) > 40
    assert compare(block) == 3 * len(texts)


@pytest.mark.parametrize("kernel", [NUMBA, NAIVE])
def test_callbacks_are_given_the_same_lines(kernel: Any) -> None:
    block = COMBINED + b"\njunk\n" + LONGEST + b"\r\n" + BOOK

    columns = kernel.columns(block, Combined())

    day = date(2011, 10, 10)
    assert [*columns] == [
        Line(COMBINED, COMBINED[50:], ip_address("173.194.38.137"), day, 835, 200),
        Line(LONGEST, LONGEST[50:], ip_address("::1"), day, 835, 200),
    ]
    assert [columns.text(line) for line in range(len(columns))] == [COMBINED, LONGEST]
    assert (columns.rejected_starts.tolist(), columns.rejected_ends.tolist()) == ([84, 174], [88, 224])
    assert columns.addresses.tolist() == [0xADC22689, 0]
    assert (columns.ipv6_lines.tolist(), columns.ipv6.tobytes()) == ([1], (1).to_bytes(16))
    assert columns.reasons.tolist() == [Reason.FORMAT] * 2


def edges(bits: int) -> st.SearchStrategy[list[int]]:
    """Many near each other, so that several are within a /24 and others next to each other."""
    anywhere = st.integers(0, 2**bits - 1)
    near = st.builds(lambda high, low: high << 16 | low, st.integers(0, 3), st.integers(0, 0xFFFF))
    ends = st.sampled_from([0, 1, 255, 256, 257, 0xFFFF, 0x10000, 2**bits - 256, 2**bits - 1])
    halves = st.integers(0, 511).map(lambda number: number * 128)  # of a /24
    return st.lists(st.one_of(anywhere, near, ends, halves), max_size=40, unique=True).map(sorted)


@settings(max_examples=8)
@given(
    four=edges(32),
    six=edges(128),
    places=st.lists(st.sampled_from([1, 2, 3, 65_534]), min_size=1, max_size=4),
    most=st.sampled_from([1, 65_535, 200_000]),
)
@example(four=[0x01020300, 0x01020304], six=[], places=[7], most=1)
def test_addresses_are_found_where_they_lie(
    four: list[int], six: list[int], places: list[int], most: int
) -> None:
    places = [*places, most]
    table = PlaceTable(ranges_of(four, places), ranges_of(six, places, ipv6=True))
    lines, expected = [], []
    for bits, found in ((32, four), (128, six)):
        starts, ends = found[:-1:2], found[1::2]
        pairs = list(enumerate(zip(starts, ends, strict=True)))
        for address in {each + step for each in [*starts, *ends, 7] for step in (-1, 0, 1)}:
            if 0 <= address < 2**bits and (bits == 32 or address >> 32 not in (0, 0xFFFF)):
                lines.append(f"{ip_address(address.to_bytes(bits // 8))} 2011-10-10")
                at = [place for place, (start, end) in pairs if start <= address <= end]
                expected.append(places[at[0] % len(places)] if at else 0)
    columns = NAIVE.columns("\n".join(lines).encode(), Book())

    for kernel in (NUMBA, NAIVE):
        assert kernel.places(columns, table).tolist() == expected


@pytest.mark.parametrize("kernel", KERNELS)
def test_more_days_than_there_are_rows_for_are_counted_all_the_same(kernel: str) -> None:
    days = [f"1.2.3.4 {year:04}-{month:02}-01" for year in range(1, 1_000, 9) for month in (1, 12)]
    counting = Counting(TABLE, Book(), kernel=kernel)
    for _ in range(2):
        counting.add("\n".join([*days, *days, *reversed(days)]).encode())
        counts = counting.take()
        assert counts.counts == {(date.fromisoformat(line.split()[1]), 5): 3 for line in days}
    assert len(days) > 200


@pytest.mark.parametrize("kernel", [NUMBA, NAIVE])
@given(
    rounds=st.lists(
        st.lists(st.one_of(st.binary(max_size=20), st.sampled_from([b"", b"a" * 40])), max_size=40)
    )
)
@example(rounds=[[b"/%d" % number for number in range(9_000)]] * 2)
@settings(max_examples=10)
def test_values_are_numbered_in_the_order_in_which_they_come(kernel: Any, rounds: list[list[bytes]]) -> None:
    values, known = kernel.values(), dict[bytes, int]()
    for some in rounds:
        lengths = np.array([*map(len, some)], np.int64)
        ends = lengths.cumsum()
        found = values.numbers(b"".join(some), ends - lengths, ends)
        assert found.tolist() == [known.setdefault(value, len(known)) for value in some]
    assert values.texts() == list(known)
    assert len(values) == len(known)


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
def test_each_kernel_counts_what_a_loop_counts(form: Format) -> None:
    block = some_block(Random(6), 200)
    lines = [line.removesuffix(b"\r") for line in block.removesuffix(b"\n").split(b"\n")]
    read = [form.read(line) if line else Reason.EMPTY for line in lines]
    good = [each for each in read if not isinstance(each, Reason)]
    for kernel in KERNELS:
        counting = Counting(TABLE, form, kernel=kernel)
        columns = counting.add(block)
        counts = counting.take()
        places = NAIVE.places(columns, TABLE).tolist()
        days = [date.fromordinal(each.day) for each in good]
        assert counts.counts == Counter(zip(days, places, strict=True))
        assert counts.rejected == Counter(each for each in read if isinstance(each, Reason))
        assert counts.lines == len(read)
