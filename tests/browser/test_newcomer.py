"""
What a newcomer is asked to do, with the demo as it is on its first day: from its front page on, by what can be seen
and pressed, without typing an address.

Nothing takes more than MOST presses, so that each can be done in three minutes by somebody who reads what there is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as site
from playwright.sync_api import Locator, Page, expect
from redis import Redis

from components.overview import patience
from components.services.counters import flush, measure
from components.services.logs import note_job
from components.testing import run_tasks
from project.market import demo
from project.market.tasks import end_listing, send_sold_email
from tests.locks.admin import holdings
from tests.project.tour.conftest import to_files, toured  # noqa: F401
from tests.queues.admin import scene
from tests.support import traffic
from tests.support.rows import let_pass

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

MOST = 12


class Newcomer:
    """Somebody who sees a page, and presses what is on it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.presses = 0

    def press(self, name: str, within: Locator | None = None) -> None:
        """Press the first link, button or tab of that name that can be seen."""
        place = within or self.page
        named = re.compile(name)
        found = place.get_by_role("link", name=named).or_(place.get_by_role("button", name=named))
        found.filter(visible=True).first.click()
        self.presses += 1

    def sees(self, text: str | re.Pattern[str]) -> None:
        expect(self.page.get_by_text(text).filter(visible=True).first).to_be_visible()

    def row(self, text: str) -> Locator:
        """The row of a table, or the item of a list, with this text."""
        places = self.page.get_by_role("row").or_(self.page.get_by_role("listitem"))
        return places.filter(has_text=text).filter(visible=True).first

    def enter_control_room(self) -> None:
        self.press("^admin$")
        self.press("^control room$")
        self.press("^Overview")


@pytest.fixture
def newcomer(
    window: Callable[..., Any],
    redis: Redis,
    toured: None,  # noqa: F811
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Newcomer]:
    settings.COMPONENTS = {**site.COMPONENTS, "COUNT_SERVICES": True}
    settings.MIDDLEWARE = ["components.middleware.CountRequestsMiddleware", *site.MIDDLEWARE]
    monkeypatch.setattr(patience, "_PATIENCE", 20.0)  # for a busy machine
    patience.forget()
    demo.load()
    opened = window(viewport={"width": 1440, "height": 900})
    found = Newcomer(opened.open("/"))
    yield found
    patience.forget()
    assert opened.complaints == []
    assert found.presses <= MOST


def buy(newcomer: Newcomer, thing: str, *, of: str = "joe", by: str = "jack") -> None:
    newcomer.press(f"^{by}$")
    newcomer.press(f"^Buy {thing}")


def test_sells_something_and_finds_the_mail(newcomer: Newcomer, tmp_path: Path) -> None:
    newcomer.press("^joe$")
    newcomer.press("^Sell$")
    newcomer.page.get_by_label("Item").select_option(label="Slightly Haunted Longbow")
    newcomer.page.get_by_label("Price").fill("10")
    newcomer.press("^List it$|^Put it up for sale$")
    newcomer.press("^jack$")
    newcomer.press("^Buy$")
    newcomer.press("^Buy Slightly Haunted Longbow")

    with to_files(tmp_path / "mail"):
        run_tasks()
        newcomer.press("^A mail went to joe@fakegame.example")

        newcomer.sees("to joe@fakegame.example")
        newcomer.sees(re.compile("Slightly Haunted Longbow"))


def test_finds_why_a_task_died_and_sends_it_again(newcomer: Newcomer, tmp_path: Path) -> None:
    newcomer.press("^Break the mail server$")
    newcomer.press("^jack$")
    newcomer.press("^Buy Jar of Captured Dusk")
    with to_files(tmp_path / "mail"):
        run_tasks()
    newcomer.enter_control_room()
    newcomer.press("^Dead tasks", within=newcomer.row("failed"))
    newcomer.press("^smtplib.SMTPServerDisconnected: The tour has broken")
    newcomer.press("send_sold_email$")

    newcomer.sees(re.compile("mail server"))
    newcomer.press("^Send again")
    newcomer.press("^Send again")

    newcomer.sees(re.compile("[Ss]ent .*again"))


def test_sends_a_group_of_failures_again(newcomer: Newcomer) -> None:
    for _ in range(4):
        scene.dead("mail")
    newcomer.enter_control_room()
    newcomer.press("^Dead tasks", within=newcomer.row("failed"))
    newcomer.press("by error")
    group = newcomer.row("no route")
    expect(group).to_contain_text("4")
    newcomer.press("^Send", within=group)
    newcomer.press("^Send again")

    newcomer.sees(re.compile("[Ss]ent 4 tasks .*again"))


def test_releases_a_stuck_lock(newcomer: Newcomer) -> None:
    holdings.held("item:42", timeout=3_600, owner="a process that hangs")
    newcomer.enter_control_room()
    newcomer.press("^Locks")
    newcomer.press("^item:42$")
    newcomer.sees(re.compile("a process that hangs"))
    newcomer.press("^Release")
    newcomer.press("^Release|^Yes")

    newcomer.sees(re.compile("[Rr]eleased"))


def test_finds_the_rows_that_are_late(newcomer: Newcomer, redis: Redis) -> None:
    let_pass(redis, 3_600)  # nobody has loaded them again
    newcomer.enter_control_room()
    newcomer.press("rows", within=newcomer.row("should have been loaded"))

    expect(newcomer.row("1 h")).to_be_visible()


def test_finds_who_is_in_a_chat(newcomer: Newcomer) -> None:
    newcomer.enter_control_room()
    newcomer.press("^Chats")
    newcomer.press("^Lantern Keepers")

    expect(newcomer.row("joe")).to_be_visible()


def test_finds_the_slowest_task_of_the_last_hour_and_its_p95(newcomer: Newcomer) -> None:
    for task, microseconds in ((send_sold_email.module_path, 1_200_000), (end_listing.module_path, 20_000)):
        for _ in range(20):
            measure(f"runs-us:{task}", microseconds)
    flush()
    newcomer.enter_control_room()
    newcomer.press("^Counters")
    newcomer.press("^Tasks by time")
    newcomer.press("^Last hour")

    newcomer.sees(
        re.compile(r"The slowest task is .*send_sold_email: 95% of its runs took 1\.[12]\d* s or less")
    )


def test_finds_how_often_a_view_is_requested_in_a_minute(newcomer: Newcomer) -> None:
    for _ in range(60 * 20):
        measure("requests-us:market:browse", 3_000)
    flush()
    newcomer.enter_control_room()
    newcomer.press("^Counters")
    newcomer.press("^Views by time")

    expect(newcomer.row("market:browse").locator("[data-label='a minute']")).to_have_text("20")


def test_finds_the_country_with_the_most_players_of_a_day_on_the_map(newcomer: Newcomer) -> None:
    today = datetime.now(UTC).date()
    note_job("default")
    traffic.count({today - timedelta(1): {"JP/13/Tokyo": 8_100, "DE/BE/Berlin": 900}, today: {"FR": 9_999}})
    newcomer.enter_control_room()
    newcomer.press("^Logs")
    newcomer.press("^Traffic")
    for label in ("From", "to"):
        newcomer.page.get_by_label(label, exact=True).fill(str(today - timedelta(1)))
    newcomer.press("^Show$")

    expect(newcomer.page.get_by_role("link", name=re.compile("^Japan: 8,100"))).to_be_visible()
    expect(newcomer.page.get_by_role("table").last.get_by_role("row").nth(1)).to_contain_text("Japan")


def test_pauses_a_queue(newcomer: Newcomer) -> None:
    newcomer.press("^jack$")
    newcomer.press("^Buy Jar of Captured Dusk")
    newcomer.enter_control_room()
    newcomer.press("^Queues")
    newcomer.press("^Pause", within=newcomer.row("mail"))
    newcomer.press("^Pause")

    newcomer.sees(re.compile("[Pp]aused"))
