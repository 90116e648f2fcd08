"""The stylesheets of the control room depend on no admin's own variables, so they look right in any admin."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import components

STATIC = Path(components.__file__).parent / "static" / "components"
SHEETS = sorted(path.relative_to(STATIC).as_posix() for path in STATIC.rglob("*.css"))
FOUNDATION = (STATIC / "foundation.css").read_text(encoding="utf-8")


def defined(css: str) -> set[str]:
    return {*re.findall(r"(--[\w-]+)\s*:", css)}


def used(css: str) -> set[str]:
    """The variables that are used without a fallback."""
    return {*re.findall(r"var\(\s*(--[\w-]+)\s*\)", css)}


@pytest.mark.parametrize("sheet", SHEETS)
def test_each_variable_has_a_value_where_the_admin_gives_none(sheet: str) -> None:
    path = STATIC / sheet
    beside = "".join(each.read_text(encoding="utf-8") for each in path.parent.glob("*.css"))

    assert used(path.read_text(encoding="utf-8")) - defined(beside) - defined(FOUNDATION) == set()


def test_no_class_is_one_that_the_scripts_of_unfold_look_for() -> None:
    """Unfold takes each element with this class for a canvas, and its script ends with an error."""
    templates = STATIC.parents[1] / "templates"

    found = [
        path.name
        for path in templates.rglob("*.html")
        if re.search(r'class="(?:[^"]* )?chart[" ]', path.read_text(encoding="utf-8"))
    ]

    assert found == []
