"""
assert_accessible(page): axe-core finds nothing on a page that shuts people out, in light and in dark colours.

axe is evaluated by way of the debugger, which a page's policy does not concern: nothing of it is loosened. What axe
calls serious or critical fails; of what it cannot decide by itself nothing is said.
"""

from functools import cache
from pathlib import Path
from typing import Any, Literal

import axe_playwright_python
from playwright.sync_api import Page

Scheme = Literal["light", "dark"]
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
    """Of what *within* selects, or of all: colours in both schemes, the rest once."""
    found = find_violations(page, "light", within=within)
    found += find_violations(page, "dark", within=within, rules=["color-contrast"])
    if found:
        raise AssertionError("\n".join([page.url, *found]))


def find_violations(
    page: Page, scheme: Scheme, *, within: str | None = None, rules: list[str] | None = None
) -> list[str]:
    """Of what *within* selects, or of all; by these *rules*, or by all."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(_source())
    page.emulate_media(color_scheme=scheme)
    found = [f"{scheme}: {each}" for each in _violations(page, within, rules)]
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
