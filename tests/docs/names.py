"""The public names: what the reference lists, with what the examples use of them."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.docs.blocks import PAGES, ROOT, blocks

_MODULE = re.compile(r"^\.\. automodule:: (\S+)\n((?:   :.*\n)*)", re.M)
_MEMBERS = re.compile(r":members:(.*)")


@dataclass(frozen=True)
class Name:
    """A public name, and what a class says of itself."""

    module: str
    name: str
    #: The methods and properties of a class; those that Django or redis-py declare are documented there.
    methods: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


def public_names() -> Iterator[Name]:
    """Yield the names of all pages of the reference."""
    for page in sorted((ROOT / "docs" / "reference").glob("*.md")):
        yield from _names_of(page)


def _names_of(page: Path) -> Iterator[Name]:
    for module_name, options in _MODULE.findall(page.read_text(encoding="utf-8")):
        if members := _MEMBERS.search(options):
            module = import_module(module_name)
            for name in members[1].replace(",", " ").split() or _listed(module):
                yield Name(module_name, name, frozenset(_methods(getattr(module, name))))


def _listed(module: Any) -> list[str]:
    """Return what automodule shows: __all__, or what the module itself defines."""
    defined = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]
    return list(getattr(module, "__all__", defined))


def _methods(cls: Any) -> Iterator[str]:
    if not inspect.isclass(cls) or issubclass(cls, BaseException):
        return
    theirs = {
        name for base in cls.__mro__ if not base.__module__.startswith("components") for name in vars(base)
    }
    for base in cls.__mro__:
        for name, value in vars(base).items():
            is_method = callable(value) or isinstance(value, property | classmethod | staticmethod)
            is_ours = base.__module__.startswith("components") and name not in theirs
            if (
                is_ours
                and is_method
                and value.__doc__
                and not name.startswith("_")
                and not inspect.isclass(value)
            ):
                yield name


@dataclass(frozen=True)
class Uses:
    """What a block of Python uses: names, and attributes of anything."""

    names: frozenset[str]
    attributes: frozenset[str]


def uses() -> list[Uses]:
    """Return what each block uses that is run."""
    return [_uses(block.code) for page in PAGES for block in blocks(page) if block.reason is None]


def _uses(code: str) -> Uses:
    nodes = list(ast.walk(ast.parse(code)))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    paths = {
        word
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for word in re.findall(r"components[\w.]*\.(\w+)", node.value)
    }
    defined = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    return Uses(frozenset(names | paths), frozenset(attributes | defined))


def without_example() -> Iterator[str]:
    """
    Yield each public name that no example uses, and each method that none of the examples uses that name its class.
    Of a method and its asynchronous twin, one is enough.
    """
    found = uses()
    for name in public_names():
        of_it = [each for each in found if name.name in each.names | each.attributes]
        if not of_it:
            yield str(name)
        used = {attribute for each in of_it for attribute in each.attributes}
        for method in sorted(name.methods - used):
            if f"a{method}" not in used and not (method.startswith("a") and method[1:] in name.methods):
                yield f"{name}.{method}"
