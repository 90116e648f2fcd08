"""The keys of the services, found in their keys.py, and the tables of reference/keys.md that list them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType

from components import services
from components.conf import conf
from components.kit.keyspace import BUCKETS
from components.kit.lua_headers import read_header
from components.services.autocomplete.keys import ALL
from components.services.counters.additions import TAG
from components.services.logs import DEFAULT_JOB

#: What follows the beginnings that some properties return.
SUFFIXES = {
    "BookKeys.calls": ":<call>",
    "ChatKeys.calls": "/<call>",
    "ChatKeys.mentions": "/<person>",
    "ChatKeys.own": "/<person>",
    "ChatKeys.rate": "/<person>",
    "ChatKeys.sent": "/<part>",
    "ContactsKeys.calls": ":<call>",
    "CounterKeys.histograms": ":<name>/<precision>:<window>",
    "CounterKeys.samples": ":<name>/<precision>:<window>",
    "InboxKeys.rate": "/<kind>",
    "LockKeys.let_go": ":<token>",
    "LockKeys.released": ":<digits>",
    "LockKeys.wake": ":<waiter>",
    "MailboxKeys.sent": ":<day>",
    "RateKeys.calls": "/<key>",
    "RateKeys.places": "/<key>",
    "RowKeys.claim": ":<member>",
    "RowKeys.row": ":<member>",
    "SemaphoreKeys.ended": ":<permit>",
    "SemaphoreKeys.wake": ":<waiter>",
}
#: Functions and classes whose keys exist once, and the only name that these have.
_ONLY = {"autocomplete.names": ALL, "logs.index": DEFAULT_JOB, "SumKeys": TAG, "SumSourceKeys": TAG}
#: How a sentence about the end of a key, or of what is in it, can be known.
END = re.compile(r"\b([Gg]oe?s?|Stays|Expires)\b")
_PROPERTIES = (property, cached_property)  # keys that need no part


@dataclass(frozen=True)
class Key:
    """A key of the schema: a function of its keys.py, or a property or method of one of its classes."""

    label: str
    service: str
    doc: str
    #: By the name of the entity, and of a part where it has one.
    function: Callable[..., str]
    #: What these names are called in the code.
    names: tuple[str, ...]

    @property
    def has_part(self) -> bool:
        return len(self.names) > 1

    def __call__(self, name: str = "shop", part: str = "mail") -> str:
        return self.function(name, part) if self.has_part else self.function(name)

    @property
    def pattern(self) -> str:
        """Return the key as the page has it, such as <prefix>:queues:{<alias>}:result:<task>."""
        only = _ONLY.get(self.label) or _ONLY.get(self.label.partition(".")[0])
        name, *part = (f"<{each.removesuffix('_id')}>" for each in self.names)
        beginning, braces, rest = re.split(r"\{(.*?)\}", self.function(only or name, *part), maxsplit=1)
        tag = "<bucket>" if braces in (*BUCKETS, "<tag>") else braces
        beginning = "<prefix>" + beginning.removeprefix(conf().prefix)
        return f"{beginning}{{{tag}}}{rest}{SUFFIXES.get(self.label, '')}"


def _keys_of(service: str, module: ModuleType) -> Iterator[Key]:
    has_classes = any(
        inspect.isclass(found) and name.endswith("Keys") for name, found in vars(module).items()
    )
    for name, found in vars(module).items():
        if name.startswith("_") or getattr(found, "__module__", "") != module.__name__:
            continue
        if inspect.isfunction(found):
            label = f"{service}.{name}" if has_classes else name
            names = tuple(inspect.signature(found).parameters)
            yield Key(label, service, inspect.getdoc(found) or "", found, names)
        elif inspect.isclass(found):
            yield from _keys_of_class(service, found)


def _keys_of_class(service: str, kind: type) -> Iterator[Key]:
    """Those of an entity: the class takes its name, and a second one where the entity has two; or named() does."""
    new: Callable[..., object] = getattr(kind, "named", kind)
    names = tuple(inspect.signature(new).parameters)

    def make(attribute: str) -> Callable[..., str]:
        def of(name: str, part: str = "") -> str:
            found = getattr(new(name, part) if len(names) > 1 else new(name), attribute)
            return str(found if isinstance(found, str) else found(part))

        return of

    for attribute, found in vars(kind).items():
        if attribute.startswith("_") or not (isinstance(found, _PROPERTIES) or inspect.isfunction(found)):
            continue
        more = tuple(inspect.signature(found).parameters)[1:] if inspect.isfunction(found) else ()
        doc, label = inspect.getdoc(found) or "", f"{kind.__name__}.{attribute}"
        yield Key(label, service, doc, make(attribute), names + more)


_FOLDER = Path(services.__file__).parent
SCHEMA: dict[str, Key] = {
    key.label: key
    for path in sorted(_FOLDER.glob("*/keys.py"))
    for key in _keys_of(path.parent.name, import_module(f"components.services.{path.parent.name}.keys"))
}


def key_rows(service: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield each key of a service once, with its type, what it holds, and when that goes."""
    rows = dict[str, tuple[str, str, str]]()
    for key in SCHEMA.values():
        if key.service == service:
            kind, said = re.sub(r" \(prefix of it:[^)]*\)", "", " ".join(key.doc.split())).split(" ", 1)
            sentences = re.split(r"(?<=\.) (?=[A-Z])", said)
            end = next((at for at, each in enumerate(sentences) if END.search(each)), len(sentences))
            holds, goes = " ".join(sentences[: max(end, 1)]), " ".join(sentences[max(end, 1) :])
            rows.setdefault(key.pattern, (kind, _plain(holds), _plain(goes)))
    for pattern, row in rows.items():
        yield f"`{pattern}`", *row


def record_rows() -> Iterator[tuple[str, str, str]]:
    """Yield the records of fields that scripts store, with the service and the fields."""
    for path in sorted(_FOLDER.glob("*/lua/_*.lua")):
        name, *fields = read_header(path.stem, path.read_text(encoding="utf-8")).get("RECORD", [""])
        if fields:
            yield path.parent.parent.name, name.removesuffix(":"), f"`{' '.join(fields)}`"


def about(service: str) -> str:
    """Return what the keys.py of a service says of them."""
    module = import_module(f"components.services.{service}.keys")
    return _plain((inspect.getdoc(module) or "").partition("\n\n")[0])


def _plain(text: str) -> str:
    """Return text that Markdown shows as it is, but for its emphasis, and begins with a capital letter."""
    text = re.sub("^(of|with) ", "", text)
    return re.sub(r"([<|\\])", r"\\\1", text[:1].upper() + text[1:]).replace("->", "→")
