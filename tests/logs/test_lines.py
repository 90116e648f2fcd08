"""What lines mean, by format; blocks of them, counted or rejected; tables of ranges; and where less is installed."""

import array
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from components.exceptions import InvalidValue, UnknownKernel
from components.services.logs.lines import (
    Book,
    Combined,
    Counting,
    Format,
    JsonLines,
    Parts,
    Pattern,
    PlaceTable,
    Ranges,
    Reason,
    Rejected,
    choose_kernel,
    find_format,
    parse_address,
)
from components.services.logs.lines.formats import Fields

IP = "1.2.3.4"
DAY = date(2011, 10, 10).toordinal()
WEB = '1.2.3.4 - - [10/Oct/2011:13:55:36 -0700] "GET / HTTP/1.0" 200 23'
BOOK, COMBINED, JSON = Book(), Combined(), JsonLines()
PATTERN = Pattern(r"\w+ at=(?P<time>\S+) from=(?P<ip>[^,]*)?,")
FORMAT, ADDRESS, DATE = Reason.FORMAT, Reason.ADDRESS, Reason.DATE
WORDS = r"(?P<ip>\S+) (?P<time>\S+)"


def json(time: str, ip: str = '"1.2.3.4"') -> str:
    return f'{{"ip": {ip}, "time": {time}}}'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"173.194.38.138", (4, 0xADC2268A)),
        (b"255.255.255.255", (4, 2**32 - 1)),
        (b"::ffff:173.194.38.138", (4, 0xADC2268A)),
        (b"2001:db8::1", (6, 0x20010DB8 << 96 | 1)),
        (b"::", (6, 0)),
        (b"0000:0000:0000:0000:0000:ffff:255.255.255.255", (4, 2**32 - 1)),  # the longest
        *(
            (text, None)
            for text in (
                *(b"256.1.1.1", b"1.2.3", b"1.2.3.4.5", b"1..3.4", b"01.2.3.4", b"1.2.3.00", b" 1.2.3.4"),
                *(b"1.2.3.4:80", b"fe80::1%eth0", b"1:2:3:4:5:6:7", "\u0661.2.3.4".encode(), b"::\xff"),
                *(b"::1" + b" " * 50, b""),
            )
        ),
    ],
)
def test_addresses_are_read_strictly(text: bytes, expected: tuple[int, int] | None) -> None:
    assert parse_address(text) == expected


@pytest.mark.parametrize(
    ("form", "line", "rest"),
    [
        (BOOK, "1.2.3.4 2011-10-10 13:55:36 achievement-762", "13:55:36 achievement-762"),
        (BOOK, "1.2.3.4 2011-10-10 ", ""),
        (BOOK, "1.2.3.4 2011-10-10", ""),
        (BOOK, "1.2.3.4 2011-10-10 \0é", "\0é"),
        # A visitor cannot choose the day on which they are counted.
        *(
            (COMBINED, line, line[line.index('] "') + 2 :])
            for line in (
                WEB,
                WEB.replace("- -", "- jim knopf"),
                WEB.replace("- -", "- [01/Jan/1999:00:00:00 +0000] "),
                WEB.replace("- -", '- [01/Jan/1999:00:00:00 +0000] \\"'),
                WEB.replace("GET /", 'GET /?[01/Jan/1999:00:00:00 +0000] "'),
                WEB.replace("GET / HTTP/1.0", ""),
            )
        ),
        # A fraction and a zone may be there or not.
        *(
            (COMBINED, f"{WEB[:24]}{clock}{fraction}{zone}{WEB[39:]}", WEB[41:])
            for clock in (":13:55:36", ":00:00:00", ":23:59:60")
            for fraction in ("", ".1", ",123", ".123456789")
            for zone in ("", " -0700", " +02:00", "+02:00", "-0700", " Z", "Z", " +2359")
        ),
        *(
            (JSON, line, line)
            for line in (
                json('"2011-10-10T23:59:59-07:00"'),
                json('"2011-10-10 23:59:59,123"'),
                json('"2011-10-10T23:59:60.123456789Z"'),
                json('"2011-10-10T23:59"'),
                json('"10/Oct/2011:13:55:36.123 +02:00"'),
                json('"10/Oct/2011 13:55:36"'),
                json('"2011-10-10"'),
                json("1318204800"),
                json("1318291199.999"),
                ' {"time": "2011-10-10 x", "more": {"ip": "9.9.9.9"}, "ip": "1.2.3.4"} ',
            )
        ),
        (JsonLines("at.ip", "on"), '{"at": {"ip": "1.2.3.4"}, "on": "2011-10-10"}', None),
        (JsonLines("at.ip", "on"), '{"at.ip": "1.2.3.4", "on": "2011-10-10"}', None),
        # Lists, as Caddy makes of headers, and those that proxies make of addresses.
        *(
            (JsonLines(f"ip{key}"), json('"2011-10-10"', value), None)
            for key, value in (
                ("", '["1.2.3.4", "x"]'),
                ("", '["1.2.3.4, 10.0.0.1"]'),
                ("", '"1.2.3.4:5678, 10.0.0.1"'),
                ("", '"[::ffff:1.2.3.4]:80"'),
                ("", '"[::ffff:1.2.3.4]"'),
                ("", '"0:0:0:0:0:ffff:102:304:50718"'),
                (".0", '"1.2.3.4"'),
                (".-1", '"10.0.0.1, 1.2.3.4:80"'),
                (".-1", '["x", "10.0.0.1, 1.2.3.4"]'),
                (".1.x", '[1, {"x": "1.2.3.4"}]'),
            )
        ),
        (Pattern(WORDS), "1.2.3.4:80,10.0.0.1 2011-10-10", ""),
        # A BOM, which is in the first line of a file.
        *(
            (form, f"\ufeff{line}", rest)
            for form, line, rest in (
                (BOOK, "1.2.3.4 2011-10-10 x", "x"),
                (COMBINED, WEB, WEB[WEB.index('] "') + 2 :]),
                (JSON, json('"2011-10-10"'), None),
                (Pattern(r"(?P<ip>[\d.]+) (?P<time>\S+)"), "1.2.3.4 2011-10-10 x", " x"),
            )
        ),
        (PATTERN, "GET at=2011-10-10T13:55:36 from=::ffff:1.2.3.4,/index.html", "/index.html"),
    ],
)
def test_lines_are_read(form: Format, line: str, rest: str | None) -> None:
    data = line.encode()
    rest = line if rest is None else rest
    assert form.read(data)[:4] == (4, 0x01020304, DAY, len(data) - len(rest.encode()))


@pytest.mark.parametrize(
    ("form", "line", "reason"),
    [
        (BOOK, "1.2.3.4", FORMAT),
        (BOOK, "1.2.3.4\t2011-10-10", FORMAT),
        (BOOK, " 1.2.3.4 2011-10-10", ADDRESS),
        (BOOK, "host.example 2011-99-99 13:55:36 x", ADDRESS),
        *(
            (BOOK, f"1.2.3.4 {day}", DATE)
            for day in (
                *("2011-10-1", "2011-10-100", " 2011-10-10", "2011/10/10", "2011-10-10T13:55"),
                *("2011-02-29 x", "2011-13-01 x", "2011-01-00 x", "0000-01-01 x"),
            )
        ),
        (COMBINED, "1.2.3.4", FORMAT),
        (COMBINED, "1.2.3.4 - - [10/Oct/2011:13:55:36 -0700]", FORMAT),
        (COMBINED, WEB.replace(IP, "host.example"), ADDRESS),
        (COMBINED, '1.2.3.4 [] "', DATE),
        *(
            (COMBINED, WEB.replace(good, bad), DATE)
            for good, bad in (
                *(("Oct", "Okt"), ("10/Oct", "31/Nov"), ("10/Oct", "1/Oct"), (" [", "["), ("2011:", "2011 ")),
                *(("13:55:36", bad) for bad in ("99:99:99", "24:00:00", "13:60:00", "13:59:61", "13:55")),
                *(("36 ", "36. "), ("36 ", "36.1234567890 "), (" -0700", " "), (":13:55:36 -0700", "")),
                *(("-0700", bad) for bad in ("-07", "0700", "-2400", "-0760", "ABCDE")),
            )
        ),
        *(
            (JSON, each, FORMAT)
            for each in ("x", "5", "[" * 100_000, '["1.2.3.4", "2011-10-10"]', "\xff\xfe")
        ),
        (JSON, '{"ip": "1.2.3.4"}', FORMAT),
        (JSON, json('"2011-10-10"', "null"), FORMAT),
        (JSON, json("1" + "0" * 5_000), FORMAT),
        (JSON, json('"2011-10-10"', "16909060"), ADDRESS),
        (JSON, json('"2011-10-10"', '"\\ud800"'), ADDRESS),
        *(
            (JSON, json(time), DATE)
            for time in (
                *('"\\ud800"', '"2011-10-101"', '"10/Oct/20111"', '"2011-10-10T99:99:99 ABCDE"'),
                *('"2011-10-10 24:00"', '"10/Oct/2011:13:60:00"', "true", "{}", "NaN", "1e300", "-1e300"),
            )
        ),
        (JsonLines("at.ip", "on"), '{"at": "1.2.3.4", "on": "2011-10-10"}', FORMAT),
        *(
            (JsonLines(f"ip{key}"), json('"2011-10-10"', value), reason)
            for key, value, reason in (
                *((".9", '"1.2.3.4"', FORMAT), (".x", '["1.2.3.4"]', FORMAT), ("", "[]", FORMAT)),
                *(("", f'"{each}"', ADDRESS) for each in ("1.2.3.4:", "::1:80 x", "[::1", "[::1]x", ",")),
            )
        ),
        (PATTERN, "at=2011-10-10 from=1.2.3.4,", FORMAT),
        (PATTERN, "GET at=10/Oct/2011 from=x,", ADDRESS),
        (PATTERN, "GET at=10/Oct/2011 from=,", ADDRESS),
        (PATTERN, "GET at=yesterday from=1.2.3.4,", DATE),
    ],
)
def test_other_lines_are_rejected_with_the_reason(form: Format, line: str, reason: Reason) -> None:
    assert form.read(line.encode("latin-1")) is reason


@pytest.mark.parametrize(
    ("expression", "of"), [("(", ""), ("\ud800", ""), ("(?P<ip>.*)", "time"), ("(?P<time>.*)", "ip")]
)
def test_a_pattern_that_cannot_be_used_is_refused_at_once(expression: str, of: str) -> None:
    with pytest.raises(InvalidValue, match=f"P<{of}" if of else "expression"):
        Pattern(expression)
    with pytest.raises(InvalidValue):
        find_format("apache")


@pytest.mark.parametrize(
    ("form", "line", "minute", "status"),
    [
        (BOOK, "8.8.8.8 2011-10-10 13:55:36 x", 835, 0),
        (BOOK, "8.8.8.8 2011-10-10", -1, 0),
        (BOOK, "8.8.8.8 2011-10-10 24:00:00", -1, 0),
        (COMBINED, WEB.replace("200", "404"), 835, 404),
        (COMBINED, WEB.replace('HTTP/1.0" 200', '\\" 200 HTTP/1.1" 301'), 835, 301),
        (COMBINED, WEB.replace('HTTP/1.0" 200', '\\\\" 404 HTTP/1.1" 301'), 835, 404),
        (COMBINED, WEB.replace("200", "099"), 835, 0),
        (COMBINED, WEB.replace("200", "600"), 835, 0),
        (COMBINED, WEB.replace("200", "2000"), 835, 0),
        (COMBINED, WEB[:46], 835, 0),
        (JSON, '{"ip": "8.8.8.8", "time": "2011-10-10T00:07:00", "status": 503}', 7, 503),
        (JSON, '{"ip": "8.8.8.8", "time": 1318248000, "status": "204"}', 720, 204),
        (JSON, '{"ip": "8.8.8.8", "time": "2011-10-10", "status": true}', -1, 0),
        (Pattern(rf"{WORDS} (?P<status>\S+)"), "8.8.8.8 10/Oct/2011:23:59:59 200", 1_439, 200),
        (Pattern(WORDS), "8.8.8.8 2011-10-10 200", -1, 0),
        (Pattern(r"(?P<time>\S+\t\S+)\t\S+\t(?P<ip>\S+)"), "2011-10-10\t13:55:36\tLAX1\t8.8.8.8", 835, 0),
    ],
)
def test_minutes_and_statuses_are_read_where_there(form: Format, line: str, minute: int, status: int) -> None:
    found = form.read(line.encode())
    assert isinstance(found, Fields)
    assert (found.minute, found.status) == (minute, status)


@pytest.mark.parametrize(
    ("rest", *Parts._fields),
    [
        ('"GET /a/b?c=d#e HTTP/1.1" 200 5 "https://a.org/x?q=1" "curl/8"', "/a/b", "a.org", "curl/8"),
        ('"GET /a#b HTTP/1.1" 200 5 "-" "-"', "/a", "", ""),
        # A query, a user and a password are not counted, wherever they stand.
        ('"POST /" 200 5 "http://u:p@[::1]:80/x" ""', "/", "[::1]:80", ""),
        ('"GET / HTTP/1.1" 200 5 "u:p@a.org" ""', "/", "a.org", ""),
        ('"GET http://a/b HTTP/1.1" 200 5 "ftp://" "a \\"b\\" c"', "/b", "ftp:", 'a \\"b\\" c'),
        ('"GET http://u:p@a/b?c HTTP/1.1" 200 5 "http://u:p@w@a?c"', "/b", "a", ""),
        ('"GET ftp://u:p@a HTTP/1.1" 200 5', "", "", ""),
        ('"CONNECT u:p@a:443 HTTP/1.1" 200 5', "a:443", "", ""),
        ('"GET /u@a:/b HTTP/1.1" 200 5', "/u@a:/b", "", ""),
        # An even number of backslashes escapes nothing.
        ('"GET /wp-login\\\\" 404 5 "http://b\\\\" "c\\\\\\""', "/wp-login\\\\", "b\\\\", 'c\\\\\\"'),
        ('"\\x16\\x03" 400 5 "no address" "x"', "", "no address", "x"),
        ('"-" 408 0', "", "", ""),
        ('"GET /open', "", "", ""),
        ('"GET  /two-blanks" 200 "a//b"', "", "a", ""),
        ('"GET /only" 200 5', "/only", "", ""),
        ('"GET /\\"quoted\\" HTTP/1.1" 200 5 "http://b" "c" "1.2.3.4"', '/\\"quoted\\"', "b", "c"),
    ],
)
def test_web_lines_have_paths_referrers_and_agents(rest: str, path: str, referrer: str, agent: str) -> None:
    line = f"1.2.3.4 - jim [10/Oct/2011:13:55:36 +0200] {rest}".encode()
    assert Combined().parts(line) == Parts(path.encode(), referrer.encode(), agent.encode())


def test_json_and_patterns_have_parts_where_they_say_so() -> None:
    line = b'{"ip": "1.2.3.4", "time": "2011-10-10", "at": {"path": "/a?b"}, "agent": "-", "referrer": 7}'
    pattern = Pattern(rf"{WORDS} (?P<path>\S+)(?: (?P<status>\d+))?")
    assert JsonLines(path="at.path").parts(line) == Parts(b"/a", b"", b"")
    caddy = b'{"request": {"headers": {"User-Agent": ["a (b, c)"], "Referer": []}}}'
    form = JsonLines(referrer="request.headers.Referer", agent="request.headers.User-Agent")
    assert form.parts(caddy) == Parts(b"", b"", b"a (b, c)")
    assert pattern.parts(b"1.2.3.4 2011-10-10 /x?y") == Parts(b"/x")
    assert [*pattern.dimensions] == ["path"]
    assert {*Combined().dimensions} == {*JsonLines().dimensions} == {"path", "referrer", "agent"}


GOOD = b"1.2.3.4 2011-10-10 13:55:36 achievement-762\n"
TENTH = date(2011, 10, 10)


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
    assert first.counts == {(TENTH, 5): 3, (date(2011, 10, 11), 0): 1}
    assert (first.first_day, first.last_day) == (TENTH, date(2011, 10, 11))
    assert (second.lines, second.counts, second.rejected, second.samples) == (0, {}, {}, ())
    assert (second.first_day, second.last_day) == (None, None)
    assert (third.lines, third.counts, third.rejected) == (1, {(TENTH, 5): 1}, {})


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
    assert counting.take().counts == {(TENTH, 9): 2, (TENTH, 4): 2, (TENTH, 0): 1}


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
