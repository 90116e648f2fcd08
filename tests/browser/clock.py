"""The clock of a page: it stands still, so that nothing happens by itself on a machine that is slow."""

from __future__ import annotations

from playwright.sync_api import Page


def stop_clock(page: Page) -> None:
    """From now on, time passes for the page, and for those that it goes to, only by page.clock."""
    page.clock.install(time=0)
    page.clock.pause_at(1_000)
