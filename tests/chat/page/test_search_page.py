"""The search in the history of a chat, as a page."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from pytest_django.asserts import assertContains, assertNotContains

from components.services.chat import Chat
from tests.support.chats import FREE


@pytest.fixture
def joe(db, redis):
    return User.objects.create_user("joe")


@pytest.fixture
def chat(joe):
    return Chat.create(str(joe.pk), title="Keepers", text="Who has the **Schlüssel**, <b>?", settings=FREE)


def test_messages_are_found_and_linked_to(joe, chat, client):
    client.force_login(joe)
    address = f"/chat/{chat.id}/search/"
    assertContains(client.get(f"/chat/{chat.id}/"), f'href="{address}" aria-label="Search in this chat"')
    assertContains(client.get(address), '<input id="chat-words" type="search" name="q" value=""')

    shown = client.get(address, {"q": "schl"})

    assertContains(shown, "Who has the <mark>Schlüssel</mark>, &lt;b&gt;?")
    assertContains(shown, f'href="/chat/{chat.id}/?message=2#message-2"')
    assertContains(shown, "joe")
    assertNotContains(shown, "Look further back")
    assertContains(client.get(address, {"q": "gold"}), "No message has these words.")


def test_a_long_history_is_searched_in_parts(joe, chat, client, monkeypatch):
    for number in range(30):
        chat.send(str(joe.pk), f"key {number}")
    client.force_login(joe)
    address = f"/chat/{chat.id}/search/"

    first = client.get(address, {"q": "key"})
    assertContains(first, "<li>", 20 + 1)  # and the chat in the list
    assertContains(first, f'href="?q=key&amp;before={first.context["next"]}">Look further back')
    rest = client.get(address, {"q": "key", "before": first.context["next"]})
    assertContains(rest, "key</mark> 9")
    assertNotContains(rest, "Look further back")
    monkeypatch.setattr("components.services.chat.chat.SEARCHED", 1)
    for _ in range(210):
        chat.send(str(joe.pk), "nothing")
    assertContains(client.get(address, {"q": "key"}), "Older ones have not been searched yet.")


@pytest.mark.parametrize("words", ["a b c d e f g h i", "\u200b", "/", "x" * 300])
def test_impossible_words_are_an_error(joe, chat, client, words):
    client.force_login(joe)

    shown = client.get(f"/chat/{chat.id}/search/", {"q": words})

    assertContains(shown, 'aria-invalid="true"', status_code=422)


def test_only_members_search(joe, chat, client):
    assert client.get(f"/chat/{chat.id}/search/").status_code == 302
    client.force_login(User.objects.create_user("jack"))
    assert client.get(f"/chat/{chat.id}/search/?q=key").status_code == 404
    client.force_login(joe)
    assert client.post(f"/chat/{chat.id}/search/", {"q": "key"}).status_code == 405
