"""The tour: steps that tick themselves off, log-ins by one click, what a purchase did, and mails that can be read."""

import copy
import logging
import re
import shlex
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from django.conf import settings as site
from django.contrib.auth.models import User
from django.core.management import call_command
from django.http import HttpResponse
from django.test import Client, override_settings
from django.urls import clear_url_caches, include, path, reverse
from redis import Redis

from components.services.chat import Chat
from components.services.logs import LogStream
from components.services.logs.traffic import Traffic
from components.services.queues import TaskQueue
from components.testing import run_tasks
from project.market.models import FlashPurchase, FlashSale, Item, Listing, Player
from project.players import demo as players
from project.supervisor import _ALSO
from project.tour import tasks
from project.tour.shows import SHOWS
from project.urls import urlpatterns as demo
from tests.project.market.conftest import player

pytestmark = pytest.mark.django_db(transaction=True)
#: The addresses of the demo, with those of its tour.
urlpatterns = [path("tour/", include("project.tour.urls")), *demo]


@pytest.fixture
def toured(settings: object, tmp_path: Path) -> None:
    settings.VAR = tmp_path  # type: ignore[attr-defined]
    settings.ROOT_URLCONF = __name__  # type: ignore[attr-defined]
    templates = copy.deepcopy(settings.TEMPLATES)  # type: ignore[attr-defined]
    templates[0]["OPTIONS"]["context_processors"].append("project.tour.context_processors.tour")
    settings.TEMPLATES = templates  # type: ignore[attr-defined]
    clear_url_caches()


@pytest.fixture
def listing(toured: None, db: None) -> Listing:
    """Joe's dagger, which jack can pay."""
    joe = player("joe")
    player("jack")
    User.objects.create_superuser("admin", password="admin")
    item = Item.objects.create(name="Moonlit Dagger", kind=Item.Kind.WEAPON, owner=joe)
    return Listing.objects.create(item=item, seller=joe, price=100)


@pytest.fixture
def visitor(listing: Listing) -> Client:
    return Client()


def to_files(folder: Path) -> override_settings:
    backend = "project.tour.mail.BreakableBackend"
    if hasattr(site, "MAILERS"):
        return override_settings(
            MAILERS={"default": {"BACKEND": backend, "OPTIONS": {"file_path": str(folder)}}}
        )
    return override_settings(EMAIL_BACKEND=backend, EMAIL_FILE_PATH=str(folder))


def buy(visitor: Client, listing: Listing, price: int = 100) -> str:
    visitor.post(reverse("tour:log-in"), {"name": "jack"})
    answer: HttpResponse = visitor.post(
        reverse("market:buy", args=[listing.pk]), {"price": price}, follow=True
    )
    return answer.content.decode()


def done(page: str) -> list[str]:
    return re.findall(r'<li class="done">\s*<details[^>]*>\s*<summary>([^<]+?) <span', page)


def test_a_purchase_ticks_its_step_off_also_after_a_log_out(
    redis: Redis, visitor: Client, listing: Listing
) -> None:
    assert done(visitor.get("/").content.decode()) == []

    page = buy(visitor, listing)

    assert done(page) == ["Buy something"]
    visitor.post(reverse("market:logout"))
    assert done(visitor.get("/").content.decode()) == ["Buy something"]
    visitor.post(reverse("tour:start-again"))
    assert done(visitor.get("/").content.decode()) == []


@pytest.mark.parametrize("has_scripts", [True, False])
def test_whoever_writes_in_a_chat_has_talked_and_whoever_only_looks_has_not(
    redis: Redis, visitor: Client, has_scripts: bool
) -> None:
    visitor.post(reverse("tour:log-in"), {"name": "jack"})
    user_id = str(User.objects.get(username="jack").pk)
    chat = Chat.create(user_id, title="Talk")
    seen = visitor.get(reverse("components:chat", args=[chat.id]))
    assert done(visitor.get("/").content.decode()) == []

    if has_scripts:
        url, said = reverse("components:api-messages", args=[chat.id]), {"text": "hello"}
        answer = visitor.post(url, said, content_type="application/json")
    else:
        answer = visitor.post(reverse("components:chat", args=[chat.id]), {"text": "hello", "client_id": "a"})

    assert (seen.status_code, answer.status_code) == (200, 201 if has_scripts else 302)
    assert done(visitor.get("/").content.decode()) == ["Talk in the chat"]


def test_the_trace_tells_what_a_purchase_did_and_follows_the_task_and_its_mail(
    redis: Redis, visitor: Client, listing: Listing, tmp_path: Path
) -> None:
    assert "What your purchase did" not in visitor.get("/").content.decode()

    page = buy(visitor, listing)

    assert re.search(r"A lock was held for \d+\.\d ms", page)
    assert "The database row of “Moonlit Dagger” was changed" in page
    assert "The task sweep was put into the queue “market”" in page
    assert "The task send_sold_email was put into the queue “mail”" in page
    assert f"item:{listing.item.pk}" in page  # the key of the lock
    assert "It waits for a worker." in page
    assert "data-goes-on" in visitor.get(reverse("tour:trace")).content.decode()

    with to_files(tmp_path / "mail"):
        run_tasks()

    page = visitor.get(reverse("tour:trace")).content.decode()
    assert re.search(r"It waited [\d.]+ m?s, ran [\d.]+ m?s, and succeeded\.", page)
    assert "A mail went to joe@fakegame.example" in page
    assert "data-goes-on" not in page
    assert "Sold: Moonlit Dagger for 100 gold" in visitor.get(reverse("tour:mails")).content.decode()


def press(visitor: Client, name: str) -> str:
    return visitor.post(reverse("tour:show", args=[name]), follow=True).content.decode()


def test_of_a_thousand_buyers_each_piece_has_one(
    redis: Redis, visitor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "BUYERS", 40)
    monkeypatch.setattr(tasks, "PIECES", 7)
    users = User.objects.bulk_create(User(username=f"buyer{number}") for number in range(20))
    Player.objects.bulk_create(Player(user=user) for user in users)

    page = press(visitor, "rush")
    run_tasks()

    assert "Exactly 7 will get one." in page
    assert FlashPurchase.objects.count() == Item.objects.filter(name=tasks.LANTERN).count() == 7
    assert FlashSale.objects.get(name=tasks.LANTERN).remaining == 0
    [later] = TaskQueue().tasks(tasks.QUEUE, "delayed")
    assert later.name == "project.tour.tasks.undo_rush"


def test_while_redis_is_away_a_button_says_so(visitor: Client, settings: Any) -> None:
    nowhere = {**settings.CACHES["default"], "LOCATION": "unix:///nowhere/redis"}
    settings.CACHES = {"default": nowhere}
    for name in SHOWS:
        answer = visitor.post(reverse("tour:show", args=[name]), {"next": "/flash/"})
        assert answer.status_code == 303
        assert "Nothing was started" in visitor.get(answer["Location"]).content.decode()


@pytest.mark.parametrize("name", ["rush", "mail", "fight", "lines"])
def test_a_show_that_is_on_is_not_begun_again(redis: Redis, visitor: Client, name: str) -> None:
    press(visitor, name)
    waiting = {each: TaskQueue().stats(each).ready for each in TaskQueue().names()}

    page = press(visitor, name)

    assert "is still going on." in page
    assert {each: TaskQueue().stats(each).ready for each in TaskQueue().names()} == waiting


def test_the_lines_are_counted_apart_and_nothing_of_them_is_left(
    redis: Redis, visitor: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tasks, "LINES", 20_000)
    players.load()
    page = press(visitor, "lines")
    run_tasks()
    count_lines()

    written, traffic = tmp_path / "tour" / "lines.log", Traffic(tasks.JOB)
    totals = traffic.totals()
    lines, counted = totals.pop("lines"), totals.pop("counted")
    assert "In ten minutes they are deleted" in page
    assert len(written.read_text().splitlines()) == lines == 20_000
    assert counted == sum(each.lines for each in traffic.days()) > 19_900  # a few are made up to be rejected
    assert counted + sum(totals.values()) == lines
    assert Traffic().days() == ()  # the game's own figures
    [later] = TaskQueue().tasks(tasks.QUEUE, "delayed")
    assert later.name == "project.tour.tasks.delete_lines"

    monkeypatch.setattr(tasks, "_WRITTEN", timedelta(milliseconds=1))
    tasks.delete_lines.call()

    assert not written.exists()
    assert not [*LogStream(tasks.JOB).files()]
    assert (traffic.days(), traffic.totals()) == ((), {})
    assert {each for each in redis.keys("*{tour}:table:*") if b":live" not in each} == set()


def count_lines() -> None:
    """Do what the demo's process does that counts these lines."""

    def count() -> None:
        with suppress(SystemExit):  # which ends the command
            call_command(*shlex.split(_ALSO["tally"]), "--drain", verbosity=0)

    log = logging.getLogger("components")
    level, handlers = log.level, log.handlers[:]
    counter = Thread(target=count)  # outside of the main thread, it leaves signals alone
    counter.start()
    counter.join()
    log.setLevel(level)  # it has set up the log of this process
    log.handlers[:] = handlers
