"""No link between the pages of README and docs is dead, and each service is in the reference."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.blocks import PAGES, ROOT

_LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"")


def text_of(page: Path) -> str:
    """Return the page without code."""
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


def test_a_dead_link_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# Here\n[a](#here) [b](#there) [c](page.md#here) [d](other.md) [e](https://example.com)\n"
    )

    assert list(dead(page)) == ["#there", "other.md"]


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
