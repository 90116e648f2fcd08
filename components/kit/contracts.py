"""
Read the header of a Lua script, and make of it what Redis and Python need.

    -- Mute a member until an instant, or lift the mute.
    -- KEYS    chat messages members calls
    -- ARGV    person till by call channel
    -- USES    time event member
    -- RETURNS "done", "nothing", "unknown" or "denied"

The header is the only place where the order of keys and arguments is written. In the script they are locals of these
names. Python passes the arguments by them, and takes the keys from an object that has attributes of these names. A
last name that ends in "..." is a table of all that follow.

USES names preludes: files such as _time.lua, in the folder of the script or in the kit's, whose functions come before
the script. A prelude may have a USES line itself; each comes once.

What is stored as words in one text is declared once, in a prelude:

    -- RECORD  member: role joined muted_until

That gives the scripts read_member(text), a table with these fields, and write_member(table); and it gives Python
record("chat", "member"). A field is text without blanks, and may be empty. Where text was written with fewer fields,
the missing ones are empty, and fields that are not known are left out: so a field can be added at the end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import zip_longest
from typing import Any

_LINE = re.compile(r"-- (KEYS|ARGV|USES|RETURNS|RECORD) +(.*)")
_MORE = re.compile(r"--  +(\S.*)")  # the same goes on
_NAME = re.compile(r"[a-z][a-z0-9_]*$")
#: What Lua keeps for itself.
_RESERVED = {
    "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local", "nil", "not",
    "or", "repeat", "return", "then", "true", "until", "while",
}  # fmt: skip


@dataclass(frozen=True)
class Names:
    """The names of the keys, or of the arguments, in their order; *rest* is that of all that follow, or ""."""

    first: tuple[str, ...] = ()
    rest: str = ""

    def locals(self, table: str) -> Iterator[str]:
        """Yield the Lua that gives these names to the entries of *table*."""
        if self.first:
            entries = ", ".join(f"{table}[{number}]" for number in range(1, len(self.first) + 1))
            yield f"local {', '.join(self.first)} = {entries}"
        if self.rest and not self.first:
            yield f"local {self.rest} = {table}"
        elif self.rest:
            begin = len(self.first)
            yield f"local {self.rest} = {{}}"
            yield f"for at = {begin + 1}, #{table} do {self.rest}[at - {begin}] = {table}[at] end"


@dataclass(frozen=True)
class Contract:
    """A script: its names, and the source as Redis gets it."""

    name: str
    keys: Names
    args: Names
    source: str

    def keys_of(self, entity: object) -> list[str]:
        """Return the keys that *entity* has for this script, in its order."""
        found: list[str] = [getattr(entity, name) for name in self.keys.first]
        if self.keys.rest:
            found += getattr(entity, self.keys.rest)
        return found

    def args_of(self, given: dict[str, Any]) -> list[Any]:
        """Return the arguments in the order of the script. Raises TypeError unless exactly its names are given."""
        names = self.args
        if len(given) != len(names.first) + bool(names.rest) or not given.keys() >= {*names.first}:
            wanted = ", ".join([*names.first, *([names.rest] if names.rest else [])])
            raise TypeError(f"{self.name}.lua takes the arguments {wanted}, and got {', '.join(given)}.")
        found = [given[name] for name in names.first]
        if names.rest:
            found += given[names.rest]
        return found


@cache
def contract(name: str) -> Contract:
    """Return the contract of a script, such as "mailboxes/push". Raises ValueError if its header is wrong."""
    service, _, verb = name.partition("/")
    text = (files("components") / "services" / service / "lua" / f"{verb}.lua").read_text(encoding="utf-8")
    header = read_header(name, text)
    keys, args = _names(name, header.get("KEYS", [])), _names(name, header.get("ARGV", []))
    twice = [each for each in (*keys.first, keys.rest) if each and each in (*args.first, args.rest)]
    if twice:
        raise ValueError(f"{name}.lua: {twice[0]} is both a key and an argument.")
    preludes = _preludes(service, header.get("USES", []), set())
    parts = [*keys.locals("KEYS"), *args.locals("ARGV"), *preludes]
    return Contract(name, keys, args, "\n".join([*parts, text]))


def read_header(name: str, text: str) -> dict[str, list[str]]:
    """Return the words of each line of a header. Raises ValueError if a line comes twice."""
    found: dict[str, list[str]] = {}
    last: list[str] = []
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        if match := _LINE.match(line):
            if match[1] in found:
                raise ValueError(f"{name}.lua: its header has two lines {match[1]}.")
            last = found[match[1]] = match[2].split()
        elif match := _MORE.match(line):
            last += match[1].split()
    return found


def _names(name: str, words: Sequence[str]) -> Names:
    first, rest = list(words), ""
    if first and first[-1].endswith("..."):
        rest = first.pop().removesuffix("...")
    named = [*first, rest] if rest else first
    for word in named:
        if not _NAME.match(word) or word in _RESERVED or named.count(word) > 1:
            raise ValueError(f"{name}.lua: {word!r} cannot be the name of a key or an argument.")
    return Names(tuple(first), rest)


def _preludes(service: str, wanted: Sequence[str], seen: set[str]) -> Iterator[str]:
    """Yield the sources of preludes, each once, what one needs before it."""
    for each in wanted:
        if each not in seen:
            seen.add(each)
            text = _prelude(service, each)
            header = read_header(f"_{each}", text)
            yield from _preludes(service, header.get("USES", []), seen)
            yield from _record(each, header).lua() if "RECORD" in header else ()
            yield text.rstrip("\n")


def _prelude(service: str, name: str) -> str:
    root = files("components")
    for folder in (root / "services" / service / "lua", root / "kit" / "lua"):
        if (file := folder / f"_{name}.lua").is_file():
            return file.read_text(encoding="utf-8")
    raise ValueError(f"There is no prelude _{name}.lua, neither of {service} nor of the kit.")


@dataclass(frozen=True)
class Record:
    """What is stored as words in one text, a word for each field."""

    name: str
    fields: tuple[str, ...]

    def read(self, text: bytes | str) -> dict[str, str]:
        """Return the fields by their names. Bytes that are no UTF-8 become replacement characters."""
        words = (text if isinstance(text, str) else text.decode(errors="replace")).split(" ")
        return dict(zip_longest(self.fields, words[: len(self.fields)], fillvalue=""))

    def write(self, **fields: object) -> str:
        """Return the text for these fields. Raises TypeError unless all are given, ValueError for a blank in one."""
        if fields.keys() != {*self.fields}:
            raise TypeError(
                f"A {self.name} has the fields {', '.join(self.fields)}, and not {', '.join(fields)}."
            )
        words = [str(fields[name]) for name in self.fields]
        for word in words:
            if " " in word:
                raise ValueError(f"A field of a {self.name} is {word!r}; it must have no blanks.")
        return " ".join(words)

    def lua(self) -> Iterator[str]:
        """Yield the Lua functions that read and write it."""
        names, pattern = ", ".join(self.fields), " ?".join(["([^ ]*)"] * len(self.fields))
        table = ", ".join(f"{field} = {field}" for field in self.fields)
        words = ", ".join(f'record.{field} or ""' for field in self.fields)
        yield f'local function read_{self.name}(text) local {names} = string.match(text, "^{pattern}")'
        yield f"  return {{ {table} }} end"
        yield f'local function write_{self.name}(record) return table.concat({{ {words} }}, " ") end'


@cache
def record(service: str, name: str) -> Record:
    """Return the record that the prelude _<name>.lua of a service declares. Raises ValueError if there is none."""
    return _record(name, read_header(f"_{name}", _prelude(service, name)))


def _record(prelude: str, header: dict[str, list[str]]) -> Record:
    name, *fields = header.get("RECORD", [""])
    if not name.endswith(":") or not fields:
        raise ValueError(f"_{prelude}.lua: its header needs a line such as: RECORD  member: role joined")
    _names(f"_{prelude}", fields)
    return Record(name.removesuffix(":"), tuple(fields))
