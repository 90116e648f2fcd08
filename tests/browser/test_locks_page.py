"""The Locks and Semaphores pages in a real browser: policy, keyboard, no scripts, refresh, colours, small screens."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from components.services.locks import LockReader
from components.services.locks.named import key_of
from components.services.semaphores import SemaphoreControls
from components.templatetags.control_room import legible
from tests.browser.clock import stop_clock
from tests.browser.looks import assert_good_looks
from tests.browser.test_queues_page import press_tab_until, refreshed
from tests.locks.admin import holdings
from tests.locks.admin.test_locks_page import AWKWARD

LOCKS = "/admin/components/lock/"
SEMAPHORES = "/admin/components/semaphore/"
PAGES = {
    "locks": LOCKS,
    "lock found by nobody": f"{LOCKS}?q=nowhere",
    "lock": f"{LOCKS}lock/?key={{key}}",
    "free lock": f"{LOCKS}lock/?key={{free}}",
    "long name": f"{LOCKS}lock/?key={{long}}",
    "release": f"{LOCKS}release/?key={{key}}&holder={{holder}}",
    "nothing to release": f"{LOCKS}release/?key={{key}}&holder=gone",
    "missing lock": f"{LOCKS}lock/?key=gone",
    "semaphores": SEMAPHORES,
    "semaphore found by nobody": f"{SEMAPHORES}?q=nowhere",
    "semaphore": f"{SEMAPHORES}semaphore/?semaphore=api",
    "limit": f"{SEMAPHORES}limit/?semaphore=api",
    "reset": f"{SEMAPHORES}reset/?semaphore=api",
    "evict": f"{SEMAPHORES}evict/?semaphore=api&permit={{permit}}",
    "history": f"{SEMAPHORES}api/history/",
}


@pytest.fixture
def pages(redis):
    """The address of each page, of locks and semaphores of every kind."""
    for name in AWKWARD:
        holdings.held(name)
    holdings.held("free").release()
    holdings.own_key("report", token="0a1b")
    holdings.held("item:42", timeout=None)
    holdings.waits("item:42", "jack", "joan")
    permits = [holdings.permit("api", weight=weight) for weight in (1, 2)]
    holdings.waits_for_permit("api")
    SemaphoreControls("api").set_limit(2)
    names = {
        "key": key_of("item:42"),
        "free": key_of("free"),
        "long": key_of(max(AWKWARD, key=len)),
        "holder": legible(LockReader().find("item:42").token),
        "permit": permits[0].id,
    }
    quoted = {name: urlencode({"": value})[1:] for name, value in names.items()}
    return {name: path.format(**quoted) for name, path in PAGES.items()}


def said(page):
    return page.locator(".messagelist")


@pytest.mark.slow
def test_all_pages_keep_the_policy_have_contrast_fit_and_say_what_is_what(window, admin, pages):
    assert_good_looks(window(admin), pages)


@pytest.mark.slow
def test_a_lock_is_released_with_the_keyboard_alone_and_the_focus_is_always_seen(window, admin, redis):
    holdings.held()
    page = window(admin).open(LOCKS)

    for name in ("item:42", "Release by force…", "Release by force"):
        press_tab_until(page, name)
        with page.expect_navigation():
            page.keyboard.press("Enter")

    expect(said(page)).to_contain_text("Released the lock item:42 by force.")
    assert LockReader().held() == []


def test_a_lock_is_found_with_the_keyboard_alone(window, admin, redis):
    holdings.held()
    page = window(admin).open(LOCKS)

    page.get_by_role("searchbox", name="Name or key").focus()
    page.keyboard.type("item:42")
    with page.expect_navigation():
        page.keyboard.press("Enter")

    expect(page.get_by_role("heading", level=1, name="Lock item:42")).to_be_visible()


@pytest.mark.slow
def test_all_works_without_scripts(window, admin, redis):
    holdings.held()
    holdings.permit("api", owner="jack")
    page = window(admin, java_script_enabled=False).open(LOCKS)
    expect(page.get_by_label("Refresh")).to_be_hidden()

    page.get_by_role("link", name="item:42").click()
    page.get_by_role("link", name="Release by force…").click()
    page.get_by_role("button", name="Release by force").click()
    expect(said(page)).to_contain_text("Released the lock item:42 by force.")

    page.goto(page.url.partition("/admin/")[0] + SEMAPHORES)
    page.get_by_role("link", name="api", exact=True).click()
    page.get_by_role("link", name="Change the limit…").click()
    page.get_by_label("Limit").fill("9")
    page.get_by_role("button", name="Change the limit").click()
    expect(said(page)).to_contain_text("Set the limit of the semaphore api to 9.")
    page.get_by_role("link", name="Take away: jack").click()
    page.get_by_role("button", name="Take away").click()
    expect(said(page)).to_contain_text("away from jack")

    assert SemaphoreControls("api").info().override == 9
    assert SemaphoreControls("api").holders() == []


def test_an_invalid_limit_is_shown_at_its_field(window, admin, redis):
    holdings.permit("api")
    page = window(admin).open(f"{SEMAPHORES}limit/?semaphore=api")

    page.get_by_label("Limit").fill("3000000000")
    page.get_by_role("button", name="Change the limit").click()

    expect(page.get_by_label("Limit")).to_have_accessible_description(
        "It applies instead of the limit in the code, in all processes and at once, until it is reset. "
        "Ensure this value is less than or equal to 2147483647."
    )


@pytest.mark.parametrize("path", [LOCKS, SEMAPHORES])
def test_the_figures_are_renewed_every_five_seconds(window, admin, redis, path):
    opened = window(admin)
    stop_clock(opened.page)
    page = opened.open(path)
    expect(page.locator("#live tbody tr")).to_have_count(1)
    expect(page.locator("#live tbody a")).to_have_count(0)

    for number in range(3):
        holdings.held(f"item:{number}")
        holdings.permit(f"api {number}")
    refreshed(page)

    expect(page.locator("#live tbody a")).to_have_count(3)


def test_a_refresh_keeps_the_focus_on_the_holder_that_stays(window, admin, redis):
    first, _second = holdings.permit("api", owner="jack"), holdings.permit("api", owner="joan")
    opened = window(admin)
    stop_clock(opened.page)
    page = opened.open(f"{SEMAPHORES}semaphore/?semaphore=api")
    link = page.get_by_role("link", name="Take away: joan")
    link.focus()
    first.release()

    refreshed(page)

    expect(page.get_by_role("link", name="Take away: jack")).to_have_count(0)
    expect(link).to_be_focused()


@pytest.mark.slow
def test_a_small_screen_scrolls_tables_and_not_the_page(window, admin, pages):
    page = window(admin, viewport={"width": 360, "height": 640}).open(pages["long name"])
    for click in ("link", "button"):
        with page.expect_navigation():
            page.get_by_role(click, name="Release by force").click()
        assert page.evaluate("document.documentElement.scrollWidth") == 360
    expect(said(page)).to_contain_text("Released the lock xxx")
