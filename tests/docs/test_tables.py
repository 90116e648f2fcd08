"""The pages of settings, errors, commands and keys say what the code says."""

from __future__ import annotations

import re

import pytest

from components import exceptions
from components.conf import Conf, QueueOptions
from docs.keyspace import SCHEMA
from docs.tables import DOCS, command_table, commands, errors_table, pages, settings_table


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


@pytest.mark.parametrize("label", SCHEMA)
def test_each_key_is_on_its_page_with_what_it_holds_and_when_that_goes(label):
    page = (DOCS / "reference" / "keys.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in page.splitlines()]

    assert [len(row) for row in rows if row[0] == f"`{SCHEMA[label].pattern}`" and all(row)] == [4]


def test_all_pages_with_tables_are_compared():
    with_tables = {
        path.name for path in DOCS.rglob("*.md") if "<!-- table:" in path.read_text(encoding="utf-8")
    }

    assert with_tables == {path.name for path, _ in pages()}
