"""The badge that a site shows on every page."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.template import Context, Template
from django.test import RequestFactory

from components.services.chat import Chat, Inbox, Unread
from components.testing import redis_at
from tests.support.chats import FREE

BADGE = Template("{% load chat %}{% chat_badge %}")


@pytest.fixture
def joe(db, redis):
    return User.objects.create_user("joe")


def badge(user):
    request = RequestFactory().get("/")
    request.user = user
    return BADGE.render(Context({"request": request})).strip()


def test_the_badge_counts_what_is_unread_in_all_chats(joe):
    me = str(joe.pk)
    for number in range(3):
        chat = Chat.create("jack", members=[me], text=f"hello {number}", settings=FREE)
    chat.send("jack", "you?")
    chat.acknowledge(me, 2)

    assert Inbox(me).unread() == Unread(messages=3, mentions=0, chats=3)
    whole = 'data-unread="3" data-url="/chat/-/badge/">3<span class="chat-hidden"> unread'
    assert f'<span class="components-chat-badge" {whole}' in badge(joe)
    chat.send("jack", "@joe", mentions=[me])
    assert Inbox(me).unread() == Unread(messages=4, mentions=1, chats=3)
    assert '<span aria-hidden="true">@</span>4' in badge(joe)
    assert ", some mention you</span>" in badge(joe)


def test_a_large_number_is_shown_short(joe):
    chat = Chat.create("jack", members=[str(joe.pk)], settings=FREE)
    for _ in range(100):
        chat.send("jack", "hello")

    assert 'data-unread="100" data-url="/chat/-/badge/">99+<' in badge(joe)


def test_who_has_read_everything_has_an_empty_badge(joe):
    chat = Chat.create("jack", members=[str(joe.pk)], text="hello", settings=FREE)
    chat.acknowledge(str(joe.pk), 2)
    chat.close()  # an event is not unread

    assert (
        badge(joe) == '<span class="components-chat-badge" data-unread="0" data-url="/chat/-/badge/"></span>'
    )
    assert Inbox("nobody").unread() == Unread(0, 0, 0)


def test_a_page_is_shown_while_redis_is_away(joe):
    assert badge(AnonymousUser()) == BADGE.render(Context()).strip() == ""
    with redis_at("unix:///nowhere/at-all"):
        assert (
            badge(joe)
            == '<span class="components-chat-badge" data-unread="0" data-url="/chat/-/badge/"></span>'
        )


def test_the_badge_has_an_address_of_its_own(joe, client):
    assert client.get("/chat/-/badge/").content.strip() == b""

    Chat.create("jack", members=[str(joe.pk)], text="hello", settings=FREE)
    client.force_login(joe)
    shown = client.get("/chat/-/badge/")

    assert 'data-unread="1"' in shown.content.decode()
    assert "no-store" in shown["Cache-Control"]
    assert client.post("/chat/-/badge/").status_code == 405
