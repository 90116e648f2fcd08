"""The pages of settings, errors, commands and keys say what the code says."""

import ast
import inspect
import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from django.core.mail import EmailMessage
from redis import Redis

from components import exceptions
from components.conf import Conf, QueueOptions
from components.services.autocomplete import AddressBook
from components.services.chat import Chat
from components.services.mailboxes import Mailbox
from components.services.queues import Consumer, Progress
from components.services.queues.mail.messages import to_json
from components.services.rows import Loader, RowCache, Shape, Stored, name_and_key
from docs.keyspace import SCHEMA, Key
from docs.tables import DOCS, command_table, commands, errors, errors_table, pages, settings_table
from tests.docs.blocks import ERRORS, PAGES, ROOT, blocks
from tests.support.geo import city, import_networks
from tests.support.logs import fill, stream
from tests.support.queues import claim, failed, hand_in, push_many, succeeded


@pytest.mark.parametrize(("page", "text"), list(pages()), ids=lambda each: getattr(each, "stem", ""))
def test_a_page_has_the_tables_of_the_code(page, text):
    assert page.read_text(encoding="utf-8") == text, "Run python -m docs.tables, and commit what it changes."


@pytest.mark.parametrize("cls", [Conf, QueueOptions])
def test_each_setting_has_a_meaning(cls):
    rows = [line.split(" | ") for line in settings_table(cls).splitlines()[2:]]

    assert {name.lower() for row in rows for name in re.findall(r"`(\w+)`", row[0])} == set(
        cls.__dataclass_fields__
    )
    assert all(row[2].strip(" |") for row in rows)


def test_each_error_has_a_meaning():
    rows = [line.split(" | ") for line in errors_table().splitlines()[2:]]

    assert {row[0].strip("| `") for row in rows} == {
        name
        for name, value in vars(exceptions).items()
        if isinstance(value, type) and value.__module__ == exceptions.__name__ and name != "ComponentsError"
    }
    assert all(row[3].strip(" |") for row in rows)


@pytest.mark.parametrize("name", commands())
def test_each_command_is_described_with_its_exit_codes_and_an_example(name):
    page = (DOCS / "commands.md").read_text(encoding="utf-8")
    section = page.partition(f"\n## {name}\n")[2].partition("\n## ")[0]

    assert f"<!-- table: manage.py {name} -->" in section, (
        f"Add a section to commands.md as the others are, for {name}."
    )
    assert f"manage.py {name}" in section.partition("```sh")[2], f"Add an example of {name} to its section."
    assert not command_table(name).endswith("**Exit codes:** \n"), (
        f"Let the help of {name} end with 'Exit codes: …'."
    )


WHERE = "Add them to a block of a page in docs/examples/: methods to one that names their class."


def test_readme_lists_each_extra() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    [listed] = re.findall(
        r"The extras of the distribution are (.+?)\n\n", (ROOT / "README.md").read_text(), re.S
    )
    assert [each for each in extras if f"`{each}`" not in listed] == []


def test_errors_and_help_name_no_file_that_the_wheel_lacks() -> None:
    texts = [
        f"{path.name}: {node.value}"
        for path in sorted((ROOT / "components").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call | ast.Raise | ast.keyword)
        for node in ast.walk(node)
        if isinstance(node, ast.Constant) and "docs/" in str(node.value)
    ]
    assert texts == []


def test_each_public_name_has_an_example():
    missing = list(without_example())

    assert missing == [], f"No example uses {', '.join(missing)}. {WHERE}"


def test_each_error_is_caught_in_an_example_that_raises_it_or_says_why_not():
    caught = {
        name.id
        for block in blocks(ERRORS)
        for node in ast.walk(ast.parse(block.code))
        if isinstance(node, ast.ExceptHandler) and node.type
        for name in ast.walk(node.type)
        if isinstance(name, ast.Name)
    }
    #: Errors of tasks are read, not caught: the example lists them.
    of_tasks = {
        name for block in blocks(ERRORS) for name in re.findall(r"components\.exceptions\.(\w+)", block.code)
    }
    listed = {error.__name__ for error in errors()}

    assert caught | of_tasks | TOLD >= listed, listed - caught - of_tasks - TOLD
    assert len([block for block in blocks(ERRORS) if block.calm]) <= 6


#: Errors that workers store as the reason why a task failed.
TOLD = {
    *("EndNotStored", "MailNotSent", "ResultTooLarge", "StepRefused"),
    *("TaskCancelled", "TaskExpired", "TaskTimedOut", "WorkerDied"),
}


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


_LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"")


def text_of(page: Path) -> str:
    return re.sub(
        r"^ *```.*?^ *```|`[^`\n]+`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )


def anchors(page: Path) -> set[str]:
    """Return the anchors of the page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def dead(page: Path) -> Iterator[str]:
    for found in _LINK.finditer(text_of(page)):
        link = found[1] or found[2]
        if "://" in link or link.startswith("mailto:"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_link_of_a_page_is_dead(page):
    assert list(dead(page)) == []


def test_each_page_is_in_the_contents():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^[\w/-]+$", index, re.MULTILINE)) | {"index"}

    assert {page.stem for page in (ROOT / "docs").glob("*.md")} == {
        name for name in listed if "/" not in name
    }


def test_each_service_is_in_the_reference():
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "reference").glob("*.md"))
    services = {path.parent.name for path in (ROOT / "components" / "services").glob("*/__init__.py")}

    for service in services:
        assert f"automodule:: components.services.{service}\n" in pages
        assert f"<!-- table: keys of {service} -->\n" in pages


def test_examples_import_only_what_the_reference_lists():
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "reference").glob("*.md"))
    listed = set(re.findall(r"automodule:: (\S+)", pages))
    listed |= {f"components.services.{name}.keys" for name in re.findall(r"<!-- table: keys of (\w+)", pages)}
    used = {
        module
        for page in PAGES
        for module in re.findall(
            r"^ *from (components[\w.]*) import", page.read_text(encoding="utf-8"), re.MULTILINE
        )
    }

    assert used <= listed


PAGE = (DOCS / "reference" / "keys.md").read_text(encoding="utf-8")
ROWS = {
    record: (where, form)
    for record, where, form, _newer in re.findall(
        r"^\| ([\w ]+) \| (.+?) \| (.+?) \| (.*?) ?\|$",
        PAGE.partition("\n## Formats\n")[2].partition("\n### ")[0],
        re.M,
    )
    if record != "record"
}
#: What begins, or is part of, the stored bytes of the records whose marker the table names.
MARKERS = {
    "task": rb"1 \d",
    "run of a task": rb"1 [a-z]",
    "errors of a task": rb'\{"v": 1, ',
    "progress of a task": rb'\{"v": 1, ',
    "result of a task": rb"1 .*\n.*\n1 .*\n",
    "heartbeat of a worker": rb'\{"v": ?1, ',
    "chat message": rb"[tje]",
    "changes of a chat message": rb"\d+:\d+.*:thello again",
    "mailbox message": rb"[tj]",
    "entries of an address book": rb"4$",
    "cached row": rb"\[\d+, ?\d+, ?\"\w+\"",
    "chunk of logs": rb"\x28\xb5\x2f\xfd",
    "table of addresses": rb'\{.*"format": 1[,}]',
}


def key_of(record: str) -> Key:
    """Return the first key of the schema that the table names for *record*."""
    found = re.match(r"`([\w-]+)(?::<\w+>)?`.* of (\w+)$", ROWS[record][0])
    assert found, ROWS[record][0]
    name, service = found.groups()
    return next(
        key for key in SCHEMA.values() if key.service == service and key.pattern.split(":")[3] == name
    )


def stored(redis: Redis, record: str) -> list[bytes]:
    """Return what is stored under the keys of *record*; of a hash the values, of a stream the bodies."""
    key = key_of(record)
    pattern = re.sub(r"\{.*?\}|<\w+>", "*", key.pattern.removeprefix("<prefix>"))
    values = list[bytes]()
    for name in redis.keys(f"*{pattern}"):
        match key.doc.split()[0]:
            case "HASH":
                values += [value for _, value in sorted(redis.hgetall(name).items())]
            case "STREAM":
                values += [fields[b"b" if b"b" in fields else b"body"] for _, fields in redis.xrange(name)]
            case _:
                values.append(redis.get(name))
    return values


def test_the_table_names_each_marker_that_is_checked_here_and_no_other() -> None:
    marked = {record for record, (_, form) in ROWS.items() if re.search(r"[Mm]arkers?\b", form)}
    without = {record for record in marked if re.search("No marker", ROWS[record][1])}

    assert marked - without == MARKERS.keys() | {"mail"}


def test_each_record_is_stored_where_the_table_says_with_its_marker(redis: Redis, tmp_path: Path) -> None:
    consumer = Consumer()
    push_many(4)
    good, bad, running = claim(consumer, 3)
    hand_in(consumer, succeeded(good), failed(bad))
    consumer.progress(running, Progress(1))
    consumer.renew(["default"], [running])
    chat = Chat.create("joe", members=["jack"], text="hello")
    chat.edit("joe", 2, "hello again")
    Mailbox("jack").push("jill", "hello")
    AddressBook("players").add("Jack", id=1)
    cache, loader = RowCache("items", Shape([("stock", "integer")])), Loader()
    cache.schedule_many({name_and_key("items:1")[1]: 60})
    loader.store(loader.claim().claims, {"items:1": Stored(True, cache.shape.encode("items:1", [3]))})
    fill(stream(), 1)
    import_networks(tmp_path, {"1.0.0.0/24": city("US")})

    unmarked = {
        record
        for record, marker in MARKERS.items()
        if not any(re.match(marker, value, re.S) for value in stored(redis, record))
    }

    assert unmarked == set()


def test_a_mail_has_the_marker_that_the_table_names() -> None:
    assert f"`{json.dumps(to_json(EmailMessage('Hello')))[1:7]}`" in ROWS["mail"][1]
