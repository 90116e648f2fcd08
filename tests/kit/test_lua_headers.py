"""
The header of a script is its interface, so it is held against the body: every key, argument and prelude that one
names, the other uses. components/kit/contracts.py says how a header reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import components
from components.kit.contracts import read_header

SERVICES = Path(components.__file__).parent / "services"
FILES = {f"{path.parent.parent.name}/{path.stem}": path for path in sorted(SERVICES.glob("*/lua/*.lua"))}
FILES |= {f"kit/{path.stem}": path for path in sorted((SERVICES.parent / "kit" / "lua").glob("*.lua"))}
PRELUDES = {name: path for name, path in FILES.items() if "/_" in name}
SCRIPTS = {name: path for name, path in FILES.items() if name not in PRELUDES}
LONGEST_MAIN = 60  # lines of code that are in no function
WIDEST = 118  # characters
#: The hashes of counters have 120 fields at most, of which many are wanted together; the searches of a book that
#: found nothing are 200; aggregations of logs are few.
BOUNDED = {
    "autocomplete/_miss": {"HGETALL"},
    "counters/_slices": {"HGETALL"},
    "logs/_needed": {"HVALS"},
}
#: What goes through all keys or all of one, and so takes longer the more there is.
UNBOUNDED = {"KEYS", "SCAN", "SSCAN", "HSCAN", "ZSCAN", "HGETALL", "HKEYS", "HVALS", "SMEMBERS", "SORT"}
#: Lua's JSON turns [] into {} and rounds large numbers; its random numbers are the same in every call.
FORBIDDEN = ("cjson", "cmsgpack", "math.random", "redis.pcall", "redis.replicate_commands")


def _leading_comment(lines: list[str]) -> Iterator[str]:
    for line in lines:
        if not line.startswith("--"):
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


def wrong(name: str, source: str) -> Iterator[str]:
    """What is wrong with a script, a sentence each."""
    lines = source.splitlines()
    header = list(_leading_comment(lines))
    if not any(line.startswith("-- RETURNS ") for line in header):
        yield "its header does not say what it returns"
        return
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


def test_a_prelude_only_defines_and_is_used() -> None:
    uses = {
        (name.partition("/")[0], each)
        for name, path in FILES.items()
        for each in read_header(name, path.read_text(encoding="utf-8")).get("USES", [])
    }
    for name, path in PRELUDES.items():
        source = path.read_text(encoding="utf-8")
        body = re.sub(r"--.*", "", source)
        service, _, prelude = name.partition("/_")
        assert defined_by(source), name
        assert list(_body_wrong(body, BOUNDED.get(name, set()), may_be_pure=True)) == [], name
        assert '"TIME"' not in body or name in ("kit/_clock", "kit/_time"), name
        assert all(len(line) <= WIDEST for line in source.splitlines()), name
        assert any(each == prelude and service in ("kit", of) for of, each in uses), name


def test_the_header_of_a_script_agrees_with_its_body() -> None:
    found = {name: list(wrong(name, path.read_text(encoding="utf-8"))) for name, path in SCRIPTS.items()}

    assert {name: complaints for name, complaints in found.items() if complaints} == {}
