"""The tour: steps that tick themselves off, log-ins by one click, what a purchase did, and mails that can be read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.conf import settings as site
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from redis import Redis

from components.services.chat import Chat
from components.testing import run_tasks
from project.market.models import Listing, Sale
from project.tour.steps import STEPS
from tests.project.tour.conftest import to_files

#: Of views that take one.
ARGUMENT = {
    "tour:show": "rush",
    "components:api-messages": "guild-1",
    "components:chat": "guild-1",
    "components:api-book": "guild:1",
}

pytestmark = pytest.mark.django_db(transaction=True)


def buy(visitor: Client, listing: Listing, price: int = 100) -> str:
    visitor.post(reverse("tour:log-in"), {"name": "jack"})
    answer: HttpResponse = visitor.post(
        reverse("market:buy", args=[listing.pk]), {"price": price}, follow=True
    )
    return answer.content.decode()


def done(page: str) -> list[str]:
    return re.findall(r'<li class="done">\s*<details[^>]*>\s*<summary>([^<]+?) <span', page)


def test_each_step_can_be_done_and_leads_somewhere(redis: Redis, visitor: Client) -> None:
    for step in STEPS:
        assert reverse(step.at)
        assert step.room is None or reverse(step.room[1])
        for each in step.by - {"row", "piece"}:
            method, _, view = each.partition(" ")
            assert method in ("GET", "POST")
            assert reverse(view, args=[ARGUMENT[view]] if view in ARGUMENT else None)


def test_one_click_logs_in(redis: Redis, visitor: Client) -> None:
    page = visitor.post(reverse("tour:log-in"), {"name": "jack", "next": "/flash/"}, follow=True)

    assert page.wsgi_request.path == "/flash/"
    assert page.wsgi_request.user.get_username() == "jack"


@pytest.mark.parametrize("name", ["guard", "nobody", ""])
def test_nobody_else_gets_in(redis: Redis, visitor: Client, name: str) -> None:
    assert visitor.post(reverse("tour:log-in"), {"name": name}).status_code == 404


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


def test_a_page_that_could_not_be_seen_ticks_nothing_off(redis: Redis, visitor: Client) -> None:
    visitor.get(reverse("market:mine"))
    visitor.post(reverse("market:buy", args=[10**6]), {"price": 1})

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


def test_the_tour_tells_what_a_purchase_did(redis: Redis, visitor: Client, listing: Listing) -> None:
    assert "What your purchase did" not in visitor.get("/").content.decode()

    page = buy(visitor, listing)

    assert re.search(r"A lock was held for \d+\.\d ms", page)
    assert "The database row of “Moonlit Dagger” was changed" in page
    assert "The task sweep was put into the queue “market”" in page
    assert "The task send_sold_email was put into the queue “mail”" in page
    assert f"item:{listing.item.pk}" in page  # the key of the lock
    assert "It waits for a worker." in page
    assert "data-goes-on" in visitor.get(reverse("tour:trace")).content.decode()


def test_the_trace_follows_the_task_and_its_mail(
    redis: Redis, visitor: Client, listing: Listing, tmp_path: Path
) -> None:
    buy(visitor, listing)
    folder = tmp_path / "mail"
    with to_files(folder):
        run_tasks()

    page = visitor.get(reverse("tour:trace")).content.decode()

    assert re.search(r"It waited \d+\.\d ms, ran \d+\.\d ms, and succeeded\.", page)
    assert "A mail went to joe@fakegame.example" in page
    assert "data-goes-on" not in page
    mails = visitor.get(reverse("tour:mails")).content.decode()
    assert "Sold: Moonlit Dagger for 100 gold" in mails


def test_a_purchase_that_was_refused_leaves_no_trace(redis: Redis, visitor: Client, listing: Listing) -> None:
    page = buy(visitor, listing, price=99)

    assert not Sale.objects.exists()
    assert "What your purchase did" not in page


def test_while_redis_is_away_the_trace_says_so(
    redis: Redis, visitor: Client, listing: Listing, settings: object
) -> None:
    buy(visitor, listing)
    settings.CACHES = {  # type: ignore[attr-defined]
        "default": {**site.CACHES["default"], "LOCATION": "unix:///nowhere/redis"}
    }

    assert "Redis is away" in visitor.get(reverse("tour:trace")).content.decode()


def test_a_cookie_of_somebody_else_is_no_step(redis: Redis, visitor: Client) -> None:
    visitor.cookies["tour"] = "buy:forged"

    assert done(visitor.get("/").content.decode()) == []


def test_the_admin_links_to_the_tour(redis: Redis, visitor: Client) -> None:
    visitor.post(reverse("tour:log-in"), {"name": "admin"})

    assert reverse("tour:shows") in visitor.get(reverse("admin:index")).content.decode()
