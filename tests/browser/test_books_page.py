"""The Address books page in a real browser: policy, no scripts, colours, small screens."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from components.services.autocomplete import AddressBook
from components.services.autocomplete import models as books
from components.services.autocomplete.models import ModelBook
from components.testing import run_tasks
from tests.autocomplete.models.test_model_books import forget
from tests.browser.clock import stop_clock
from tests.browser.looks import assert_good_looks
from tests.browser.test_queues_page import press_tab_until, refreshed
from tests.db.models import Shelf
from tests.locks.admin.test_locks_page import AWKWARD

ROOT = "/admin/components/addressbook/"
PAGES = {
    "books": ROOT,
    "found nothing": f"{ROOT}?q=nothing",
    "book": f"{ROOT}book/?book=guild:7",
    "trial": f"{ROOT}book/?book=guild:7&prefix=a",
    "refused": f"{ROOT}book/?book=guild:7&prefix=",
    "not loaded": f"{ROOT}book/?book=db.shelf",
    "rebuild": f"{ROOT}rebuild/?book=db.shelf",
    "remove": f"{ROOT}remove/?book=guild:7",
}


@pytest.fixture
def shelves(redis, transactional_db, monkeypatch):
    """A model of which two rows feed a book that is not loaded."""
    monkeypatch.setattr(books, "_fed", {})
    fed = ModelBook(Shelf, "name")
    Shelf.objects.bulk_create(Shelf(name=name) for name in ("Maps", "Charts"))
    yield fed
    forget(fed)


@pytest.fixture
def guilds(redis):
    """Books of many names; one has names of all sorts in it."""
    book = AddressBook("guild:7")
    names = ["ann smith", "<script>alert(1)</script>", "a" * 200, "アナ", "أحمد", "a turned \u202eround"]
    book.load(enumerate(names, start=1))
    for number in (1, 2, 2, 3, 5):
        book.select(number)
    for name in AWKWARD:
        AddressBook(name).add("ann", id=1)


@pytest.mark.slow
def test_all_pages_keep_the_policy_have_contrast_fit_and_say_what_is_what(window, admin, shelves, guilds):
    assert_good_looks(window(admin), PAGES)


@pytest.mark.slow
def test_a_book_is_rebuilt_and_a_prefix_tried_by_keyboard_and_without_scripts(window, admin, shelves):
    page = window(admin, java_script_enabled=False).open(ROOT)

    for name in ("db.shelf", "Rebuild…", "Rebuild"):
        press_tab_until(page, name)
        with page.expect_navigation():
            page.keyboard.press("Enter")
    expect(page.locator(".messagelist")).to_contain_text(
        "The next free worker rebuilds the address book db.shelf"
    )
    assert [info.state for info in run_tasks()] == ["successful"]
    page.reload()
    page.get_by_label("Try a search").fill("cha")
    with page.expect_navigation():
        page.keyboard.press("Enter")

    expect(page.get_by_role("region", name="Matches").get_by_role("rowheader")).to_have_text(["Charts"])


@pytest.mark.slow
def test_typed_text_stays_while_the_figures_refresh(window, admin, guilds):
    opened = window(admin)
    stop_clock(opened.page)
    page = opened.open(PAGES["book"])
    page.get_by_label("Try a search").fill("an")

    AddressBook("guild:7").add("bob", id=99)
    refreshed(page)

    expect(page.locator(".facts").first).to_contain_text("Entries7")
    expect(page.get_by_label("Try a search")).to_have_value("an")
    expect(page.get_by_label("Try a search")).to_be_focused()
