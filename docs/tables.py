"""
The tables of settings.md, errors.md, commands.md and reference/keys.md, made from components/conf.py,
components/exceptions.py, the parsers of the commands, and the keys and records of the services.

`python -m docs.tables` writes them between the comments that name them. A test compares the pages with the code.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from argparse import SUPPRESS, Action
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import django
from django.conf import settings
from django.core.management import load_command_class
from django.core.management.base import BaseCommand

from components import conf, exceptions
from docs.keyspace import SCHEMA, about, key_rows, record_rows

DOCS = Path(__file__).parent
COMMANDS = DOCS.parent / "components" / "management" / "commands"
SERVICES = DOCS.parent / "components" / "services"
_PUBLIC = {
    "backend.py",
    "forms.py",
    "models.py",
    "view.py",
}  # modules that are public, beside those of __init__.py
#: The pages that have tables.
PAGES = ("settings.md", "errors.md", "commands.md", "reference/keys.md")
_SHOWN = 4  # names of those that raise an error


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
    """Return all errors but their base, with the public names whose docstrings say that they raise them."""
    raised = raisers()
    rows = []
    for error in errors():
        bases = [base.__name__ for base in error.__bases__ if base is not exceptions.ComponentsError]
        by = sorted(set(raised[error.__name__]))
        row = (
            f"`{error.__name__}`",
            ", ".join(f"`{base}`" for base in bases),
            ", ".join(f"`{name}`" for name in by[:_SHOWN]) + " …" * (len(by) > _SHOWN),
            " ".join((error.__doc__ or "").split()),
        )
        rows.append(row)
    return _table(("error", "is also", "raised by", "what happened, and what to do"), rows)


def raisers() -> defaultdict[str, list[str]]:
    """Return by error the public classes, methods and functions of services whose docstrings name it."""
    found = defaultdict[str, list[str]](list)
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SERVICES.rglob("*.py"))}
    public = {
        alias.name
        for path, tree in trees.items()
        for node in (tree.body if path.name == "__init__.py" else ())
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    for path, tree in trees.items():
        for node in tree.body:
            is_named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            if is_named and (node.name in public or path.name in _PUBLIC):
                for name, said in _docstrings(node):
                    for error in re.findall(r"\b[A-Z][a-z]\w+", said):
                        found[error].append(name)
    return found


def _docstrings(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Yield a function, or a class and its methods, with their docstrings. Twins are declared as _name."""
    yield node.name, ast.get_docstring(node) or ""
    body = node.body if isinstance(node, ast.ClassDef) else []
    twins = {f"_{name.id}" for each in body if isinstance(each, ast.Assign) for name in _targets(each)}
    for each in body:
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and (
            each.name in twins or each.name[0] != "_"
        ):
            yield f"{node.name}.{each.name.lstrip('_')}", ast.get_docstring(each) or ""


def _targets(assignment: ast.Assign) -> list[ast.Name]:
    return [name for name in ast.walk(assignment.targets[0]) if isinstance(name, ast.Name)]


def errors() -> Iterator[type[exceptions.ComponentsError]]:
    """Yield the errors of this app but their base, in the order of their module."""
    tree = ast.parse(Path(exceptions.__file__).read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name != "ComponentsError":
            yield getattr(exceptions, node.name)


def command_table(name: str) -> str:
    """Return what a management command does, its exit codes, and its arguments and options."""
    command = load_command_class("components", name)
    said, _, codes = str(command.help).partition(" Exit codes: ")
    inherited = {action.dest for action in BaseCommand().create_parser("manage.py", name)._actions}
    rows = [
        (
            ", ".join(f"`{each}`" for each in _spelled(action)),
            str(action.help or "").replace("|", "\\|"),
        )
        for action in command.create_parser("manage.py", name)._actions
        if action.help != SUPPRESS and (action.dest not in inherited or action.nargs == "?")
    ]
    options = _table(("argument", "meaning"), rows) if rows else "It takes no arguments but Django's.\n"
    return f"{said}\n\n{options}\n**Exit codes:** {codes}\n"


def commands() -> list[str]:
    """Return the names of the management commands."""
    return sorted(path.stem for path in COMMANDS.glob("*.py") if path.stem != "__init__")


def _spelled(action: Action) -> list[str]:
    """Return the spellings of an option, the last one with what follows it."""
    if not action.option_strings:
        return [f"{action.metavar or action.dest}{' …' if action.nargs == '*' else ''}"]
    if action.nargs == 0:
        return [*action.option_strings]
    choices = "|".join(map(str, action.choices or ()))
    value = str(action.metavar or choices or action.dest.upper()).replace("|", "\\|")
    shown = f"[{value}]" if action.nargs == "?" else value
    return [*action.option_strings[:-1], f"{action.option_strings[-1]} {shown}"]


def keys_table(service: str) -> str:
    """Return what the keys of a service are for, and all of them."""
    return f"{about(service)}\n\n{_table(('key', 'type', 'holds', 'goes'), [*key_rows(service)])}"


def pages() -> Iterator[tuple[Path, str]]:
    """Yield each page that has tables, and its text as it should be."""
    tables = {
        "Conf": settings_table(conf.Conf),
        "QueueOptions": settings_table(conf.QueueOptions),
        "errors": errors_table(),
        **{f"manage.py {name}": command_table(name) for name in commands()},
        **{f"keys of {service}": keys_table(service) for service in {key.service for key in SCHEMA.values()}},
        "records": _table(("service", "record", "fields"), [*record_rows()]),
    }
    for path in (DOCS / each for each in PAGES):
        text = path.read_text(encoding="utf-8")
        for name, table in tables.items():
            text = re.sub(
                rf"(<!-- table: {re.escape(name)} -->\n).*?(<!-- end -->)",
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
    settings.configure(
        INSTALLED_APPS=[
            "django.contrib.admin",
            "django.contrib.auth",
            "django.contrib.contenttypes",
            "components",
        ],
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    )
    django.setup()
    for page, text in pages():
        page.write_text(text, encoding="utf-8")
