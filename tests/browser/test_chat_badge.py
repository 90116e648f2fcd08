"""The badge in the navigation of the demo, on a page that is not the chat page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from playwright.sync_api import expect
from redis import Redis

from components.services.chat import Chat
from components.testing import redis_at
from tests.project.market.conftest import player
from tests.support.chats import FREE
from tests.support.waiting import eventually

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


def test_the_badge_follows_messages_without_loading_the_page(
    window: Callable[..., Any], client: Client, redis: Redis
) -> None:
    jack = player("jack")
    me = str(jack.user_id)
    chat = Chat.create("jill", members=[me], text="hello", settings=FREE)
    client.force_login(jack.user)
    opened = window(client, viewport={"width": 390, "height": 700})
    opened.page.clock.install()
    page = opened.open(reverse("market:mine"))
    link = page.get_by_role("navigation", name="Market").get_by_role("link", name="Chat")
    expect(link).to_have_accessible_name("Chat 1 unread")
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")

    chat.send("jill", "@jack", mentions=[me])
    page.clock.fast_forward(20_000)
    expect(link).to_have_accessible_name("Chat 2 unread, some mention you")
    with redis_at("unix:///nowhere/at-all"):
        page.clock.fast_forward(20_000)
        expect(link).to_have_accessible_name("Chat")
    chat.acknowledge(me, 3)
    page.clock.fast_forward(20_000)
    expect(link).to_have_accessible_name("Chat")

    page.context.clear_cookies()

    def is_gone() -> bool:
        page.clock.fast_forward(20_000)  # again, if the last answer had not come before the clock was set
        return page.locator(".components-chat-badge").count() == 0

    assert eventually(is_gone)
    assert opened.complaints == []
