"""
Who may do what. Each rule is a function from modules to complaints; the app is held against all of them. The layers,
which say who may import whom, are in pyproject.toml.
"""

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import pytest
from redis import Redis

ROOT = Path(__file__).resolve().parents[1]

#: Modules of a service that know more than Redis: Django's admin, HTTP, the ORM, threads.
ROLES = {
    "access", "admin", "api", "backend", "charts", "commits", "feeding", "forms", "mail", "models", "page", "policy",
    "report", "tasks", "used_contacts", "view", "widgets", "worker",
}  # fmt: skip
#: Modules of a service that others import from, besides the service itself.
PUBLIC = {
    "access", "charts", "feeding", "folding", "forms", "lines", "models", "report", "traffic", "widgets",
}  # fmt: skip
#: Who may import the inside of services: what Django finds, and what puts the parts of services together.
ASSEMBLERS = {
    "admin", "apps", "checks", "doctor", "mail", "management", "tasks", "templatetags", "testing", "urls",
}  # fmt: skip
#: Modules of other packages that only these may import.
ONLY = {
    "django_redis": {"cache"},
    "redis": {
        "cache",
        "doctor",
        "embedded",
        "exceptions",
        "kit",
        "locations",
        "servers",
        "services",
        "testing",
    },
    "pytest": {"testing"},
    "zstandard": {"services"},
    "prometheus_client": {"observing"},
    "opentelemetry": {"observing"},
    "sentry_sdk": {"observing"},
    "argparse": {"management", "services", "workers"},
    "maxminddb": {"services"},
    "signal": {"kit", "management", "workers"},
    "django.contrib.admin": {"admin", "control_room", "services"},
    "django_tasks": {"kit"},
    "django.tasks": {"kit"},
}
#: What services know nothing of, except where they say so by their name.
FOREIGN_TO_SERVICES = {
    "django.http", "django.contrib", "django.db", "django.shortcuts", "django.urls", "django.views", "components.api",
    "components.control_room", "components.formatting", "components.models", "components.people",
    "components.reports", "components.servers", "components.views", "components.workers",
}  # fmt: skip
REDIS_COMMANDS = {name for name in dir(Redis) if not name.startswith("_")}


@dataclass(frozen=True)
class Module:
    """One file of the app: its dotted name below components, and its source."""

    name: str
    source: str

    @property
    def area(self) -> str:
        return self.name.partition(".")[0]

    @property
    def service(self) -> str:
        """The service it belongs to, such as "services.chat", or ""."""
        return ".".join(self.name.split(".")[:2]) if self.area == "services" else ""

    @property
    def has_role(self) -> bool:
        return bool(self.service) and not ROLES.isdisjoint(self.name.split(".")[2:3])

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.source)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @cached_property
    def imported(self) -> list[str]:
        """The dotted names that are imported, also by functions: of modules, and of what is taken from them."""
        names = []
        for node in self.nodes:
            if isinstance(node, ast.Import):
                names += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert not node.level, f"{self.name} has a relative import"
                names += [f"{node.module}.{alias.name}" for alias in node.names]
        return names


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


def packages_are_imported_only_where_they_belong(modules: Modules) -> Iterator[str]:
    for module in modules.values():
        for name in module.imported:
            for package, areas in ONLY.items():
                if is_in(name, package) and module.area not in areas:
                    yield f"{module.name} imports {name}"


def services_know_no_http_no_admin_and_no_orm(modules: Modules) -> Iterator[str]:
    for module in modules.values():
        if module.service and not module.has_role:
            for name in module.imported:
                if any(is_in(name, package) for package in FOREIGN_TO_SERVICES):
                    yield f"{module.name} imports {name}"


def the_public_names_of_services_are_used(modules: Modules) -> Iterator[str]:
    for module in modules.values():
        if module.area in ASSEMBLERS:
            continue
        for name in module.imported:
            found = target(name, modules) or ""
            if not is_in(found, "services") or is_in(found, module.service or "-"):
                continue
            parts = found.split(".")
            is_inner = name.rpartition(".")[2].startswith("_") or len(parts) > 3 or {*parts[2:]} - PUBLIC
            if is_inner:
                yield f"{module.name} imports {name}"


def only_keys_makes_keys(modules: Modules) -> Iterator[str]:
    for module in modules.values():
        if module.name in ("conf", "kit.keyspace", "kit.pubsub") or module.name.endswith(".keys"):
            continue
        for node in module.nodes:
            if _is_prefix(node) or _is_command_with_a_key_written_out(node):
                yield f"{module.name}:{getattr(node, 'lineno', 0)} makes a key"


def _is_prefix(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "prefix"
        and ast.unparse(node).endswith("conf().prefix")
    )


def _is_command_with_a_key_written_out(node: ast.AST) -> bool:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
        return False
    is_text = isinstance(node.args[0], ast.Constant | ast.JoinedStr)
    if not is_text or node.func.attr not in REDIS_COMMANDS:
        return False
    holder = ast.unparse(node.func.value).rpartition(".")[2]
    return holder in ("client", "_client", "pipe", "redis", "get_client()")


def only_scripts_reads_lua(modules: Modules) -> Iterator[str]:
    for module in modules.values():
        if not re.search(r"lua|eval|script|fcall", module.source):
            continue
        for node in module.nodes:
            names_lua = isinstance(node, ast.Constant) and re.search(r"\.lua$|^lua$", str(node.value))
            evaluates = isinstance(node, ast.Attribute) and re.fullmatch(
                r"eval|evalsha|register_script|script_load|fcall", node.attr
            )
            if module.name not in ("kit.scripts", "kit.lua_headers") and (names_lua or evaluates):
                yield f"{module.name}:{node.lineno} deals with Lua"


RULES: list[Rule] = [
    packages_are_imported_only_where_they_belong,
    services_know_no_http_no_admin_and_no_orm,
    the_public_names_of_services_are_used,
    only_keys_makes_keys,
    only_scripts_reads_lua,
]
APP = read(ROOT / "components")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_app_keeps_the_rule(rule: Rule) -> None:
    assert list(rule(APP)) == []


def test_every_permission_is_still_needed() -> None:
    imported = {
        (module.area, package)
        for module in APP.values()
        for name in module.imported
        for package in ONLY
        if is_in(name, package)
    }

    assert {"kit.client", "services.queues.backend", "services.chat.keys", "control_room.pages"} <= APP.keys()
    assert imported == {(area, package) for package, areas in ONLY.items() for area in areas}
    assert {
        part for module in APP.values() if module.service for part in module.name.split(".")[2:3]
    } >= ROLES


def test_the_market_uses_the_app_as_any_customer_would() -> None:
    shop = read(ROOT / "project" / "market")

    names = {
        f"{node.module}.{alias.name}"
        for module in shop.values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ImportFrom) and not node.level
        for alias in node.names
    }
    used = {found for name in names if (found := target(name, APP))}

    assert used
    assert not [name for name in used if is_in(name, "kit") or name.endswith(".keys")]
