"""The Cached rows page in a real browser: policy, no scripts, colours, small screens."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from components.services.rows import Loader, RowReader
from tests.browser.looks import assert_good_looks
from tests.browser.test_queues_page import press_tab_until
from tests.locks.admin.test_locks_page import AWKWARD
from tests.support.rows import bodies, cache, let_pass

ROOT = "/admin/components/cachedrow/"
PAGES = {
    "rows": ROOT,
    "found nothing": f"{ROOT}?q=nothing",
    "model": f"{ROOT}model/?model=items",
    "failing": f"{ROOT}failing/",
    "row": f"{ROOT}row/?row=items:1",
    "failing row": f"{ROOT}row/?row=items:9",
    "refresh": f"{ROOT}refresh/?model=items",
    "delay": f"{ROOT}delay/?row=items:1",
    "remove": f"{ROOT}remove/?row=items:1",
}


@pytest.fixture
def rows(redis):
    """Rows with keys of all sorts, one that fails, and no daemon for a while."""
    wanted = ["1", *(key[:290] for key in AWKWARD if key.strip())]
    cache().schedule_many(dict.fromkeys([*wanted, "9"], 60))
    loader = Loader()
    claims = loader.claim().claims
    loader.store(claims, bodies({key: ["sword", 3] for key in wanted}))
    loader.fail(claims, {"items:9": f"OSError: <script>alert(1)</script> {'x' * 200}"})
    let_pass(redis, 72)


@pytest.mark.slow
def test_all_pages_keep_the_policy_have_contrast_fit_and_say_what_is_what(window, admin, rows):
    assert_good_looks(window(admin), PAGES)


@pytest.mark.slow
def test_a_row_is_slowed_down_and_removed_by_keyboard_and_without_scripts(window, admin, rows):
    page = window(admin, java_script_enabled=False).open(PAGES["row"])

    press_tab_until(page, "Change the interval…")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    page.get_by_label("Interval in seconds").fill("7.5")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    expect(page.locator(".messagelist")).to_contain_text(
        "Set the interval of the row items:1 to 7.5 s. It was 1 min."
    )
    for name in ("Remove from the cache…", "Remove from the cache"):
        press_tab_until(page, name)
        with page.expect_navigation():
            page.keyboard.press("Enter")

    expect(page.locator(".messagelist")).to_contain_text("Removed the row items:1 from the cache.")
    assert RowReader().find("items", "1") is None
