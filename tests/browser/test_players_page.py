"""The page of who plays where, in a real browser: its figures grow while somebody looks."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.urls import reverse
from playwright.sync_api import expect
from redis import Redis

from project.players import demo
from tests.browser.axe import assert_accessible
from tests.support.traffic import count

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

FITS = "() => document.documentElement.scrollWidth <= innerWidth"


def test_figures_grow_without_reloading_on_a_page_for_everybody(
    window: Callable[..., Any], redis: Redis
) -> None:
    demo.load()
    today = datetime.now(UTC).date()
    count({today - timedelta(days=ago): {"US/CA/San Francisco": 900 + 50 * ago} for ago in range(14)})
    opened = window(viewport={"width": 360, "height": 700})
    page = opened.open(reverse("players:today"))
    figures = page.locator("#countries + ol")

    expect(figures).to_contain_text("United States")
    assert page.evaluate(FITS)
    assert_accessible(page)
    page.get_by_label("Refresh").select_option("2")
    count({today: {"JP/13/Tokyo": 8100}})

    expect(figures.locator("li").first).to_contain_text("Japan 8,100")
    expect(page.locator(".so-many")).to_contain_text("9,000 events")
    assert not opened.complaints
