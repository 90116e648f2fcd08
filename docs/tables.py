"""
The tables of settings.md and errors.md, made from components/conf.py and components/exceptions.py.

`python -m docs.tables` writes them between the comments that name them. A test compares the pages with the code.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

from components import conf, exceptions

DOCS = Path(__file__).parent
SERVICES = DOCS.parent / "components" / "services"


def settings_table(cls: type) -> str:
    """Return the fields of *cls* with their defaults, and the comments above them."""
    defaults = {field.name: field.default for field in dataclasses.fields(cls)}
    shown = str.upper if cls is conf.Conf else str
    names, text, groups = list[str](), list[str](), list[tuple[list[str], str]]()
    for line in inspect.getsource(cls).splitlines():
        if comment := re.match(r"    #: (.*)", line):
            if names:
                names, text = [], []
            text.append(comment[1])
        elif field := re.match(r"    (\w+): ", line):
            if not names:
                groups.append((names, " ".join(text)))
            names.append(field[1])  # a comment is for all fields up to the next comment
    rows = [
        (
            "<br>".join(f"`{shown(name)}`" for name in group),
            "<br>".join(f"`{_shown(defaults[name])}`" for name in group),
            meaning,
        )
        for group, meaning in groups
    ]
    return _table(("name", "default", "meaning"), rows)


def errors_table() -> str:
    """Return all errors but their base, with the services whose code names them, and what they mean."""
    named = {
        service.name: "\n".join(path.read_text(encoding="utf-8") for path in service.rglob("*.py"))
        for service in sorted(SERVICES.iterdir())
        if service.is_dir() and service.name != "__pycache__"
    }
    rows = []
    for error in errors():
        bases = [base.__name__ for base in error.__bases__ if base is not exceptions.ComponentsError]
        uses = [name for name, text in named.items() if re.search(rf"\b{error.__name__}\b", text)]
        meaning = " ".join((error.__doc__ or "").split())
        row = (
            f"`{error.__name__}`",
            ", ".join(f"`{base}`" for base in bases),
            ", ".join(uses) if len(uses) < len(named) / 2 else "all",
            meaning,
        )
        rows.append(row)
    return _table(("error", "is also", "services", "what happened"), rows)


def errors() -> Iterator[type[exceptions.ComponentsError]]:
    """Yield the errors of this app but their base, in the order of their module."""
    tree = ast.parse(Path(exceptions.__file__).read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name != "ComponentsError":
            yield getattr(exceptions, node.name)


def pages() -> Iterator[tuple[Path, str]]:
    """Yield each page that has tables, and its text as it should be."""
    tables = {
        "Conf": settings_table(conf.Conf),
        "QueueOptions": settings_table(conf.QueueOptions),
        "errors": errors_table(),
    }
    for path in (DOCS / "settings.md", DOCS / "errors.md"):
        text = path.read_text(encoding="utf-8")
        for name, table in tables.items():
            text = re.sub(
                rf"(<!-- table: {name} -->\n).*?(<!-- end -->)",
                lambda found, table=table: f"{found[1]}\n{table}\n{found[2]}",
                text,
                flags=re.DOTALL,
            )
        yield path, text


def _shown(value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:_g}" if isinstance(value, float) and not value.is_integer() else f"{int(value):_}"
    return repr(value)


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    for page, text in pages():
        page.write_text(text, encoding="utf-8")
