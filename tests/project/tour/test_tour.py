"""The tour: steps that tick themselves off, log-ins by one click, what a purchase did, and mails that can be read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from redis import Redis

from components.services.chat import Chat
from components.testing import run_tasks
from project.market.models import Listing
from tests.project.tour.conftest import to_files

pytestmark = pytest.mark.django_db(transaction=True)


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
