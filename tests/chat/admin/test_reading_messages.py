"""Searching messages; and who reads what people wrote is in Django's log, once an hour and not with each refresh."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape

import pytest
from django.contrib.admin.models import LogEntry
from django.utils import timezone

from components.services.chat import Chat
from components.services.mailboxes import Mailbox
from tests.chat.admin.conversations import SECRET, guild

CHAT = "/admin/components/chat/messages/?chat=guild:7"
PAGES = [CHAT, "/admin/components/mailbox/messages/?mailbox=jack"]
LIVE = {"headers": {"X-Live": "1"}}


@pytest.fixture(autouse=True)
def chat(redis) -> Chat:
    guild("guild:8", title="Others")
    for name in ("jack", "jill"):
        Mailbox(name).push("joe", SECRET)
    return guild()


@pytest.fixture
def reader(staff):
    return staff("view_chat", "view_messages_chat", "view_mailbox", "view_messages_mailbox")


@pytest.mark.parametrize("page", PAGES)
def test_reading_messages_is_logged_once_an_hour(reader, staff, page):
    assert SECRET in reader.get(page, **LIVE).text

    [entry] = LogEntry.objects.all()
    assert entry.object_repr
    assert SECRET not in f"{entry.change_message} {entry.object_repr}"
    reader.get(page)
    reader.get(f"{page}&before=3&first=3")
    assert LogEntry.objects.count() == 1

    LogEntry.objects.update(action_time=timezone.now() - timedelta(minutes=59))
    reader.get(page, **LIVE)
    assert LogEntry.objects.count() == 1
    LogEntry.objects.update(action_time=timezone.now() - timedelta(minutes=61))
    reader.get(page, **LIVE)
    assert LogEntry.objects.count() == 2
    reader.get(page.replace("guild:7", "guild:8").replace("jack", "jill"))
    assert LogEntry.objects.count() == 3

    staff("view_messages_chat", "view_messages_mailbox", "view_chat", "view_mailbox", "view_queue").get(page)
    assert LogEntry.objects.values("user").distinct().count() == 2


def test_what_shows_no_message_is_not_logged(staff):
    viewer = staff("view_chat", "view_mailbox")
    for page in (*PAGES, f"{CHAT}&q=treasure"):
        assert viewer.get(page).status_code == 403
        assert viewer.get(page.replace("messages/", "")).status_code == 200

    assert not LogEntry.objects.exists()


def test_words_lead_to_their_message(reader, chat, monkeypatch):
    monkeypatch.setattr("components.services.chat.admin.chats.MESSAGES", 11)
    for number in range(15):
        chat.send("joe", f"later {number} <script>alert(1)</script>")

    page = reader.get(f"{CHAT}&q=MILL+treas")

    assert "the <mark>treasure</mark> lies below the <mark>mill</mark>" in page.text
    [link] = re.findall(r'href="([^"]+#message-\d+)"', page.text)
    path, _, anchor = unescape(link).partition("#")
    there = reader.get(path).text
    assert SECRET in there.partition(f'id="{anchor}"')[2].partition("</tr>")[0]
    assert "later 2" in there  # what came after it
    assert "later 14" not in there
    assert "<script>alert" not in reader.get(f"{CHAT}&q=later").text
    assert {entry.change_message for entry in LogEntry.objects.all()} == {"Read the messages."}


def test_a_long_history_is_searched_in_parts(reader, chat, monkeypatch):
    monkeypatch.setattr("components.services.chat.chat.SEARCHED", 1)
    monkeypatch.setattr("components.services.chat.chat.MAX_LIMIT", 2)
    for text in ("one", "two"):
        chat.send("joe", text)

    page, asked = reader.get(f"{CHAT}&q=treasure").text, 1
    while "<mark>" not in page:
        [further] = re.findall(r'href="([^"]+)" rel="prev"', page)
        page, asked = reader.get(unescape(further)).text, asked + 1

    assert 1 < asked < 5


@pytest.mark.parametrize("words", ["/", "+".join("abcdefghi"), "x" * 300])
def test_a_search_for_nothing_and_for_too_much_is_refused(reader, words):
    assert reader.get(f"{CHAT}&q={words}").status_code == 400
