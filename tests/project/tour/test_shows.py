"""The buttons: what they promise, that they are bounded, and where they exist."""

from __future__ import annotations

import logging
import shlex
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from redis import Redis

from components.services.logs import LogStream
from components.services.logs.traffic import Traffic
from components.services.queues import TaskQueue
from components.testing import run_tasks
from project.market.models import FlashPurchase, FlashSale, Item, Listing, Player
from project.players import demo as players
from project.supervisor import _ALSO
from project.tour import tasks
from project.tour.shows import SHOWS
from tests.project.market.test_settings import PRODUCTION, python

pytestmark = pytest.mark.django_db(transaction=True)


def press(visitor: Client, name: str) -> str:
    return visitor.post(reverse("tour:show", args=[name]), follow=True).content.decode()


def test_of_a_thousand_buyers_each_piece_has_one(
    redis: Redis, visitor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "BUYERS", 40)
    monkeypatch.setattr(tasks, "PIECES", 7)
    Player.objects.bulk_create(Player(user=user) for user in make_users(20))

    page = press(visitor, "rush")
    run_tasks()

    assert "Exactly 7 will get one." in page
    assert FlashPurchase.objects.count() == Item.objects.filter(name=tasks.LANTERN).count() == 7
    assert FlashSale.objects.get(name=tasks.LANTERN).remaining == 0
    [later] = TaskQueue().tasks(tasks.QUEUE, "delayed")
    assert later.name == "project.tour.tasks.undo_rush"


@pytest.mark.parametrize("name", SHOWS)
def test_while_redis_is_away_a_button_says_so(visitor: Client, settings: Any, name: str) -> None:
    nowhere = {**settings.CACHES["default"], "LOCATION": "unix:///nowhere/redis"}
    settings.CACHES = {"default": nowhere}

    answer = visitor.post(reverse("tour:show", args=[name]), {"next": "/flash/"})

    assert answer.status_code == 303
    assert "Nothing was started" in visitor.get(answer["Location"]).content.decode()


def make_users(number: int) -> list[object]:
    from django.contrib.auth.models import User

    return [User.objects.create(username=f"buyer{each}") for each in range(number)]


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


@pytest.mark.parametrize("name", [*SHOWS, "log-in", "start-again"])
def test_what_changes_something_wants_a_token(redis: Redis, listing: Listing, name: str) -> None:
    url = reverse("tour:show", args=[name]) if name in SHOWS else reverse(f"tour:{name}")

    assert Client(enforce_csrf_checks=True).post(url, {"name": "admin"}).status_code == 403


# Where the tour does not exist


@pytest.mark.parametrize(
    "environment", [{**PRODUCTION, "TOUR": "1"}, {"REDIS_URL": "redis://redis.example:6379/0", "TOUR": "1"}]
)
def test_elsewhere_the_setting_is_refused(environment: dict[str, str]) -> None:
    ended = python("manage.py", "check", environment=environment)

    assert ended.returncode == 1
    assert "TOUR is only for `manage.py demo` with its embedded Redis." in ended.stderr
