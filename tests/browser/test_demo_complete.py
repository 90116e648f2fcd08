"""Names in the demo's admin, in a real browser: foreign keys are chosen by name, also in rows that are added."""

from __future__ import annotations

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from project.market.models import Item
from tests.project.market.conftest import player

OFFERED = ".complete-popup [role=option]"
#: Whether the middle of the element is in sight: nothing lies above it, and no box cuts it off.
IN_SIGHT = """(node) => {
    const { left, top, width, height } = node.getBoundingClientRect();
    return node.contains(document.elementFromPoint(left + width / 2, top + height / 2));
}"""


@pytest.mark.slow
def test_rows_of_the_admin_do_not_cut_the_names_off(window, admin, redis):
    for name in ("jack", "jeff", "jill", "joe", "june"):
        player(name)
    opened = window(admin)
    page = opened.open(reverse("admin:market_item_add"))
    page.locator("complete-field[data-live]").first.wait_for()
    options = page.locator(OFFERED)
    page.locator("#id_name").fill("Acorn")
    page.locator("#id_owner").click()
    page.keyboard.type("j")
    expect(options).to_have_text(["jack", "jeff", "jill", "joe", "june"])
    assert options.last.evaluate(IN_SIGHT)
    options.last.click()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("was added successfully")).to_be_visible()
    assert str(Item.objects.get().owner) == "june"

    opened.open(reverse("admin:guilds_guild_add"))
    page.get_by_text("Add another Membership").click()
    page.locator("#id_memberships-0-player").click()
    page.keyboard.type("ji")
    expect(options).to_have_text(["jill"])
    assert options.last.evaluate(IN_SIGHT)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("[name=memberships-0-player-id]")).not_to_have_value("")
    assert page.locator("#memberships-0 .complete-popup").count() == 1
    assert opened.complaints == []
