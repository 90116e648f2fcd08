"""Counting of blocks, what is told of rejected lines, tables of ranges; and where less than numba is installed."""

from __future__ import annotations

import array
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from components.exceptions import InvalidValue, UnknownKernel
from components.services.logs.lines import Book, Counting, PlaceTable, Ranges, Reason, Rejected, choose_kernel

GOOD = b"1.2.3.4 2011-10-10 13:55:36 achievement-762\n"
DAY = date(2011, 10, 10)


def ipv4(*ranges: tuple[int, int, int]) -> Ranges:
    return Ranges(*(array.array("I", column) for column in zip(*ranges, strict=True)))


@pytest.fixture
def counting() -> Counting:
    return Counting(PlaceTable(ipv4((0x01000000, 0x01FFFFFF, 5))), Book(), kernel="naive")


def test_a_chunk_that_was_taken_is_not_taken_again(counting: Counting) -> None:
    counting.add(GOOD * 3 + b"junk\n9.9.9.9 2011-10-11 x\n", source="a.log")

    first, second = counting.take(), counting.take()
    counting.add(GOOD)
    third = counting.take()

    assert (first.lines, first.rejected) == (5, {Reason.FORMAT: 1})
    assert first.counts == {(DAY, 5): 3, (date(2011, 10, 11), 0): 1}
    assert (first.first_day, first.last_day) == (DAY, date(2011, 10, 11))
    assert (second.lines, second.counts, second.rejected, second.samples) == (0, {}, {}, ())
    assert (second.first_day, second.last_day) == (None, None)
    assert (third.lines, third.counts, third.rejected) == (1, {(DAY, 5): 1}, {})


def test_rejected_lines_are_told_with_their_place_and_beginning(counting: Counting) -> None:
    counting.add(GOOD + b"\0\xff" * 500 + b"\r\n", source="a.log", offset=1_000)
    counting.add(b"1.2.3.4 2011-02-29 x\n\n1.2.3 2011-10-10", source="b.log")

    assert counting.take().samples == (
        Rejected(Reason.FORMAT, "a.log", 2, 1_000 + len(GOOD), b"\0\xff" * 100),
        Rejected(Reason.EMPTY, "b.log", 2, 21, b""),
        Rejected(Reason.ADDRESS, "b.log", 3, 22, b"1.2.3 2011-10-10"),
        Rejected(Reason.DATE, "b.log", 1, 0, b"1.2.3.4 2011-02-29 x"),
    )
    for number in range(3):
        counting.add(b"".join(b"junk-%d-%d\n" % (number, line) for line in range(3)) + b"\n" * 10)
    counts = counting.take()
    assert counts.rejected == {Reason.FORMAT: 9, Reason.EMPTY: 30}
    kept = [b"junk-0-0", b"junk-0-1", b"junk-0-2", b"junk-1-0", b"junk-1-1"]  # five of each reason
    assert [each.head for each in counts.samples if each.reason is Reason.FORMAT] == kept
    assert len(counts.samples) == 10


def test_places_can_be_counted_by_the_group_they_belong_to() -> None:
    ranges = ipv4((0x01000000, 0x0100FFFF, 1), (0x01010000, 0x01FFFFFF, 2), (0x02000000, 0x02FFFFFF, 3))
    one = (1).to_bytes(16)
    countries = array.array("I", [0, 9, 9, 4])
    found = PlaceTable(ranges, Ranges(one, one, array.array("I", [3])), groups=countries)
    counting = Counting(found, Book(), kernel="naive")

    counting.add(GOOD + b"1.0.0.1 2011-10-10\n2.0.0.0 2011-10-10\n::1 2011-10-10\n3.0.0.0 2011-10-10\n")

    assert counting.take().counts == {(DAY, 9): 2, (DAY, 4): 2, (DAY, 0): 1}


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        ([ipv4((1, 2, 1), (2, 3, 1))], "IPv4 range number 1 .*overlap"),
        ([ipv4((1, 2, 1), (9, 9, 1), (4, 5, 1))], "IPv4 range number 2 .*not sorted"),
        ([ipv4((1, 2, 1), (5, 4, 1))], "IPv4 range number 2 ends before"),
        ([Ranges(), Ranges((2).to_bytes(16), (1).to_bytes(16), bytes(4))], "IPv6 range number 1 ends before"),
        ([Ranges(bytes(4), bytes(8), bytes(4))], "1 starts, 2 ends and 1 places of IPv4"),
        ([Ranges(), Ranges(bytes(8), bytes(8), bytes(4))], "IPv6 ranges: .* 16 bytes"),
        ([ipv4((1, 2, 2**31))], "2,147,483,648"),
        ([ipv4((1, 2, 3)), None, array.array("I", [0, 9, 9])], "place 3 has none"),
    ],
)
def test_ranges_that_cannot_be_right_are_refused(table: list[Any], complaint: str) -> None:
    ranges, ipv6, groups = [*table, None, None][:3]
    with pytest.raises(InvalidValue, match=complaint):
        PlaceTable(ranges, ipv6, groups=groups)


ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import sys
from importlib import util

missing, find_spec = {"numpy", "numba"}, util.find_spec
util.find_spec = lambda name: None if name in missing else find_spec(name)
from django.conf import settings
settings.configure()
from components.exceptions import ExtraNotInstalled

import components.management.commands.logreport  # which needs nothing of what counting does
assert not {"numpy", "numba", "zstandard", "maxminddb"} & sys.modules.keys()
try:
    import components.services.logs.lines
except ExtraNotInstalled as error:
    print(error)
missing.remove("numpy")
from components.services.logs.lines import Counting, PlaceTable, Ranges, choose_kernel, find_format
counting = Counting(PlaceTable(Ranges()), find_format("book"))
print(counting.reader.kernel.name, len(counting.add(b"1.2.3.4 2011-10-10")), "numba" in sys.modules)
try:
    choose_kernel("numba")
except ExtraNotInstalled as error:
    print(error)
"""


def test_without_numpy_the_extra_is_named_and_without_numba_plain_python_does_the_work() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    without_numpy, counted, without_numba = done.stdout.splitlines()
    assert counted == "naive 1 False"
    for said, name in ((without_numpy, "numpy"), (without_numba, "numba")):
        assert name in said
        assert 'pip install "django-redis-components[logs]"' in said


def test_the_setting_forces_a_kernel_and_an_argument_goes_before_it(settings) -> None:
    for setting, argument, expected in (
        ("auto", None, "numba"),
        ("naive", None, "naive"),
        ("naive", "auto", "numba"),
        ("naive", "numba", "numba"),
        ("numba", "naive", "naive"),
    ):
        settings.COMPONENTS = {**settings.COMPONENTS, "LOG_KERNEL": setting}
        assert choose_kernel(argument).name == expected
    for unknown in ("numpy", "cython"):
        with pytest.raises(UnknownKernel):
            choose_kernel(unknown)


def test_it_is_compiled_even_where_nothing_may_be_written() -> None:
    """numba finds no folder for code whose file is nowhere, as it finds none if all of them are read-only."""
    from components.services.logs.lines.kernels.scanning import compiled

    names: dict[str, object] = {}
    exec(compile("def twice(number):\n    return 2 * number", "/nowhere/twice.py", "exec"), names)
    twice = compiled(names["twice"])
    assert twice(21) == 42
    assert twice.nopython_signatures
