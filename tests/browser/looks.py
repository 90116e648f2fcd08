"""What every page must look like, whatever it shows: asserted by one helper for all pages of a service."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from playwright.sync_api import Page

from tests.browser.themes import measured

#: The contrast of each text that is seen.
CONTRASTS = """() => {
    const rgb = (text) => text.match(/[\\d.]+/g).map((part) => Number(part) * (text.startsWith("color(") ? 255 : 1));
    const luminance = ([r, g, b]) => {
        const [x, y, z] = [r, g, b].map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
        return 0.2126 * x + 0.7152 * y + 0.0722 * z;
    };
    const background = (node) => {
        for (; node; node = node.parentElement) {
            const colour = rgb(getComputedStyle(node).backgroundColor);
            if (colour.length === 3 || colour[3] > 0) return colour;
        }
        return [255, 255, 255];
    };
    const found = {};
    const walker = document.createTreeWalker(document.querySelector("#content"), NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const parent = walker.currentNode.parentElement;
        if (!walker.currentNode.data.trim() || !parent.checkVisibility()) continue;
        const [one, two] = [luminance(rgb(getComputedStyle(parent).color)), luminance(background(parent))];
        found[walker.currentNode.data.trim()] = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    }
    return found;
}"""


def assert_good_looks(opened: Any, paths: Mapping[str, str], *, within: str = "#content") -> None:
    """
    All these pages keep the policy, have contrast in light and dark, fit a phone and a desktop, and say what is what.

    Tables may be wider than a phone: they scroll, and the page does not.
    """
    contrasts, too_wide = {}, {}
    for name, path in paths.items():
        response = opened.page.goto(opened.base + path)
        policy = response.headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "unsafe" not in policy
        if "/admin/" in path and "/history/" not in path:  # the history is Django's own page
            assert_structure(opened.page)
        for width in (360, 1280):
            opened.page.set_viewport_size({"width": width, "height": 740})
            if (wide := opened.page.evaluate("document.documentElement.scrollWidth")) > width:
                too_wide[name, width] = wide
        texts = measured(opened.page, CONTRASTS.replace("#content", within))
        contrasts |= {(name, *text): ratio for text, ratio in texts.items()}
    assert opened.complaints == []
    assert {name for name, *_ in contrasts} == set(paths)
    assert len(contrasts) > 22 * len(paths)
    assert {where: ratio for where, ratio in contrasts.items() if ratio < 4.5} == {}
    assert too_wide == {}


def assert_structure(page: Page) -> None:
    """Headings go down level by level, everything has a name, tables have captions and scopes, ids are unique."""
    levels = page.eval_on_selector_all(
        "main :is(h1, h2, h3, h4)", "nodes => nodes.map(n => Number(n.tagName[1]))"
    )
    unnamed = page.eval_on_selector_all(
        "main :is(a, button, input:not([type=hidden]), select, summary, [role=region], nav)",
        """nodes => nodes.filter(n => !(n.ariaLabel || n.textContent.trim() || n.labels?.length || n.value))
            .map(n => n.outerHTML)""",
    )
    lacking = page.eval_on_selector_all(
        "main :is(th:not([scope]), table:not(:has(> caption)))", "nodes => nodes.map(n => n.outerHTML)"
    )
    identified = page.eval_on_selector_all("[id]", "nodes => nodes.map(n => n.id)")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert unnamed == lacking == []
    assert len(identified) == len(set(identified))
