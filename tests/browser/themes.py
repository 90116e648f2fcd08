"""Light and dark: a page is loaded once and looked at in both, as if its reader had switched."""

from __future__ import annotations

from playwright.sync_api import Page


def measured(page: Page, script: str) -> dict[tuple[str, str], float]:
    """What *script* tells of the page in each theme: {(theme, what it is about): number}."""
    found = {}
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        page.evaluate("document.getAnimations().forEach(each => each.finish())")  # colours that change slowly
        found |= {(theme, what): number for what, number in page.evaluate(script).items()}
    return found
