"""Names in the demo, in a real browser: who gets a letter, what is for sale, and foreign keys in the admin."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from django.test.utils import override_settings
from django.urls import reverse
from playwright.sync_api import Page, expect
from redis import Redis

from components.services.autocomplete import RecentContacts
from components.services.mailboxes import Mailbox
from project.guilds.models import Guild
from project.market.books import for_sale
from project.market.models import Item, Listing, Player
from tests.browser.axe import assert_accessible
from tests.project.guilds.conftest import member
from tests.project.market.conftest import player
from tests.support.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)

OFFERED = ".complete-popup [role=option]"
#: Whether the middle of the element is in sight: nothing lies above it, and no box cuts it off.
IN_SIGHT = """(node) => {
    const { left, top, width, height } = node.getBoundingClientRect();
    return node.contains(document.elementFromPoint(left + width / 2, top + height / 2));
}"""
FITS = "() => document.documentElement.scrollWidth <= innerWidth"


@pytest.fixture(autouse=True)
def the_demo(redis: Redis) -> Iterator[None]:
    rules = {"PEOPLE": "project.guilds.letters.GuildMates", "BOOKS": "project.guilds.books.GuildBooks"}
    with override_settings(COMPONENTS={**settings.COMPONENTS, **rules}):
        yield


@pytest.fixture
def keepers(the_demo: None) -> Guild:
    return Guild.objects.create(name="Lantern Keepers")


@pytest.fixture
def joe(keepers: Guild) -> Player:
    return member("joe", keepers)


@pytest.fixture
def opened(window: Callable[..., Any], client: Client) -> Iterator[Callable[..., Page]]:
    """opened(user, path, **options of a context): a page of the demo, which complains of nothing."""
    windows = []

    def open_page(user: User, path: str, **context: Any) -> Page:
        client.force_login(user)
        windows.append(window(client, **context))
        page: Page = windows[-1].open(path)
        if context.get("java_script_enabled", True):
            page.locator("complete-field[data-live]").first.wait_for()
        return page

    yield open_page
    assert [text for each in windows for text in each.complaints] == []


def typed(page: Page, selector: str, text: str) -> Any:
    """The options that come when *text* is typed there."""
    page.locator(selector).click()
    page.keyboard.type(text)
    return page.locator(OFFERED)


@pytest.mark.slow
def test_a_letter_is_addressed_by_a_few_letters_of_a_name(opened: Any, keepers: Guild, joe: Player) -> None:
    elodie, _ = member("Élodie.Moreau", keepers), member("Joël", keepers)
    stranger = player("Elsa")
    RecentContacts(str(joe.user_id)).touch(str(stranger.user_id), label="Elsa")
    page = opened(
        joe.user, reverse("guilds:mail"), color_scheme="dark", viewport={"width": 390, "height": 700}
    )

    options = typed(page, "#id_to", "el")
    expect(options).to_have_text(["Élodie.Moreau"])
    assert page.evaluate(FITS)
    page.keyboard.press("ArrowDown")
    assert_accessible(page)
    page.keyboard.press("Enter")
    page.locator("#id_text").fill("Bring oil.")
    page.get_by_role("button", name="Send").click()

    expect(page.get_by_text("Sent to Élodie.Moreau.")).to_be_visible()
    assert [mail.text for mail in Mailbox(str(elodie.user_id)).peek()] == ["Bring oil."]
    page.locator("complete-field[data-live]").wait_for()
    page.locator("#id_to").click()
    expect(page.locator(OFFERED)).to_have_text(["Élodie.Moreau recent"])


def test_a_letter_is_addressed_without_scripts(opened: Any, keepers: Guild, joe: Player) -> None:
    elodie = member("Élodie.Moreau", keepers)
    page = opened(joe.user, reverse("guilds:mail"), java_script_enabled=False)

    page.locator("#id_to").fill("elodie.moreau")
    page.locator("#id_text").fill("Bring oil.")
    page.get_by_role("button", name="Send").click()

    expect(page.get_by_text("Sent to Élodie.Moreau.")).to_be_visible()
    assert Mailbox(str(elodie.user_id)).depth() == 1


@pytest.mark.slow
def test_the_chosen_listing_is_shown(opened: Any, joe: Player) -> None:
    jack = player("jack")
    for name in ("Épée de Midi", "Épée de Minuit", "Glass Acorn"):
        Listing.objects.create(item=Item.objects.create(name=name, owner=joe), seller=joe, price=20)
    path = reverse("market:browse")
    page = opened(jack.user, path)

    options = typed(page, "#id_q", "epe")
    expect(options).to_have_text(["Épée de Midi", "Épée de Minuit"])
    assert options.last.evaluate(IN_SIGHT)
    assert_accessible(page)
    options.last.click()
    expect(page.locator(".card h2")).to_have_text(["Épée de Minuit"])
    assert eventually(for_sale.book.top)  # though the page has left meanwhile
    page.locator("complete-field[data-live]").wait_for()
    page.locator("#id_q").fill("ep")
    expect(page.locator(OFFERED).first).to_have_text("Épée de Minuit")  # which is what is looked for

    plain = opened(jack.user, path, java_script_enabled=False)
    plain.locator("#id_q").fill("epe")
    plain.locator("#id_q").press("Enter")
    expect(plain.locator(".card h2")).to_have_count(2)


@pytest.mark.slow
def test_rows_of_the_admin_do_not_cut_the_names_off(opened: Any, joe: Player) -> None:
    for name in ("jack", "jeff", "jill", "june"):
        player(name)
    chief = User.objects.create_superuser("chief")
    page = opened(chief, reverse("admin:market_item_add"))
    page.locator("#id_name").fill("Acorn")
    options = typed(page, "#id_owner", "j")
    expect(options).to_have_text(["jack", "jeff", "jill", "joe", "june"])
    assert options.last.evaluate(IN_SIGHT)
    options.last.click()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("was added successfully")).to_be_visible()
    assert str(Item.objects.get().owner) == "june"

    page.goto(page.url.partition("/admin/")[0] + reverse("admin:guilds_guild_add"))
    page.get_by_text("Add another Membership").click()
    options = typed(page, "#id_memberships-0-player", "ji")
    expect(options).to_have_text(["jill"])
    assert options.last.evaluate(IN_SIGHT)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("[name=memberships-0-player-id]")).not_to_have_value("")
    assert page.locator("#memberships-0 .complete-popup").count() == 1
    ids = page.evaluate("() => [...document.querySelectorAll('[id]')].map((node) => node.id)")
    assert len(ids) == len(set(ids))
