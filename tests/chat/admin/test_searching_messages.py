"""The search in the messages of a chat, for members of staff who may read them."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.contrib.admin.models import LogEntry

from components.services.chat import Chat
from tests.chat.admin.conversations import SECRET, guild

CHAT = "/admin/components/chat/chat/?chat=guild:7"
PAGE = "/admin/components/chat/messages/?chat=guild:7"

pytestmark = pytest.mark.usefixtures("redis")


@pytest.fixture
def chat(redis) -> Chat:
    return guild()


@pytest.fixture
def reader(staff):
    return staff("view_chat", "view_messages_chat")


def test_words_lead_to_their_message(reader, chat, monkeypatch):
    monkeypatch.setattr("components.services.chat.admin.chats.MESSAGES", 11)
    for number in range(15):
        chat.send("joe", f"later {number}")

    page = reader.get(f"{PAGE}&q=MILL+treas")

    assert "the <mark>treasure</mark> lies below the <mark>mill</mark>" in page.text
    assert "later 5" not in page.text
    [link] = re.findall(r'href="([^"]+#message-\d+)"', page.text)
    path, _, anchor = unescape(link).partition("#")
    there = reader.get(path).text
    assert SECRET in there.partition(f'id="{anchor}"')[2].partition("</tr>")[0]
    assert "later 2" in there  # what came after it
    assert "later 14" not in there


def test_what_is_not_there_is_said(reader, chat):
    assert "No message has these words." in reader.get(f"{PAGE}&q=unheard").text


def test_a_long_history_is_searched_in_parts(reader, chat, monkeypatch):
    monkeypatch.setattr("components.services.chat.chat.SEARCHED", 1)
    monkeypatch.setattr("components.services.chat.chat.MAX_LIMIT", 2)
    chat.send("joe", "one")
    chat.send("joe", "two")

    page = reader.get(f"{PAGE}&q=treasure").text
    assert "Older ones have not been searched yet." in page
    for _ in range(5):
        if "<mark>" in page:
            break
        [further] = re.findall(r'href="([^"]+)" rel="prev"', page)
        page = reader.get(unescape(further)).text

    assert "<mark>treasure</mark>" in page


@pytest.mark.parametrize("words", ["/", "+".join("abcdefghi"), "x" * 300])
def test_a_search_for_nothing_and_for_too_much_is_refused(reader, chat, words):
    page = reader.get(f"{PAGE}&q={words}")

    assert page.status_code == 400
    assert "Search for up to 8 words." in page.text


def test_texts_of_people_stay_texts(reader, chat):
    chat.send("joe", "<b>bold</b> <script>alert(1)</script>")

    page = reader.get(f"{PAGE}&q=bold").text

    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert" not in page


def test_only_those_who_may_read_messages_find_any(staff, chat):
    outsider = staff("view_chat", "change_chat", "delete_chat")

    assert outsider.get(f"{PAGE}&q=treasure").status_code == 403
    assert "Words in the messages" not in outsider.get(CHAT).text


def test_a_search_is_logged_as_reading(reader, chat):
    assert "Words in the messages" in reader.get(CHAT).text
    assert not LogEntry.objects.exists()

    reader.get(f"{PAGE}&q=treasure")

    [entry] = LogEntry.objects.all()
    assert entry.change_message == "Read the messages."
    assert "treasure" not in f"{entry.change_message} {entry.object_repr}"
