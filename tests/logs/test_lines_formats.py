"""What lines mean: which are counted, on which day, and why others are not. Held against what a person would say."""

from __future__ import annotations

from datetime import date

import pytest

from components.exceptions import InvalidValue
from components.services.logs.lines import (
    Book,
    Combined,
    Format,
    JsonLines,
    Parts,
    Pattern,
    Reason,
    find_format,
    parse_address,
)
from components.services.logs.lines.formats import Fields

GOOGLE = 0xADC2268A
DAY = date(2011, 10, 10).toordinal()
WEB = '1.2.3.4 - - [10/Oct/2011:13:55:36 -0700] "GET / HTTP/1.0" 200 23'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"173.194.38.138", (4, GOOGLE)),
        (b"255.255.255.255", (4, 2**32 - 1)),
        (b"::ffff:173.194.38.138", (4, GOOGLE)),
        (b"2001:db8::1", (6, 0x20010DB8 << 96 | 1)),
        (b"::", (6, 0)),
        (b"256.1.1.1", None),
        (b"1.2.3", None),
        (b"1.2.3.4.5", None),
        (b"1..3.4", None),
        (b"01.2.3.4", None),
        (b"1.2.3.00", None),
        (b" 1.2.3.4", None),
        (b"1.2.3.4:80", None),
        (b"fe80::1%eth0", None),
        (b"1:2:3:4:5:6:7", None),
        ("\u0661.2.3.4".encode(), None),
        (b"::\xff", None),
        (b"::1" + b" " * 50, None),
        (b"", None),
    ],
)
def test_addresses_are_read_strictly(text: bytes, expected: tuple[int, int] | None) -> None:
    assert parse_address(text) == expected


@pytest.mark.parametrize(
    ("line", "rest"),
    [
        (b"173.194.38.138 2011-10-10 13:55:36 achievement-762", b"13:55:36 achievement-762"),
        (b"173.194.38.138 2011-10-10 ", b""),
        (b"173.194.38.138 2011-10-10", b""),
        (b"173.194.38.138 2011-10-10 \0\xff", b"\0\xff"),
    ],
)
def test_lines_of_the_book_are_read(line: bytes, rest: bytes) -> None:
    fields = Book().read(line)

    assert fields[:4] == (4, GOOGLE, DAY, len(line) - len(rest))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"173.194.38.138", Reason.FORMAT),
        (b"173.194.38.138\t2011-10-10", Reason.FORMAT),
        (b" 1.2.3.4 2011-10-10", Reason.ADDRESS),
        (b"host.example 2011-99-99 13:55:36 x", Reason.ADDRESS),
        (b"1.2.3.4 2011-10-1", Reason.DATE),
        (b"1.2.3.4 2011-10-100", Reason.DATE),
        (b"1.2.3.4  2011-10-10", Reason.DATE),
        (b"1.2.3.4 2011/10/10", Reason.DATE),
        (b"1.2.3.4 2011-10-10T13:55", Reason.DATE),
        (b"1.2.3.4 2011-02-29 x", Reason.DATE),
        (b"1.2.3.4 2011-13-01 x", Reason.DATE),
        (b"1.2.3.4 2011-01-00 x", Reason.DATE),
        (b"1.2.3.4 0000-01-01 x", Reason.DATE),
    ],
)
def test_other_lines_are_rejected_with_the_reason(line: bytes, reason: Reason) -> None:
    assert Book().read(line) is reason


@pytest.mark.parametrize("day", [date.min, date(1900, 2, 28), date(2000, 2, 29), date(2012, 2, 29), date.max])
@pytest.mark.parametrize("form", [Book(), Combined()], ids=["book", "combined"])
def test_days_are_those_of_the_years_1_to_9999(day: date, form: Format) -> None:
    month = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"][
        day.month - 1
    ]
    web = f'1.2.3.4 - - [{day.day:02}/{month}/{day.year:04}:00:00:00 +0000] "GET'

    fields = form.read((f"1.2.3.4 {day} x" if isinstance(form, Book) else web).encode())

    assert not isinstance(fields, Reason)
    assert fields.day == day.toordinal()


@pytest.mark.parametrize(
    "line",
    [
        WEB,
        WEB.replace("- -", "- jim"),
        WEB.replace("- -", "- jim knopf"),
        WEB.replace("- -", "- [01/Jan/1999:00:00:00 +0000] "),
        WEB.replace("- -", '- [01/Jan/1999:00:00:00 +0000] \\"'),
        WEB.replace("GET /", 'GET /?[01/Jan/1999:00:00:00 +0000] "'),
        WEB.replace("GET / HTTP/1.0", ""),
    ],
)
def test_a_visitor_cannot_choose_the_day_on_which_they_are_counted(line: str) -> None:
    fields = Combined().read(line.encode())

    assert fields[:4] == (4, 0x01020304, DAY, line.index('] "') + 2)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("1.2.3.4", Reason.FORMAT),
        ("1.2.3.4 - - [10/Oct/2011:13:55:36 -0700]", Reason.FORMAT),
        (WEB.replace("1.2.3.4", "host.example"), Reason.ADDRESS),
        (WEB.replace("Oct", "Okt"), Reason.DATE),
        (WEB.replace("10/Oct", "31/Nov"), Reason.DATE),
        (WEB.replace("10/Oct", "1/Oct"), Reason.DATE),
        (WEB.replace(" [", "["), Reason.DATE),
        (WEB.replace("2011:", "2011 "), Reason.DATE),
        (WEB.replace("13:55:36 -0700", "99:99:99 ABCDE"), Reason.DATE),
        (WEB.replace("13:55:36", "24:00:00"), Reason.DATE),
        (WEB.replace("13:55:36", "13:60:00"), Reason.DATE),
        (WEB.replace("13:55:36", "13:59:61"), Reason.DATE),
        (WEB.replace("13:55:36", "13:55"), Reason.DATE),
        (WEB.replace("13:55:36", "13:55:36."), Reason.DATE),
        (WEB.replace("13:55:36", "13:55:36.1234567890"), Reason.DATE),
        (WEB.replace("-0700", "-07"), Reason.DATE),
        (WEB.replace("-0700", "0700"), Reason.DATE),
        (WEB.replace("-0700", "-2400"), Reason.DATE),
        (WEB.replace("-0700", "-0760"), Reason.DATE),
        (WEB.replace(" -0700", " "), Reason.DATE),
        (WEB.replace(":13:55:36 -0700", ""), Reason.DATE),
        ('1.2.3.4 [] "', Reason.DATE),
    ],
)
def test_other_lines_of_web_servers_are_rejected_with_the_reason(line: str, reason: Reason) -> None:
    assert Combined().read(line.encode()) is reason


def test_times_of_web_servers_may_have_a_fraction_and_any_zone_or_none() -> None:
    for clock in ("13:55:36", "00:00:00", "23:59:59", "23:59:60"):
        for fraction in ("", ".1", ",123", ".123456789"):
            for zone in ("", " -0700", " +02:00", "+02:00", "-0700", " Z", "Z", " +2359"):
                found = Combined().read(WEB.replace("13:55:36 -0700", clock + fraction + zone).encode())
                assert found[:3] == (4, 0x01020304, DAY)


@pytest.mark.parametrize(
    "line",
    [
        '{"ip": "1.2.3.4", "time": "2011-10-10T23:59:59-07:00"}',
        '{"ip": "1.2.3.4", "time": "2011-10-10 23:59:59,123"}',
        '{"ip": "1.2.3.4", "time": "2011-10-10T23:59:60.123456789Z"}',
        '{"ip": "1.2.3.4", "time": "2011-10-10T23:59"}',
        '{"ip": "1.2.3.4", "time": "10/Oct/2011:13:55:36.123 +02:00"}',
        '{"ip": "1.2.3.4", "time": "10/Oct/2011 13:55:36"}',
        '{"ip": "1.2.3.4", "time": "2011-10-10"}',
        '{"ip": "1.2.3.4", "time": "10/Oct/2011:13:55:36 -0700"}',
        '{"ip": "1.2.3.4", "time": 1318204800}',
        '{"ip": "1.2.3.4", "time": 1318291199.999}',
        ' {"time": "2011-10-10 x", "more": {"ip": "9.9.9.9"}, "ip": "1.2.3.4"} ',
    ],
)
def test_json_lines_are_read(line: str) -> None:
    assert JsonLines().read(line.encode())[:4] == (4, 0x01020304, DAY, 0)


def test_keys_may_lead_into_objects() -> None:
    form = JsonLines(address="request.client_ip", time="at")

    assert form.read(b'{"request": {"client_ip": "1.2.3.4"}, "at": "2011-10-10"}')[:4] == (
        4,
        0x01020304,
        DAY,
        0,
    )
    assert form.read(b'{"request": "1.2.3.4", "at": "2011-10-10"}') is Reason.FORMAT


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"nonsense", Reason.FORMAT),
        (b"\xff\xfe", Reason.FORMAT),
        (b"[" * 100_000, Reason.FORMAT),
        (b'["1.2.3.4", "2011-10-10"]', Reason.FORMAT),
        (b'{"ip": "1.2.3.4"}', Reason.FORMAT),
        (b'{"ip": null, "time": "2011-10-10"}', Reason.FORMAT),
        (b'{"ip": 16909060, "time": "2011-10-10"}', Reason.ADDRESS),
        (b'{"ip": "\\ud800", "time": "2011-10-10"}', Reason.ADDRESS),
        (b'{"ip": "1.2.3.4", "time": "\\ud800"}', Reason.DATE),
        (b'{"ip": "1.2.3.4", "time": "2011-10-101"}', Reason.DATE),
        (b'{"ip": "1.2.3.4", "time": "10/Oct/20111"}', Reason.DATE),
        (b'{"ip": "1.2.3.4", "time": "2011-10-10T99:99:99 ABCDE"}', Reason.DATE),
        (b'{"ip": "1.2.3.4", "time": "2011-10-10 24:00"}', Reason.DATE),
        (b'{"ip": "1.2.3.4", "time": "10/Oct/2011:99:99:99 ABCDE"}', Reason.DATE),
        (b'{"ip": "1.2.3.4", "time": "10/Oct/2011:13:60:00"}', Reason.DATE),
        (b'{"ip": "1.2.3.4", "time": true}', Reason.DATE),
        (b'{"ip": "1.2.3.4", "time": []}', Reason.DATE),
        (b'{"ip": "1.2.3.4", "time": NaN}', Reason.DATE),
        (b'{"ip": "1.2.3.4", "time": 1e300}', Reason.DATE),
        (b'{"ip": "1.2.3.4", "time": -1e300}', Reason.DATE),
        (b'{"ip": "1.2.3.4", "time": 1' + b"0" * 5_000 + b"}", Reason.FORMAT),
    ],
)
def test_other_json_lines_are_rejected_with_the_reason(line: bytes, reason: Reason) -> None:
    assert JsonLines().read(line) is reason


def test_a_pattern_of_ones_own_says_where_address_and_time_stand() -> None:
    form = Pattern(r"\w+ at=(?P<time>\S+) from=(?P<ip>[^,]+),")
    line = b"GET at=2011-10-10T13:55:36 from=::ffff:1.2.3.4,/index.html"

    assert form.read(line)[:4] == (4, 0x01020304, DAY, line.index(b"/"))
    assert form.read(b"at=2011-10-10 from=1.2.3.4,") is Reason.FORMAT
    assert form.read(b"GET at=10/Oct/2011 from=x,") is Reason.ADDRESS
    assert form.read(b"GET at=yesterday from=1.2.3.4,") is Reason.DATE


def test_a_group_that_matched_nothing_is_no_address() -> None:
    assert Pattern(r"(?P<ip>[\d.]+)? (?P<time>.+)").read(b" 2011-10-10") is Reason.ADDRESS


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ("(", "not a regular expression"),
        ("(?P<ip>.*)", r"lacks the group \(\?P<time>…\)"),
        (".*", r"lacks the group \(\?P<ip>…\) and \(\?P<time>…\)"),
        ("\ud800", "not a regular expression"),
    ],
)
def test_a_pattern_that_cannot_be_used_is_refused_at_once(expression: str, complaint: str) -> None:
    with pytest.raises(InvalidValue, match=complaint):
        Pattern(expression)


def test_formats_are_found_by_name() -> None:
    assert [find_format(name) for name in ("book", "combined", "json")] == [Book(), Combined(), JsonLines()]
    with pytest.raises(InvalidValue, match="no format 'apache'; there are: book, combined, json"):
        find_format("apache")


def test_the_minute_and_the_status_are_read_where_a_line_has_them() -> None:
    web = b"8.8.8.8 - - [10/Oct/2011:13:55:36 +0200] "
    found = {
        (form, line): (fields.minute, fields.status)
        for form, line in [
            (Book(), b"8.8.8.8 2011-10-10 13:55:36 x"),
            (Book(), b"8.8.8.8 2011-10-10"),
            (Book(), b"8.8.8.8 2011-10-10 24:00:00"),
            (Combined(), web + b'"GET / HTTP/1.1" 404 5 "-" "curl"'),
            (Combined(), web + b'"GET /\\" 200 HTTP/1.1" 301'),
            (Combined(), web + b'"" 099 1'),
            (Combined(), web + b'"GET /'),
            (JsonLines(), b'{"ip": "8.8.8.8", "time": "2011-10-10T00:07:00", "status": 503}'),
            (JsonLines(), b'{"ip": "8.8.8.8", "time": 1318248000, "status": "204"}'),
            (JsonLines(), b'{"ip": "8.8.8.8", "time": "2011-10-10", "status": true}'),
            (Pattern(r"(?P<ip>\S+) (?P<time>\S+) (?P<status>\S+)"), b"8.8.8.8 10/Oct/2011:23:59:59 200"),
            (Pattern(r"(?P<ip>\S+) (?P<time>\S+)"), b"8.8.8.8 2011-10-10 200"),
        ]
        if isinstance(fields := form.read(line), Fields)
    }

    assert list(found.values()) == [
        (835, 0),
        (-1, 0),
        (-1, 0),
        (835, 404),
        (835, 301),
        (835, 0),
        (835, 0),
        (7, 503),
        (720, 204),
        (-1, 0),
        (1_439, 200),
        (-1, 0),
    ]


@pytest.mark.parametrize(
    ("rest", *Parts._fields),
    [
        (
            '"GET /a/b?c=d#e HTTP/1.1" 200 5 "https://example.org/x?q=1" "curl/8"',
            "/a/b",
            "example.org",
            "curl/8",
        ),
        ('"GET /a#b HTTP/1.1" 200 5 "-" "-"', "/a", "", ""),
        ('"POST /" 200 5 "http://u:p@[::1]:80/x" ""', "/", "u:p@[::1]:80", ""),
        ('"GET http://a/b HTTP/1.1" 200 5 "ftp://" "a \\"b\\" c"', "http://a/b", "ftp:", 'a \\"b\\" c'),
        ('"\\x16\\x03" 400 5 "no address" "x"', "", "no address", "x"),
        ('"-" 408 0', "", "", ""),
        ('"GET /open', "", "", ""),
        ('"GET  /two-blanks" 200 "a//b"', "", "a", ""),
        ('"GET /only" 200 5', "/only", "", ""),
        ('"GET /\\"quoted\\" HTTP/1.1" 200 5 "http://b" "c" "1.2.3.4"', '/\\"quoted\\"', "b", "c"),
    ],
)
def test_lines_of_web_servers_have_paths_referrers_and_agents(
    rest: str, path: str, referrer: str, agent: str
) -> None:
    line = f"1.2.3.4 - jim [10/Oct/2011:13:55:36 +0200] {rest}".encode()

    assert Combined().parts(line) == Parts(path.encode(), referrer.encode(), agent.encode())


def test_json_and_patterns_have_parts_where_they_say_so() -> None:
    line = b'{"ip": "1.2.3.4", "time": "2011-10-10", "at": {"path": "/a?b"}, "agent": "-", "referrer": 7}'
    pattern = Pattern(r"(?P<ip>\S+) (?P<time>\S+) (?P<path>\S+)(?: (?P<status>\d+))?")

    assert JsonLines(path="at.path").parts(line) == Parts(b"/a", b"", b"")
    assert pattern.parts(b"1.2.3.4 2011-10-10 /x?y") == Parts(b"/x")
    assert [*pattern.dimensions] == ["path"]
    assert {*Combined().dimensions} == {*JsonLines().dimensions} == {"path", "referrer", "agent"}
