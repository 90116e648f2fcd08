"""What axe-core finds on pages of the control room and of the demo; the chat page has it in a test of its looks."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from components.services.autocomplete import AddressBook
from components.services.counters import Counter
from components.services.mailboxes import Mailbox
from project.market import demo
from tests.browser.axe import assert_accessible
from tests.chat.admin import conversations
from tests.locks.admin import holdings
from tests.queues.admin import scene
from tests.support.rows import cache

pytestmark = pytest.mark.slow

ADMIN = "/admin/components/"
CONTROL_ROOM = (
    f"{ADMIN}queue/",
    f"{ADMIN}queue/tasks/?alias=default&queue=mail&state=dead",
    f"{ADMIN}semaphore/semaphore/?semaphore=api",
    f"{ADMIN}chat/chat/?chat=guild:7",
    f"{ADMIN}addressbook/book/?book=guild:7&prefix=a",
    f"{ADMIN}mailbox/clear/?mailbox=jack",
    f"{ADMIN}cachedrow/",
    f"{ADMIN}cachedrow/model/?model=items",
    f"{ADMIN}cachedrow/delay/?row=items:1",
    f"{ADMIN}counter/",
    f"{ADMIN}counter/chart/?counter=sales:maps&counter=sales",
)
DEMO = ("/", "/flash/", "/sell/", "/guild/", "/mail/")


def logged_in(user):
    client = Client()
    client.force_login(user)
    return client


def test_pages_of_the_control_room_shut_nobody_out(window, redis, transactional_db, settings):
    settings.COMPONENTS = {**settings.COMPONENTS, "COUNT_SERVICES": True}
    scene.one_of_each("mail")
    holdings.permit("api")
    conversations.guild()
    AddressBook("guild:7").add("Ann Smith", id=12)
    Mailbox("jack").push("jill", "hello")
    Counter("sales:maps").update(3)
    cache().schedule("1", 60)
    opened = window(logged_in(User.objects.create_superuser("admin")))

    for path in CONTROL_ROOM:
        assert_accessible(opened.open(path))
    assert opened.complaints == []


def test_pages_of_the_demo_shut_nobody_out(window, redis, transactional_db):
    demo.load()
    opened = window(logged_in(User.objects.get(username="jack")))

    for path in DEMO:
        assert_accessible(opened.open(path))
    assert opened.complaints == []


def test_a_page_that_shuts_somebody_out_is_noticed(window):
    page = window().page
    page.set_content("""<html lang="en"><title>x</title><meta name="color-scheme" content="light dark">
        <style>@media (prefers-color-scheme: dark) { p { color: #333; background: #222; } }</style>
        <main><h1>x</h1><p>dark</p><img src="data:,"></main></html>""")

    with pytest.raises(AssertionError, match=r"(?s)light: image-alt.*dark: color-contrast"):
        assert_accessible(page)
