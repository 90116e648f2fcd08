"""Paths, referrers and agents of lines: what the formats take for them, and that all kernels find the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from components.services.logs.lines import KERNELS, Combined, JsonLines, Parts, Pattern, choose_kernel
from tests.logs.test_lines_kernels import COMBINED, LONGEST, blocks

BEGIN = "1.2.3.4 - jim [10/Oct/2011:13:55:36 +0200] "
WEB = [
    ('"GET /a/b?c=d#e HTTP/1.1" 200 5 "https://example.org/x?q=1" "curl/8"', "/a/b", "example.org", "curl/8"),
    ('"GET /a#b HTTP/1.1" 200 5 "-" "-"', "/a", "", ""),
    ('"POST /" 200 5 "http://u:p@[::1]:80/x" ""', "/", "u:p@[::1]:80", ""),
    (
        '"GET http://a.example/b HTTP/1.1" 200 5 "ftp://" "a \\"b\\" c"',
        "http://a.example/b",
        "ftp:",
        'a \\"b\\" c',
    ),
    ('"\\x16\\x03" 400 5 "no address" "x"', "", "no address", "x"),
    ('"-" 408 0', "", "", ""),
    ('"GET /open', "", "", ""),
    ('"GET  /two-blanks" 200 "a//b"', "", "a", ""),
    ('"GET /only" 200 5', "/only", "", ""),
    ('"GET /\\"quoted\\" HTTP/1.1" 200 5 "http://b" "c" "1.2.3.4"', '/\\"quoted\\"', "b", "c"),
]
requests = st.lists(
    st.sampled_from(
        [" ", "?", "#", "/", "://", ":", '"', '\\"', "-", '" "', '" 200 5 "', "GET /a", "é", "\r"]
    ),
    max_size=14,
).map("".join)
web_lines = requests.map(lambda text: f'{BEGIN}"{text}'.encode())


def parts_of(kernel: str, block: bytes, form: object) -> list[tuple[bytes, ...]]:
    chosen = choose_kernel(kernel)
    spans = chosen.spans(chosen.columns(block, form), form)
    rows = [
        [spans.data[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
        for starts, ends in zip(spans.starts, spans.ends, strict=True)
    ]
    return list(zip(*rows, strict=True))


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_combined_format_has_paths_referrers_and_agents(kernel):
    block = "\n".join(BEGIN + line for line, *_parts in WEB).encode()

    assert parts_of(kernel, block, Combined()) == [
        tuple(each.encode() for each in parts) for _line, *parts in WEB
    ]


@pytest.mark.parametrize("kernel", set(KERNELS) - {"naive"})
@settings(max_examples=300)
@given(
    block=st.one_of(
        blocks,
        st.lists(st.one_of(web_lines, st.sampled_from([COMBINED, LONGEST])), max_size=9).map(b"\n".join),
    )
)
@example(block=b"")
@example(block=COMBINED)
def test_all_kernels_find_the_same_parts(kernel, block):
    assert parts_of(kernel, block, Combined()) == parts_of("naive", block, Combined())


def test_json_and_patterns_have_parts_where_they_say_so():
    line = b'{"ip": "1.2.3.4", "time": "2011-10-10", "path": "/a?b", "agent": "c\\u00e9", "referrer": 7}'
    pattern = Pattern(r"(?P<ip>\S+) (?P<time>\S+) (?P<path>\S+)(?: (?P<status>\d+))?")

    assert parts_of("numpy", line, JsonLines()) == [(b"/a", b"", "cé".encode())]
    assert pattern.parts(b"1.2.3.4 2011-10-10 /x?y") == Parts(b"/x")
    assert (list(pattern.dimensions), list(Combined().dimensions)) == (
        ["path"],
        ["path", "referrer", "agent"],
    )


@pytest.mark.parametrize("kernel", KERNELS)
@given(
    rounds=st.lists(
        st.lists(st.one_of(st.binary(max_size=20), st.sampled_from([b"", b"a" * 40])), max_size=40)
    )
)
def test_values_are_numbered_in_the_order_in_which_they_come(kernel, rounds):
    values = choose_kernel(kernel).values()
    known: dict[bytes, int] = {}

    for some in rounds:
        ends = [sum(map(len, some[: number + 1])) for number in range(len(some))]
        starts = [end - len(value) for end, value in zip(ends, some, strict=True)]
        found = values.numbers(b"".join(some), *(np_of(each) for each in (starts, ends)))
        assert found.tolist() == [known.setdefault(value, len(known)) for value in some]

    assert values.texts() == list(known)
    assert len(values) == len(known)


@pytest.mark.parametrize("kernel", KERNELS)
def test_many_values_are_told_apart(kernel):
    values = choose_kernel(kernel).values()
    texts = [b"/%d" % number for number in range(20_000)]
    lengths = np_of([len(text) for text in texts])
    data, ends = b"".join(texts), lengths.cumsum()

    for _ in range(2):
        assert values.numbers(data, ends - lengths, ends).tolist() == list(range(20_000))
    assert values.texts() == texts


def np_of(numbers: list[int]) -> np.ndarray:
    return np.array(numbers, np.int64)
