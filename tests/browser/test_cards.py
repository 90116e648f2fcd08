"""Tables of the control room where there is little room: rows are cards, and nothing of them is off-screen."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.locks.admin import holdings
from tests.queues.admin import scene

pytestmark = pytest.mark.slow

ADMIN = "/admin/components/"
PATHS = (
    f"{ADMIN}queue/",
    f"{ADMIN}queue/tasks/?alias=default&queue=mail&state=dead",
    f"{ADMIN}lock/",
    f"{ADMIN}semaphore/semaphore/?semaphore=api",
)
#: The tables that have to be scrolled to be read.
TOO_WIDE = """() => [...document.querySelectorAll(".cards")]
    .filter(table => table.scrollWidth > table.clientWidth + 1).map(table => table.ariaLabel)"""
LABEL = "node => getComputedStyle(node, '::before').content"


@pytest.mark.parametrize("width", [390, 768])
def test_nothing_of_a_table_is_off_screen(window, admin, redis, width):
    scene.one_of_each("mail")
    holdings.held("item:42")
    holdings.permit("api")
    opened = window(admin, viewport={"width": width, "height": 800})

    for path in PATHS:
        page = opened.open(path)
        assert page.locator(".cards tbody tr").count() > 0
        assert page.evaluate(TOO_WIDE) == []


def test_cells_of_a_card_have_their_labels_and_their_roles(window, admin, redis):
    scene.one_of_each("mail")
    page = window(admin, viewport={"width": 390, "height": 800}).open(f"{ADMIN}queue/")

    table = page.get_by_role("table", name="Queues").first
    row = table.get_by_role("row").filter(has=page.get_by_role("rowheader", name="mail"))
    cell = row.get_by_role("cell").first
    assert cell.evaluate(LABEL) == '"Ready" / ""'
    expect(cell).to_have_css("display", "block")

    page.set_viewport_size({"width": 1440, "height": 800})
    expect(cell).to_have_css("display", "table-cell")
    assert cell.evaluate(LABEL) == "none"
