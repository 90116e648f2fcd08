"""
find_violations(page): what axe-core finds on a page that shuts people out, in light and in dark colours.

axe is evaluated by way of the debugger, which a page's policy does not concern: nothing of it is loosened. What axe
calls serious or critical fails; of what it cannot decide by itself nothing is said.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Literal

import axe_playwright_python
from playwright.sync_api import Page

SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
#: What moves is looked at when it is where it goes: the colours of the other scheme may fade in.
RUN = """([within, rules]) => {
    for (const each of document.getAnimations()) if (each instanceof CSSTransition) each.finish();
    const runOnly = rules && { type: "rule", values: rules };
    return axe.run(within ?? document, { resultTypes: ["violations"], ...(runOnly && { runOnly }) });
}"""


@cache
def _source() -> str:
    return (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")


def assert_accessible(page: Page, *, within: str | None = None) -> None:
    """Of what *within* selects, or of all."""
    if found := find_violations(page, within=within):
        raise AssertionError("\n".join([page.url, *found]))


def find_violations(page: Page, *, within: str | None = None) -> list[str]:
    """Of what *within* selects, or of all: colours in both schemes, the rest once."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(_source())
    found = list[str]()
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        rules = None if scheme == SCHEMES[0] else ["color-contrast"]
        found += [f"{scheme}: {each}" for each in _violations(page, within, rules)]
    page.emulate_media(color_scheme="null")
    return found


def _violations(page: Page, within: str | None, rules: list[str] | None) -> list[str]:
    violations: list[dict[str, Any]] = page.evaluate(RUN, [within, rules])["violations"]
    return [
        f"{each['id']} ({each['impact']}): {node['html'][:200]} — {node['failureSummary']}"
        for each in violations
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]
