"""
Who may import whom, and who may do what. Each rule is a function from modules to complaints; the app is held
against all of them, and small made-up apps show that each can fail.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import pytest
from redis import Redis

ROOT = Path(__file__).parent.parent

#: What the modules of an area may import of this app, besides their own area. "compat" is a module, and so on.
LAYERS: dict[str, set[str]] = {
    "exceptions": set(),
    "conf": {"exceptions"},
    "compat": {"exceptions"},
    "watcher": set(),
    "embedded": {"exceptions", "watcher"},
    "locations": set(),
    "silence": set(),
    "sentinels": {"silence"},
    "aclient": {"exceptions", "sentinels", "silence"},
    "client": {"aclient", "conf", "exceptions", "keys", "locations", "sentinels", "silence"},
    "keys": {"conf", "exceptions"},
    "scripts": {"client", "exceptions", "twins"},
    "together": {"client", "exceptions", "scripts"},
    "twins": set(),
    "renewals": set(),
    "endings": set(),
    "validation": {"exceptions"},
    "stored": set(),
    "buckets": set(),
    "services": {
        "buckets",
        "client",
        "conf",
        "endings",
        "exceptions",
        "keys",
        "renewals",
        "scripts",
        "stored",
        "together",
        "twins",
        "validation",
    },
    "db": {"exceptions", "services", "stored", "validation"},
    "schedules": {"exceptions"},
    "periodic": {"compat", "schedules", "services"},
    "tasks": {"compat"},
    "backends": {"compat", "conf", "db", "exceptions", "services", "tasks"},
    "workers": {"backends", "compat", "conf", "exceptions", "periodic", "services", "tasks"},
    "management": {
        "charts",
        "backends",
        "compat",
        "conf",
        "db",
        "embedded",
        "exceptions",
        "periodic",
        "services",
        "workers",
    },
    "middleware": {"conf", "exceptions", "services"},
    "models": set(),
    "migrations": set(),
    "people": {"conf"},
    "books": {"conf", "db"},
    "forms": {"exceptions", "services", "widgets"},
    "widgets": set(),
    "urls": {"views"},
    "views": {
        "books",
        "conf",
        "db",
        "exceptions",
        "forms",
        "middleware",
        "people",
        "services",
        "stored",
        "validation",
        "widgets",
    },
    "charts": {"exceptions", "services"},
    "templatetags": {"charts", "db", "exceptions", "services"},
    "admin": {
        "backends",
        "charts",
        "compat",
        "conf",
        "db",
        "exceptions",
        "forms",
        "middleware",
        "models",
        "people",
        "periodic",
        "services",
        "templatetags",
        "widgets",
    },
    "checks": {"backends", "client", "conf", "db", "exceptions", "locations"},
    "apps": {"checks"},
    "testing": {
        "backends",
        "client",
        "compat",
        "conf",
        "embedded",
        "exceptions",
        "locations",
        "services",
        "workers",
    },
    "__init__": set(),
}
#: What else they may import, but not while they are loaded: cache.lock() makes a lock that is built upon client.py.
LATER = {"client": {"services"}}
#: Modules of other packages that only these may import.
ONLY = {
    "django_redis": {"client"},
    "redis": {
        "aclient",
        "client",
        "embedded",
        "exceptions",
        "scripts",
        "sentinels",
        "services",
        "silence",
        "testing",
    },
    "pytest": {"testing"},
    "zstandard": {"services"},
    "argparse": {"management"},
    "maxminddb": {"services"},
    "signal": {"endings", "management", "workers"},
    "django.contrib.admin": {"admin"},
    "django_tasks": {"compat"},
    "django.tasks": {"compat"},
}
#: What services know nothing of.
FOREIGN_TO_SERVICES = {
    f"django.{package}" for package in ("http", "contrib", "db", "shortcuts", "urls", "views")
}
REDIS_COMMANDS = {name for name in dir(Redis) if not name.startswith("_")}


@dataclass(frozen=True)
class Module:
    """One file of the app: its dotted name below components, and its source."""

    name: str
    source: str

    @property
    def area(self) -> str:
        return self.name.partition(".")[0]

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.source)

    def imports(self, *, lazy: bool = True) -> Iterator[str]:
        """The dotted names that are imported: of modules, and of what is taken from them."""
        for node in ast.walk(self.tree) if lazy else self.tree.body:
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert not node.level, f"{self.name} has a relative import"
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


Modules: TypeAlias = Mapping[str, Module]
Rule: TypeAlias = Callable[[Modules], Iterator[str]]


def read(folder: Path) -> dict[str, Module]:
    modules = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)
        modules[name] = Module(name, path.read_text(encoding="utf-8"))
    return modules


def is_in(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def target(name: str, modules: Modules) -> str | None:
    """The module of this app that the import of *name* loads."""
    if not is_in(name, "components"):
        return None
    parts = name.split(".")[1:]
    for length in range(len(parts), 0, -1):
        if ".".join(parts[:length]) in modules:
            return ".".join(parts[:length])
    return "__init__"


def each_area_imports_only_what_it_may(modules: Modules) -> Iterator[str]:
    for module in modules.values():
        if module.area not in LAYERS:
            yield f"{module.name} is in no layer"
            continue
        allowed = LAYERS[module.area] | {module.area}
        for lazy, more in ((False, set()), (True, LATER.get(module.area, set()))):
            loaded = {found for name in module.imports(lazy=lazy) if (found := target(name, modules))}
            yield from (
                f"{module.name} imports {found}"
                for found in loaded
                if found.split(".")[0] not in allowed | more
            )


def no_layer_is_in_a_circle(modules: Modules) -> Iterator[str]:
    """Among modules, not only among areas: by what is imported when they are loaded."""
    graph = {
        module.name: {found for name in module.imports(lazy=False) if (found := target(name, modules))}
        for module in modules.values()
    }
    for start in graph:
        ahead, seen = list(graph[start] - {start}), set()
        while ahead:
            name = ahead.pop()
            if name == start:
                yield f"{start} imports itself by way of others"
                break
            if name not in seen:
                seen.add(name)
                ahead += graph[name] - {name}


def nothing_of_a_project_is_imported(modules: Modules) -> Iterator[str]:
    for module in modules.values():
        for name in module.imports():
            if is_in(name, "project") or is_in(name, "tests"):
                yield f"{module.name} imports {name}"


def packages_are_imported_only_where_they_belong(modules: Modules) -> Iterator[str]:
    for module in modules.values():
        for name in module.imports():
            for package, areas in ONLY.items():
                if is_in(name, package) and module.area not in areas:
                    yield f"{module.name} imports {name}"


def services_know_no_http_no_admin_and_no_orm(modules: Modules) -> Iterator[str]:
    for module in modules.values():
        if module.area == "services":
            for name in module.imports():
                if any(is_in(name, package) for package in FOREIGN_TO_SERVICES):
                    yield f"{module.name} imports {name}"


def services_use_the_public_names_of_others(modules: Modules) -> Iterator[str]:
    for module in modules.values():
        if module.area != "services":
            continue
        own = ".".join(module.name.split(".")[:2])
        for name in module.imports():
            found = target(name, modules) or ""
            is_inner = name.rpartition(".")[2].startswith("_") or found.count(".") > 1
            if is_in(found, "services") and not is_in(found, own) and is_inner:
                yield f"{module.name} imports {name}"


def only_keys_makes_keys(modules: Modules) -> Iterator[str]:
    for module in modules.values():
        if module.name.partition(".")[0] in ("keys", "conf") or module.name == "services.news.channels":
            continue
        for node in ast.walk(module.tree):
            if _is_prefix(node) or _is_command_with_a_key_written_out(node):
                yield f"{module.name}:{getattr(node, 'lineno', 0)} makes a key"


def _is_prefix(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and ast.unparse(node).endswith("conf().prefix")


def _is_command_with_a_key_written_out(node: ast.AST) -> bool:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
        return False
    holder = ast.unparse(node.func.value).rpartition(".")[2]
    is_client = holder in ("client", "_client", "pipe", "redis", "get_client()")
    is_text = isinstance(node.args[0], ast.Constant | ast.JoinedStr)
    return is_client and node.func.attr in REDIS_COMMANDS and is_text


def only_scripts_reads_lua(modules: Modules) -> Iterator[str]:
    for module in modules.values():
        for node in ast.walk(module.tree):
            names_lua = isinstance(node, ast.Constant) and re.search(r"\.lua$|^lua$", str(node.value))
            evaluates = isinstance(node, ast.Attribute) and re.fullmatch(
                r"eval|evalsha|register_script|script_load|fcall", node.attr
            )
            if module.name != "scripts" and (names_lua or evaluates):
                yield f"{module.name}:{node.lineno} deals with Lua"


def modules_say_what_they_are_for(modules: Modules) -> Iterator[str]:
    for module in modules.values():
        if (
            module.source
            and module.area != "migrations"
            and not (ast.get_docstring(module.tree) or "").strip()
        ):
            yield f"{module.name} has no docstring"


RULES: list[Rule] = [
    each_area_imports_only_what_it_may,
    no_layer_is_in_a_circle,
    nothing_of_a_project_is_imported,
    packages_are_imported_only_where_they_belong,
    services_know_no_http_no_admin_and_no_orm,
    services_use_the_public_names_of_others,
    only_keys_makes_keys,
    only_scripts_reads_lua,
    modules_say_what_they_are_for,
]
APP = read(ROOT / "components")


def test_the_app_is_there() -> None:
    assert {"client", "keys", "scripts", "conf", "checks", "embedded", "testing"} <= APP.keys()
    assert {"services.queues", "backends.tasks", "workers.base", "admin.queues"} <= APP.keys()
    assert len(APP) > 30


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_app_keeps_the_rule(rule: Rule) -> None:
    assert list(rule(APP)) == []


def test_every_layer_and_every_permission_is_still_needed() -> None:
    areas = {module.area for module in APP.values()}
    imported = {
        (module.area, package)
        for module in APP.values()
        for name in module.imports()
        for package in ONLY
        if is_in(name, package)
    }

    assert areas == LAYERS.keys()
    for area, later in LATER.items():
        loaded = {
            target(name, APP) or ""
            for module in APP.values()
            if module.area == area
            for name in module.imports()
        }
        assert later <= {found.split(".")[0] for found in loaded}
    assert {package for _area, package in imported} == ONLY.keys()


def test_only_the_client_imports_django_redis() -> None:
    importers = [
        module.name
        for module in APP.values()
        if any(is_in(name, "django_redis") for name in module.imports())
    ]

    assert importers == ["client"]


def test_the_market_uses_the_app_as_any_customer_would() -> None:
    shop = read(ROOT / "project" / "market")

    names = {
        f"{node.module}.{alias.name}"
        for module in shop.values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ImportFrom) and not node.level
        for alias in node.names
    }
    used = {found.split(".")[0] for name in names if (found := target(name, APP))}

    assert used
    assert not used & {"client", "keys", "scripts", "workers"}


@pytest.mark.parametrize(
    ("rule", "name", "source", "complaint"),
    [
        (
            each_area_imports_only_what_it_may,
            "keys",
            "from components.client import get_client",
            "keys imports client",
        ),
        (each_area_imports_only_what_it_may, "keys", "import components.client", "keys imports client"),
        (each_area_imports_only_what_it_may, "keys", "from components import client", "keys imports client"),
        (
            each_area_imports_only_what_it_may,
            "services.a",
            "def f():\n    from components.workers import b",
            "services.a imports workers",
        ),
        (
            each_area_imports_only_what_it_may,
            "client",
            "from components.services.b import C",
            "client imports services.b",
        ),
        (
            each_area_imports_only_what_it_may,
            "client",
            "def f():\n    from components.workers import b",
            "client imports workers",
        ),
        (each_area_imports_only_what_it_may, "helpers", "", "helpers is in no layer"),
        (no_layer_is_in_a_circle, "client", "import components.keys", "client imports itself"),
        (
            nothing_of_a_project_is_imported,
            "conf",
            "from project import settings",
            "conf imports project.settings",
        ),
        (nothing_of_a_project_is_imported, "conf", "import tests.tasks", "conf imports tests.tasks"),
        (
            packages_are_imported_only_where_they_belong,
            "conf",
            "import django_redis.cache",
            "imports django_redis",
        ),
        (
            packages_are_imported_only_where_they_belong,
            "admin.a",
            "from redis import Redis",
            "imports redis.Redis",
        ),
        (packages_are_imported_only_where_they_belong, "services.a", "import argparse", "imports argparse"),
        (packages_are_imported_only_where_they_belong, "services.a", "import signal", "imports signal"),
        (
            packages_are_imported_only_where_they_belong,
            "workers.a",
            "from django.tasks import task",
            "django.tasks",
        ),
        (
            packages_are_imported_only_where_they_belong,
            "views",
            "from django.contrib import admin",
            "contrib.admin",
        ),
        (
            services_know_no_http_no_admin_and_no_orm,
            "services.a",
            "from django.db import models",
            "django.db.models",
        ),
        (
            services_know_no_http_no_admin_and_no_orm,
            "services.a",
            "from django.http import Http404",
            "django.http",
        ),
        (
            services_use_the_public_names_of_others,
            "services.a",
            "from components.services.b import _c",
            "b._c",
        ),
        (
            services_use_the_public_names_of_others,
            "services.a",
            "from components.services.b.c import D",
            "b.c.D",
        ),
        (only_keys_makes_keys, "services.a", "key = f'{conf().prefix}:a'", "services.a:1 makes a key"),
        (only_keys_makes_keys, "services.a", "client.get('a:b')", "makes a key"),
        (only_keys_makes_keys, "services.a", "self._client.set(f'{name}:a', 1)", "makes a key"),
        (only_scripts_reads_lua, "services.a", "open('a.lua')", "deals with Lua"),
        (only_scripts_reads_lua, "services.a", "client.eval('return 1', 0)", "deals with Lua"),
        (modules_say_what_they_are_for, "conf", "a = 1", "conf has no docstring"),
        (modules_say_what_they_are_for, "conf", '" "', "conf has no docstring"),
    ],
)
def test_the_rule_finds_what_breaks_it(rule: Rule, name: str, source: str, complaint: str) -> None:
    others = {
        "client": '"A."',
        "keys": '"A."\nimport components.client',
        "workers": '"A."',
        "services.b": '"A."',
        "services.b.c": '"A."',
        "__init__": '"A."',
    }
    app = {each: Module(each, text) for each, text in {**others, name: source}.items()}

    complaints = list(rule(app))

    assert any(complaint in found for found in complaints)
