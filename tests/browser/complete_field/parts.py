"""The parts of the page with the field."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import CDPSession, Locator, Page


def field(page: Page) -> Locator:
    return page.locator("#id_to")


def options(page: Page) -> Locator:
    return page.get_by_role("option")


def active(page: Page) -> Locator:
    return page.locator("[role=option][aria-selected=true]")


def chosen_id(page: Page) -> str:
    return page.locator("input[name=to-id]").input_value()


def requests(page: Page) -> list[str]:
    """A list that grows with each request of names: what was asked for."""
    asked: list[str] = []

    def note(request: Any) -> None:
        if "?q=" in request.url:
            asked.append(request.url.partition("?q=")[2].partition("&")[0])

    page.on("request", note)
    return asked


def debugger(page: Page) -> CDPSession:
    return page.context.new_cdp_session(page)


def compose(session: CDPSession, text: str) -> None:
    """What an input method shows while it is not decided."""
    session.send(
        "Input.imeSetComposition", {"text": text, "selectionStart": len(text), "selectionEnd": len(text)}
    )
