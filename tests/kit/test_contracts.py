"""What the loader of scripts makes of a header, of preludes and of records."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis import Redis

from components.kit.contracts import Contract, Names, Record, Table, contract, read_header, record

MEMBER = Record("member", ("role", "joined", "muted"))
words = st.text(st.characters(blacklist_characters=" \0", blacklist_categories=["Cs"]), max_size=5)


def test_a_line_that_comes_twice_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"a/b\.lua: its header has two lines KEYS"):
        read_header("a/b", "-- Do it.\n-- KEYS    one\n-- KEYS    two")


def test_a_prelude_comes_once_and_after_what_it_needs() -> None:
    source = contract("mailboxes/push").source

    assert source.count('redis.call("TIME")') == 1
    assert (
        source.index('redis.call("TIME")')
        < source.index("local today, yesterday")
        < source.index("make_room")
    )


def test_what_a_script_does_not_use_of_a_prelude_is_left_out() -> None:
    release = contract("locks/release").source

    assert "local function microseconds" in release
    assert "MICROSECONDS" not in release
    assert "local function text" in release
    assert "read_tombstone" in contract("chat/send").source
    assert "write_tombstone" not in contract("chat/send").source


def test_keys_come_from_an_entity_and_arguments_by_their_names() -> None:
    made = Contract("a/b", Names(("one",), (Table("others"),)), Names(("x", "y"), (Table("more"),)), "")

    assert made.keys_of(SimpleNamespace(others=["k2", "k3"], one="k1"), {}) == ["k1", "k2", "k3"]
    assert made.args_of({"y": 2, "more": [3, 4], "x": 1}) == [1, 2, 3, 4]


@pytest.mark.parametrize("parts", [("b",), ("b", "a")])
def test_the_text_after_a_marker_may_come_in_parts(redis: Redis, parts: tuple[str, ...]) -> None:
    tables = (Table("shares", parts), Table("words"), Table("tasks", parts))
    made = Contract("a/b", Names(("one",), (Table("queues", parts),)), Names(("x",), tables), "")
    entries = [SimpleNamespace(a=number, b=-number) for number in (1, 2)]
    given = {"x": 0, "queues": entries, "tasks": entries, "shares": [], "words": ["w"]}

    keys = made.keys_of(SimpleNamespace(one="k"), given)
    args = made.args_of(given)
    shows = """
        local found = { one, x, #shares, words[1], #words }
        for at, each in ipairs(tasks) do found[#found + 1] = each.b + queues[at].b end
        return found"""
    source = "\n".join([*made.keys.locals("KEYS"), *made.args.locals("ARGV"), shows])

    flat = [getattr(entry, part) for entry in entries for part in parts]
    assert keys == ["k", *flat]
    assert args == [0, 0, 1, "w", *flat]
    assert redis.eval(source, len(keys), *map(str, keys), *args) == [b"k", b"0", 0, b"w", 1, -2, -4]


def test_keys_in_parts_that_are_not_given_are_an_error() -> None:
    made = Contract("a/b", Names((), (Table("queues", ("ready",)),)), Names(), "")

    with pytest.raises(TypeError, match=r"a/b\.lua takes the keys of queues as an argument"):
        made.keys_of(SimpleNamespace(), {})


def test_a_key_with_a_part_reaches_the_script_as_a_prefix() -> None:
    made = Contract("a/b", Names(("result",)), Names(), "")

    assert made.keys_of(SimpleNamespace(result=lambda part: f"result:{part}"), {}) == ["result:"]


@pytest.mark.parametrize("given", [{}, {"x": 1}, {"x": 1, "y": 2, "z": 3}, {"x": 1, "z": 2}])
def test_other_arguments_than_those_of_the_script_are_an_error(given: dict[str, int]) -> None:
    made = Contract("a/b", Names(), Names(("x", "y")), "")

    with pytest.raises(TypeError, match=r"a/b\.lua takes the arguments x, y, but got"):
        made.args_of(given)


@given(words, words, words)
def test_a_record_is_read_as_it_was_written(role: str, joined: str, muted: str) -> None:
    assert MEMBER.read(MEMBER.write(role=role, joined=joined, muted=muted)) == {
        "role": role,
        "joined": joined,
        "muted": muted,
    }


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        (b"owner 1 2", ("owner", "1", "2")),
        (b"owner 1", ("owner", "1", "")),
        (b"owner  2", ("owner", "", "2")),
        (b"owner 1 2 3", ("owner", "1", "2")),
        (b"", ("", "", "")),
        (b"\xff 1 2", ("\ufffd", "1", "2")),
    ],
)
def test_both_languages_read_older_newer_and_damaged_records_alike(
    redis: Redis, text: bytes, fields: tuple[str, ...]
) -> None:
    source = "\n".join(MEMBER.lua())
    shows = "local m = read_member(ARGV[1]) return { m.role, m.joined, m.muted, write_member(m) }"

    assert tuple(MEMBER.read(text).values()) == fields
    *found, written = redis.eval(f"{source}\n{shows}", 0, text)
    assert tuple(each.decode(errors="replace") for each in found) == fields
    assert MEMBER.read(written) == MEMBER.read(text)


def test_a_failed_write_is_an_error() -> None:
    with pytest.raises(TypeError, match="A member has the fields role, joined, muted"):
        MEMBER.write(role="owner")
    with pytest.raises(ValueError, match="must not contain blanks"):
        MEMBER.write(role="the owner", joined=1, muted="")


def test_a_prelude_that_is_not_there_or_declares_no_record_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"no prelude _nothing\.lua"):
        record("mailboxes", "nothing")
    with pytest.raises(ValueError, match="RECORD  member: role joined"):
        record("mailboxes", "figure")
