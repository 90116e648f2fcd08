"""Read the header of a Lua script, as docs/architecture.md describes it, and derive what Redis and Python need."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from itertools import chain, zip_longest
from operator import attrgetter, itemgetter
from typing import Any

_LINE = re.compile(r"-- (KEYS|ARGV|USES|RETURNS|RECORD) +(.*)")
_MORE = re.compile(r"--  +(\S.*)")  # a further line of the same entry
_ONE = re.compile(r"(\S+?)(?:(\.\.\.)(?:\(([^()]*)\))?)?(?: |$)")  # a name; for a table, also its parts
#: A local of a prelude, from the comment before it to the next local.
_DEFINITION = re.compile(
    r"(?:^--.*\n)*^local (?:function )?(\w+(?:, \w+)*)(?:.*\n?)(?:^(?!--|local ).*\n?)*", re.M
)
_NAME = re.compile(r"[a-z][a-z0-9_]*$")
_AT_ONCE = 1_000  # entries of a table
#: Words that are reserved in Lua.
_RESERVED = {
    "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local", "nil", "not",
    "or", "repeat", "return", "then", "true", "until", "while",
}  # fmt: skip


@dataclass(frozen=True)
class Table:
    """A table of all values after the single ones. With *parts*, each entry takes that many values."""

    name: str
    parts: tuple[str, ...] = ()

    def flat(self, entries: Sequence[Any]) -> Sequence[Any]:
        """Return the values to send for *entries*."""
        if not self.parts:
            return entries
        if entries and getattr(entries[0], "_fields", None) == self.parts:
            return [*chain.from_iterable(entries)]  # named tuples with exactly these fields
        return [*chain.from_iterable(map(self._parts_of, entries))]

    @cached_property
    def _parts_of(self) -> Callable[[Any], Sequence[Any]]:
        if len(self.parts) == 1:
            only = attrgetter(self.parts[0])
            return lambda entry: [only(entry)]
        return attrgetter(*self.parts)

    def lua(self, table: str, first: str, last: str) -> str:
        """Return Lua that fills this table from the entries of *table* between *first* and *last*."""
        if not self.parts:  # Lua unpacks up to 8,000 at once, which is faster than a loop
            some = f"unpack({table}, {first}, math.min({last}, {first} + {_AT_ONCE - 1}))"
            rest = f"{self.name}[#{self.name} + 1] = {table}[at]"
            return f"local {self.name} = {{ {some} }} for at = {first} + {_AT_ONCE}, {last} do {rest} end"
        entry = ", ".join(f"{part} = {table}[at + {number}]" for number, part in enumerate(self.parts))
        made = f"{self.name}[#{self.name} + 1] = {{ {entry} }}"
        return f"local {self.name} = {{}} for at = {first}, {last}, {len(self.parts)} do {made} end"


@dataclass(frozen=True)
class Names:
    """The names of the keys, or of the arguments, in their order: first single ones, then tables."""

    first: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()

    def locals(self, table: str) -> Iterator[str]:
        """Yield Lua that gives these names to the entries of *table*."""
        if self.first:
            yield f"local {', '.join(self.first)} = unpack({table}, 1, {len(self.first)})"
        if not self.first and len(self.tables) == 1 and not self.tables[0].parts:
            yield f"local {self.tables[0].name} = {table}"
            return
        begin = str(len(self.first) + 1)
        # Each table but the last is preceded by its number of entries.
        for each in self.tables[:-1]:
            size, end = len(each.parts) or 1, f"{each.name}_end"
            yield f"local {end} = {begin} + {size} * {table}[{begin}]"
            yield each.lua(table, f"{begin} + 1", end)
            begin = f"{end} + 1"
        for each in self.tables[-1:]:
            yield each.lua(table, begin, f"#{table}")

    @cached_property
    def all(self) -> tuple[str, ...]:
        return (*self.first, *(table.name for table in self.tables))


@dataclass(frozen=True)
class Contract:
    """A script's names, and its source as Redis gets it."""

    name: str
    keys: Names
    args: Names
    source: str

    def keys_of(self, entity: object, given: dict[str, Any]) -> list[str]:
        """Return the keys of *entity* in the script's order; keys in parts are taken from the *given* arguments."""
        found = [key("") if callable(key) else key for key in self._get_keys(entity)]
        for table in self.keys.tables:
            if table.parts and table.name not in given:
                raise TypeError(f"{self.name}.lua takes the keys of {table.name} as an argument.")
            found += table.flat(given.pop(table.name) if table.parts else getattr(entity, table.name))
        return found

    def args_of(self, given: dict[str, Any]) -> list[Any]:
        """Return the arguments in the order of the script. Raises TypeError unless the names match exactly."""
        names = self.args
        try:
            found = [*self._get_args(given)]
            for table in names.tables:
                if table is not names.tables[-1]:
                    found.append(len(given[table.name]))
                found += table.flat(given[table.name])
        except KeyError:
            found = None
        if found is None or len(given) != len(names.all):
            raise TypeError(
                f"{self.name}.lua takes the arguments {', '.join(names.all)}, but got {', '.join(given)}."
            )
        return found

    @cached_property
    def _get_keys(self) -> Callable[[object], Sequence[str]]:
        return _many(attrgetter, self.keys.first)

    @cached_property
    def _get_args(self) -> Callable[[dict[str, Any]], Sequence[Any]]:
        return _many(itemgetter, self.args.first)


def _many(getter: Callable[..., Any], names: Sequence[str]) -> Callable[[Any], Sequence[Any]]:
    """Return a function that gets all these values; attrgetter() with one name would not return a sequence."""
    if len(names) > 1:
        get: Callable[[Any], Sequence[Any]] = getter(*names)
        return get
    return lambda entity: [getter(name)(entity) for name in names]


@cache
def contract(name: str) -> Contract:
    """Return the contract of a script, such as "mailboxes/push". Raises ValueError if its header is wrong."""
    service, _, verb = name.partition("/")
    room = files("components") / ("kit" if service == "kit" else f"services/{service}")
    text = (room / "lua" / f"{verb}.lua").read_text(encoding="utf-8")
    header = read_header(name, text)
    keys, args = _names(name, header.get("KEYS", [])), _names(name, header.get("ARGV", []))
    if twice := [each for each in keys.all if each in args.all]:
        raise ValueError(f"{name}.lua: {twice[0]} is both a key and an argument.")
    if len(keys.tables) > 1:
        raise ValueError(f"{name}.lua: its keys have several tables; only the arguments can.")
    preludes = "\n".join(_preludes(service, header.get("USES", []), set()))
    parts = [*keys.locals("KEYS"), *args.locals("ARGV"), *_used(preludes, text)]
    return Contract(name, keys, args, "\n".join([*parts, text]))


def read_header(name: str, text: str) -> dict[str, list[str]]:
    """Return the words of each line of a header. Raises ValueError if two lines have the same name."""
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
    first: list[str] = []
    tables: list[Table] = []
    for match in _ONE.finditer(" ".join(words)):
        word, is_table, parts = match[1], match[2], (match[3] or "").split()
        if is_table:
            tables.append(Table(word, tuple(parts)))
        elif not tables:
            first.append(word)
        for each, others in (
            (word, [*first, *(table.name for table in tables)]),
            *((p, parts) for p in parts),
        ):
            if not _NAME.match(each) or each in _RESERVED or others.count(each) != 1:
                raise ValueError(f"{name}.lua: {each!r} cannot be the name of a key or an argument.")
    return Names(tuple(first), tuple(tables))


def _preludes(service: str, wanted: Sequence[str], seen: set[str]) -> Iterator[str]:
    """Yield the sources of preludes, each once, and each after the preludes that it needs."""
    for each in wanted:
        if each not in seen:
            seen.add(each)
            text = _prelude(service, each)
            header = read_header(f"_{each}", text)
            yield from _preludes(service, header.get("USES", []), seen)
            yield from _record(each, header).lua() if "RECORD" in header else ()
            yield text.rstrip("\n")


def _used(preludes: str, script: str) -> list[str]:
    """
    Return the definitions of *preludes* that the script uses, directly or through others.

    Unused definitions would slow down each call, because Lua creates a function whenever it reaches its definition.
    """
    words, found = _words(script), list[str]()
    for match in reversed([*_DEFINITION.finditer(preludes)]):
        if not words.isdisjoint(match[1].split(", ")):
            words |= _words(match[0])
            found.insert(0, match[0].rstrip("\n"))
    return found


def _words(lua: str) -> set[str]:
    return {*re.findall(r"\w+", re.sub(r"--.*", "", lua))}


def _prelude(service: str, name: str) -> str:
    root = files("components")
    for folder in (root / "services" / service / "lua", root / "kit" / "lua"):
        if (file := folder / f"_{name}.lua").is_file():
            return file.read_text(encoding="utf-8")
    raise ValueError(f"There is no prelude _{name}.lua, neither of {service} nor of the kit.")


@dataclass(frozen=True)
class Record:
    """Fields that are stored as words in one text, one word for each field."""

    name: str
    fields: tuple[str, ...]

    def read(self, text: bytes | str) -> dict[str, str]:
        """Return the fields by name. Bytes that are not UTF-8 become replacement characters."""
        words = (text if isinstance(text, str) else text.decode(errors="replace")).split(" ")
        if len(words) == len(self.fields):
            return dict(zip(self.fields, words))  # noqa: B905  (they are as many)
        return dict(zip_longest(self.fields, words[: len(self.fields)], fillvalue=""))

    def write(self, **fields: object) -> str:
        """Return the text for these fields. Raises TypeError if one is missing, ValueError if one has a blank."""
        if fields.keys() != {*self.fields}:
            raise TypeError(
                f"A {self.name} has the fields {', '.join(self.fields)}, but got {', '.join(fields)}."
            )
        words = [str(fields[name]) for name in self.fields]
        for word in words:
            if " " in word:
                raise ValueError(f"A field of a {self.name} is {word!r}; it must not contain blanks.")
        return " ".join(words)

    def lua(self) -> Iterator[str]:
        """Yield the Lua functions that read and write this record."""
        names, pattern = ", ".join(self.fields), " ?".join(["([^ ]*)"] * len(self.fields))
        table = ", ".join(f"{field} = {field}" for field in self.fields)
        words = ' .. " " .. '.join(f'(record.{field} or "")' for field in self.fields)
        yield f'local function read_{self.name}(text) local {names} = string.match(text, "^{pattern}")'
        yield f"  return {{ {table} }} end"
        yield f"local function write_{self.name}(record) return {words} end"


@cache
def record(service: str, name: str) -> Record:
    """Return the record that the prelude _<name>.lua of a service declares. Raises ValueError if it declares none."""
    return _record(name, read_header(f"_{name}", _prelude(service, name)))


def _record(prelude: str, header: dict[str, list[str]]) -> Record:
    name, *fields = header.get("RECORD", [""])
    if not name.endswith(":") or not fields:
        raise ValueError(f"_{prelude}.lua: its header needs a line such as: RECORD  member: role joined")
    _names(f"_{prelude}", fields)
    return Record(name.removesuffix(":"), tuple(fields))
