"""
The header of a script is its interface, so it is held against the body: every key, argument and prelude that one
names, the other uses. components/kit/contracts.py says how a header reads.

The scripts of services that are not rewritten yet have the older header: KEYS[1] … KEYS[n], with KEYS[m..] for a tail
of any length; ARGV likewise; Returns. Their body begins by giving names to what has a fixed number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import components
from components.kit.contracts import read_header

SERVICES = Path(components.__file__).parent / "services"
FILES = {f"{path.parent.parent.name}/{path.stem}": path for path in sorted(SERVICES.glob("*/lua/*.lua"))}
FILES |= {f"kit/{path.stem}": path for path in sorted((SERVICES.parent / "kit" / "lua").glob("*.lua"))}
PRELUDES = {name: path for name, path in FILES.items() if "/_" in name}
SCRIPTS = {name: path for name, path in FILES.items() if name not in PRELUDES}
LONGEST = 40  # lines of code
LONGEST_MAIN = 60  # lines of code that are in no function
#: A whole step of a worker in one round trip is the point of the first, and of the second that a push, its unique key
#: and its tick are one.
LONGER: dict[str, int] = {}
WIDEST = 118  # characters
#: The hashes of counters have 120 fields at most, of which many are wanted together; aggregations of logs are few.
BOUNDED = {
    "counters/_slices": {"HGETALL"},
    "logs/_needed": {"HVALS"},
}
#: What goes through all keys or all of one, and so takes longer the more there is.
UNBOUNDED = {"KEYS", "SCAN", "SSCAN", "HSCAN", "ZSCAN", "HGETALL", "HKEYS", "HVALS", "SMEMBERS", "SORT"}
#: Lua's JSON turns [] into {} and rounds large numbers; its random numbers are the same in every call.
FORBIDDEN = ("cjson", "cmsgpack", "math.random", "redis.pcall", "redis.replicate_commands")


def wrong(name: str, source: str) -> Iterator[str]:
    """What is wrong with a script, a sentence each."""
    lines = source.splitlines()
    header = list(_leading_comment(lines))
    if any(line.startswith("-- RETURNS ") for line in header):
        yield from _contract_wrong(name, source)
        return
    code = [line for line in lines[len(header) :] if line.strip() and not line.strip().startswith("--")]
    body = re.sub(r"--.*", "", "\n".join(code))
    yield from _header_wrong(header)
    for table in ("KEYS", "ARGV"):
        yield from _table_wrong(table, header, body)
    yield from _body_wrong(body, BOUNDED.get(name, set()))
    if len(code) > LONGER.get(name, LONGEST):
        yield f"it has {len(code)} lines of code"
    yield from (f"line {number} is too wide" for number, line in enumerate(lines, 1) if len(line) > WIDEST)


def _leading_comment(lines: list[str]) -> Iterator[str]:
    for line in lines:
        if not line.startswith("--"):
            return
        yield line


def _header_wrong(header: list[str]) -> Iterator[str]:
    if not header or not re.match(r"-- [A-Z].*\.$", header[0]):
        yield "its first line does not say what it is for"
    if not any(line.startswith("-- Returns ") for line in header):
        yield "its header does not say what it returns"
    parts = [match[1] for line in header if (match := re.match(r"-- (KEYS|ARGV|Returns)\b", line))]
    if parts != sorted(parts, key=["KEYS", "ARGV", "Returns"].index):
        yield "its header is not in the order KEYS, ARGV, Returns"


def _table_wrong(table: str, header: list[str], body: str) -> Iterator[str]:
    entries = [match for line in header if (match := re.match(rf"-- {table}\[(\d+)(\.\.)?\]\s+\S", line))]
    fixed = {int(entry[1]) for entry in entries if not entry[2]}
    tail = [int(entry[1]) for entry in entries if entry[2]]
    if [int(entry[1]) for entry in entries] != list(range(1, len(entries) + 1)) or tail[:-1]:
        yield f"its header does not count {table} from 1, with one tail at most"
    used = {int(number) for number in re.findall(rf"\b{table}\[(\d+)\]", body)}
    yield from (f"{table}[{number}] is not in its body" for number in sorted(fixed - used))
    yield from (f"{table}[{number}] is not in its header" for number in sorted(used - fixed))
    has_computed = re.search(rf"\b{table}\[(?!\d+\])|\b(unpack|ipairs)\({table}\b", body) is not None
    if has_computed != bool(tail):
        yield f"its header {'has' if tail else 'has no'} tail of {table}, and its body {'none' if tail else 'one'}"
    opening = "\n".join(_opening(body))
    for number in sorted(fixed & used):
        mentions = len(re.findall(rf"\b{table}\[{number}\]", body))
        if mentions != 1 or f"{table}[{number}]" not in opening:
            yield f"{table}[{number}] is not given a name, once, in the first lines of its body"


def _opening(body: str) -> Iterator[str]:
    for line in body.splitlines():
        if not (line.startswith("local ") and ("KEYS[" in line or "ARGV[" in line)):
            return
        yield line


def _body_wrong(body: str, bounded: set[str], *, may_be_pure: bool = False) -> Iterator[str]:
    calls = len(re.findall(r"redis\.call\(", body))
    commands = re.findall(r'redis\.call\("([A-Z]+)"', body)
    if not commands and not may_be_pure:
        yield "it calls no command"
    if len(commands) != calls:
        yield "it calls a command that is not written out in capitals"
    yield from (f"it calls {command}" for command in sorted(UNBOUNDED & set(commands) - bounded))
    if commands.count("TIME") > 1:
        yield "it reads the time more than once"
    yield from (f"it uses {word}" for word in FORBIDDEN if word in body)
    for name in re.findall(r"^(?:function )?(\w+)\s*=[^=]", body, re.MULTILINE):
        yield f"{name} is global"


def _contract_wrong(name: str, source: str) -> Iterator[str]:
    """What is wrong with a script whose header the loader reads."""
    lines = source.splitlines()
    header = list(_leading_comment(lines))
    body = re.sub(r"--.*", "", "\n".join(lines[len(header) :]))
    if not re.match(r"-- [A-Z].*\.( .*)?$", header[0]):
        yield "its first line does not say what it does"
    parts = [match[1] for line in header if (match := re.match(r"-- (KEYS|ARGV|USES|RETURNS) ", line))]
    if parts != sorted(parts, key=["KEYS", "ARGV", "USES", "RETURNS"].index):
        yield "its header is not in the order KEYS, ARGV, USES, RETURNS"
    read = read_header(name, source)
    preludes = dict(all_preludes(name, read.get("USES", [])))
    everything = "\n".join([body, *(re.sub(r"--.*", "", each) for each in preludes.values())])
    for word in re.findall(r"\w+", " ".join([*read.get("KEYS", []), *read.get("ARGV", [])])):
        if not re.search(rf"\b{word}\b", everything):
            yield f"{word} is in its header and not in its body"
    for each in read.get("USES", []):
        others = "\n".join([body, *(text for other, text in preludes.items() if other != each)])
        if not any(re.search(rf"\b{word}\b", others) for word in defined_by(preludes[each])):
            yield f"it uses nothing of _{each}.lua"
    names = {*read.get("KEYS", []), *read.get("ARGV", [])}
    for complaint in _body_wrong(body, BOUNDED.get(name, set()), may_be_pure=bool(preludes)):
        if not (complaint.endswith(" is global") and complaint.split()[0] in names):
            yield complaint
    if "KEYS[" in body or "ARGV[" in body:
        yield "it takes keys or arguments by number"
    if '"TIME"' in body:
        yield "it reads the time by itself: USES time"
    yield from (f"line {number} is too wide" for number, line in enumerate(lines, 1) if len(line) > WIDEST)
    main = [line for line in re.sub(r"(?ms)^local function .*?^end$", "", body).splitlines() if line.strip()]
    if len(main) > LONGEST_MAIN:
        yield f"{len(main)} of its lines are in no function"


def all_preludes(name: str, wanted: list[str]) -> Iterator[tuple[str, str]]:
    """The preludes that a script uses, and those that they use, with their sources."""
    for each in wanted:
        yield each, (source := prelude_source(name, each))
        yield from all_preludes(name, read_header(each, source).get("USES", []))


def prelude_source(name: str, prelude: str) -> str:
    found = PRELUDES.get(f"{name.partition('/')[0]}/_{prelude}") or PRELUDES[f"kit/_{prelude}"]
    return found.read_text(encoding="utf-8")


def defined_by(prelude: str) -> set[str]:
    """The names that the rest of a script has from a prelude."""
    found = set(re.findall(r"^local function (\w+)", prelude, re.MULTILINE))
    for names in re.findall(r"^local ([\w, ]+?) =", prelude, re.MULTILINE):
        found |= {name.strip() for name in names.split(",")}
    for name in re.findall(r"^-- RECORD +(\w+):", prelude, re.MULTILINE):
        found |= {f"read_{name}", f"write_{name}"}
    return found


def test_there_are_scripts() -> None:
    assert {"queues/advance", "chat/send"} <= SCRIPTS.keys()
    assert sorted(FILES.values()) == sorted(SERVICES.parent.rglob("*.lua"))


@pytest.mark.parametrize("name", PRELUDES)
def test_a_prelude_only_defines(name: str) -> None:
    source = PRELUDES[name].read_text(encoding="utf-8")
    body = re.sub(r"--.*", "", source)

    assert defined_by(source)
    assert list(_body_wrong(body, BOUNDED.get(name, set()), may_be_pure=True)) == []
    assert '"TIME"' not in body or name == "kit/_time"
    assert all(len(line) <= WIDEST for line in source.splitlines())


@pytest.mark.parametrize("name", PRELUDES)
def test_a_prelude_is_used(name: str) -> None:
    users = [
        each
        for each, path in FILES.items()
        if name.partition("/_")[2] in read_header(each, path.read_text(encoding="utf-8")).get("USES", [])
        and name.partition("/")[0] in ("kit", each.partition("/")[0])
    ]

    assert users


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_header_of_a_script_agrees_with_its_body(name: str) -> None:
    assert list(wrong(name, SCRIPTS[name].read_text(encoding="utf-8"))) == []


def test_every_exception_is_still_needed() -> None:
    assert LONGER.keys() <= SCRIPTS.keys()
    for name, longest in LONGER.items():
        source = SCRIPTS[name].read_text(encoding="utf-8")
        assert len(source.splitlines()) > LONGEST
        assert longest < 300


GOOD = """\
-- Do something good.
-- KEYS[1] book  HASH id -> title
-- KEYS[2..] per shelf: ZSET
-- ARGV[1] id
-- ARGV[2..] titles
-- Returns how many
local book = KEYS[1]
local id = ARGV[1]

local time = redis.call("TIME")
for number = 2, #ARGV do
  redis.call("HSET", book, id, ARGV[number])
  redis.call("ZADD", KEYS[number], time[1], id)
end
return #ARGV
"""


LONG = "local a\n" * 60
GOOD_CONTRACT = """\
-- Do something good.
-- KEYS    mailbox names
-- ARGV    name titles...
-- USES    time figure
-- RETURNS how many
for at, title in ipairs(titles) do
  redis.call("HSET", mailbox, name, title)
  redis.call("ZADD", names, NOW, title)
end
return figure("pushed")
"""


def test_a_good_contract_is_not_complained_about() -> None:
    assert list(wrong("mailboxes/good", GOOD_CONTRACT)) == []


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("-- Do something good.\n", "", "its first line does not say what it does"),
        ("-- Do something good.", "-- do something", "its first line does not say what it does"),
        (
            "-- USES    time figure\n-- RETURNS how many",
            "-- RETURNS how many\n-- USES    time figure",
            "order",
        ),
        ("name titles...", "name titles... more", "more is in its header and not in its body"),
        ("mailbox names", "mailbox names others", "others is in its header and not in its body"),
        ("time figure", "time figure listed", "it uses nothing of _listed.lua"),
        ("NOW", 'redis.call("TIME")[1]', "it reads the time by itself"),
        ('"HSET", mailbox', '"HSET", KEYS[1]', "by number"),
        ('"HSET", mailbox', '"KEYS", mailbox', "it calls KEYS"),
        ("return figure", LONG + "return figure", "are in no function"),
    ],
)
def test_a_bad_contract_is_complained_about(old: str, new: str, complaint: str) -> None:
    assert old in GOOD_CONTRACT

    complaints = list(wrong("mailboxes/bad", GOOD_CONTRACT.replace(old, new)))

    assert any(complaint in found for found in complaints)


def test_a_good_script_is_not_complained_about() -> None:
    assert list(wrong("a/good", GOOD)) == []


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (GOOD, "", "its first line does not say what it is for"),
        ("-- Do something good.\n", "", "its first line does not say what it is for"),
        ("-- Do something good.", "-- do something", "its first line does not say what it is for"),
        ("-- Returns how many\n", "", "its header does not say what it returns"),
        ("-- Returns how many", "-- Returns", "its header does not say what it returns"),
        ("-- KEYS[1] book  HASH id -> title\n", "", "KEYS[1] is not in its header"),
        ("-- KEYS[1] book  HASH id -> title", "-- KEYS[1]", "KEYS[1] is not in its header"),
        ("-- ARGV[1] id\n", "", "its header does not count ARGV from 1, with one tail at most"),
        ("-- KEYS[2..] per shelf: ZSET\n", "", "its header has no tail of KEYS, and its body one"),
        ("KEYS[number]", "book", "its header has tail of KEYS, and its body none"),
        ("local id = ARGV[1]\n", "local id = 1\n", "ARGV[1] is not in its body"),
        ('"ZADD", KEYS[number]', '"ZADD", KEYS[number], ARGV[7]', "ARGV[7] is not in its header"),
        ("local id = ARGV[1]\n\n", "\nlocal a = 1\nlocal id = ARGV[1]\n", "is not given a name, once"),
        ('"HSET", book', '"HSET", KEYS[1]', "KEYS[1] is not given a name, once"),
        (
            "-- ARGV[1] id\n-- ARGV[2..] titles\n-- Returns how many",
            "-- Returns how many\n-- ARGV[1] id",
            "order",
        ),
        ('"HSET", book, id, ARGV[number]', '"HGETALL", book', "it calls HGETALL"),
        ('"HSET", book, id, ARGV[number]', '"KEYS", "*"', "it calls KEYS"),
        ('"HSET", book, id, ARGV[number]', '"SCAN", 0', "it calls SCAN"),
        ('"HSET", book', '"hset", book', "not written out in capitals"),
        ('"HSET", book', "id, book", "not written out in capitals"),
        ('"HSET", book', '"TIME", book', "it reads the time more than once"),
        ("return #ARGV", "return cjson.encode(time)", "it uses cjson"),
        ("return #ARGV", "return math.random()", "it uses math.random"),
        ("return #ARGV", "many = #ARGV\nreturn many", "many is global"),
        ("return #ARGV", "local a\n" * 40 + "return #ARGV", "lines of code"),
        ("return #ARGV", f"return #ARGV --{'-' * 120}", "line 15 is too wide"),
    ],
)
def test_a_bad_script_is_complained_about(old: str, new: str, complaint: str) -> None:
    assert old in GOOD

    complaints = list(wrong("a/bad", GOOD.replace(old, new)))

    assert any(complaint in found for found in complaints)
