"""A node of a cluster dies: a person's inbox answers what the others can answer, and marks the rest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from components.embedded import EmbeddedServer
from components.exceptions import RedisUnavailable
from components.services.chat import Chat, ChatReader, Inbox
from components.services.chat.keys import ChatKeys, InboxKeys
from components.services.mailboxes import Mailbox, MailboxReader
from components.testing import empty, redis_at
from tests.support.masters import Master, three_masters
from tests.support.proxy import LossyProxy

CHATS = [f"chat:{number}" for number in range(12)]


@pytest.fixture
def nodes(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[list[Master]]:
    with three_masters(tmp_path, request.config.getoption("--redis-server")) as nodes:
        yield nodes


def node_of_chat(nodes: list[Master], chat_id: str) -> Master:
    return next(node for node in nodes if node.has(ChatKeys(chat_id).chat))


def node_of_inbox(nodes: list[Master], person: str) -> Master:
    return next(node for node in nodes if node.has(InboxKeys(person).hints))


class Scene:
    """joe has chats with jill on all nodes, of which one is dead that is not that of his inbox."""

    def __init__(self, nodes: list[Master], joe: str, jill: str) -> None:
        self.inbox, self.jill = Inbox(joe), jill
        for chat_id in CHATS:
            Chat.create(jill, members=[joe], text=f"in {chat_id}", id=chat_id)
        self.since = {each.chat_id: each.position for each in self.inbox.chats()}
        assert self.since.keys() == set(CHATS)
        home = node_of_inbox(nodes, joe)
        homes = {chat_id: node_of_chat(nodes, chat_id) for chat_id in CHATS}
        self.dead = next(node for node in homes.values() if node is not home)
        self.lost = {chat_id for chat_id, node in homes.items() if node is self.dead}
        self.there = set(CHATS) - self.lost
        assert self.there


@pytest.mark.slow
def test_available_results_are_returned_and_the_rest_is_marked(nodes: list[Master]) -> None:
    scene = Scene(nodes, "joe", "jill")
    inbox, since, lost, there = scene.inbox, scene.since, scene.lost, scene.there

    scene.dead.kill()

    for found in (inbox.chats(), inbox.fetch()):
        assert {each.chat_id for each in found} == there
        assert set(found.unavailable) == lost
    changes = inbox.changes(since)
    assert (changes.chats, list(changes.gone), set(changes.unavailable)) == ([], [], lost)
    assert dict(changes.positions) == since
    new = inbox.changes({})
    assert {each.chat_id for each in new.chats} == there
    assert set(new.unavailable) == lost

    with pytest.raises(RedisUnavailable):
        inbox.acknowledge(dict.fromkeys(CHATS, 2))
    assert {each.chat_id: each.unread for each in inbox.chats()} == dict.fromkeys(there, 0)

    # A person is erased as far as that can be, and it is said that it could not be all.
    with pytest.raises(RedisUnavailable):
        inbox.erase()
    [one, *_] = there
    assert [member.user for member in Chat(one).members()] == ["jill"]
    assert set(inbox.chats().unavailable) == lost


def test_a_list_is_asked_for_again_if_its_reply_was_lost(redis_server: EmbeddedServer) -> None:
    with LossyProxy(redis_server) as proxy, empty(redis_server), redis_at(proxy.url):
        Chat.create("jill", members=["joe"], text="hello", id="chat")
        mailbox = Mailbox("joe")
        mailbox.push("jill", "hello")
        asked = {
            "RANGE": [lambda: len(Inbox("joe").chats()), lambda: len(ChatReader().page())],
            "XLEN": [mailbox.depth],
            "HMGET": [lambda: mailbox.missed() + 1, lambda: len(MailboxReader().page())],
            "ZCARD": [lambda: ChatReader().count(), lambda: MailboxReader().count()],
            "HGETALL": [lambda: len(mailbox.blocked()) + 1, lambda: len(Chat("chat").blocked()) + 1],
        }
        for number, (command, calls) in enumerate(asked.items()):
            for call in calls:
                before = proxy.lost
                proxy.lose_replies(to=command)
                assert call() == 1, (number, command)
                assert proxy.lost == before + 1, (command, call)
