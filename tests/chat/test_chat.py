"""Chats and inboxes, as a person uses them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from redis import Redis

from components.exceptions import ChatExists, ChatNotFound
from components.services.chat import Chat, EventKind, Inbox, Role
from tests.support.chats import FREE, texts


def test_messages_sent_while_away_are_there_on_return(redis: Redis) -> None:
    chat = Chat.create("joe", members=["jack", "jill"], text="hello", title="Party")
    chat.send("joe", "who brings the cake?", mentions=["jill", "nobody"])

    [news] = Inbox("jill").fetch()

    assert texts(news.messages) == ["created", "hello", "who brings the cake?"]
    assert (news.title, news.role, news.unread, news.mentions, news.members) == (
        "Party",
        Role.MEMBER,
        2,
        1,
        3,
    )
    assert news.messages[-1].mentions == ("jill",)
    assert news.reads == {"joe": 3, "jack": 0, "jill": 0}
    assert [chat.chat_id for chat in Inbox("jill").chats()] == [chat.id]
    assert Inbox("joe").fetch() == []


def test_fetching_changes_nothing_and_acknowledging_does(redis: Redis) -> None:
    chat = Chat.create("joe", members=["jack"], text="hello")
    inbox = Inbox("jack")

    assert inbox.fetch() == inbox.fetch()
    assert inbox.acknowledge({chat.id: 1, "other": 7}) == {chat.id: 1}
    assert texts(inbox.fetch()[0].messages) == ["hello"]
    assert inbox.acknowledge({chat.id: 100}) == {chat.id: 2}
    assert inbox.fetch() == []
    assert chat.acknowledge("jack", 1) == 2


def test_a_joiner_sees_as_much_as_the_chat_shows(redis: Redis) -> None:
    chat = Chat.create("joe", settings=replace(FREE, history=2))
    for number in range(5):
        chat.send("joe", str(number))

    assert chat.add(["jack", "joe"]) == ["jack"]

    assert texts(chat.history("jack").messages) == ["3", "4", "joined"]
    assert chat.news("jack").unread == 0


def test_changes_tell_what_is_new_since_a_position(redis: Redis) -> None:
    chat = Chat.create("joe", members=["jack"], text="hello", settings=FREE)
    inbox = Inbox("jack")
    first = inbox.changes({})
    assert [texts(news.messages) for news in first.chats] == [["created", "hello"]]

    assert inbox.changes(first.positions).chats == []

    chat.send("joe", "news")
    other = Chat.create("jill", members=["jack"])
    second = inbox.changes(first.positions)
    assert {news.chat_id: texts(news.messages) for news in second.chats} == {
        chat.id: ["news"],
        other.id: ["created"],
    }

    chat.leave("jack")
    third = inbox.changes(second.positions)
    assert (third.chats, list(third.gone), list(third.positions)) == ([], [chat.id], [other.id])


def test_a_chat_that_is_created_again_has_the_settings_that_it_is_given_then(redis: Redis) -> None:
    chat = Chat.create("joe", settings=replace(FREE, max_age=100))
    chat.configure(max_age=200, by="joe")
    chat.leave("joe")

    again = Chat.create("jill", id=chat.id, settings=replace(FREE, max_age=100))

    assert again.info().settings.max_age == 100


def test_a_chat_is_created_once(redis: Redis) -> None:
    first = Chat.create("joe", text="hello", id="guild:7", client_id="a")
    again = Chat.create("joe", text="hello", id="guild:7", client_id="a")

    with pytest.raises(ChatExists):
        Chat.create("joe", id="guild:7")
    assert texts(again.history("joe").messages) == ["created", "hello"]
    assert first.id == again.id
    assert not first.send("joe", "other").is_duplicate
    assert first.send("joe", "hello", client_id="a").is_duplicate


def test_a_message_says_to_whom_it_speaks(redis: Redis) -> None:
    two = Chat.create("joe", members=["jack"], settings=FREE)
    some = Chat.create("joe", members=["jack", "jill"], settings=FREE)

    assert two.send("joe", "hello").spoken_to == ("jack",)
    assert two.send("jack", "@joe @jill", mentions=["joe", "jill"], client_id="a").spoken_to == ("joe",)
    assert two.send("jack", "@joe @jill", mentions=["joe", "jill"], client_id="a").spoken_to == ()
    assert some.send("joe", "hello").spoken_to == ()
    assert some.send("joe", "@both", mentions=["jill", "joe", "jack", "ann"]).spoken_to == ("jill", "jack")
    some.kick("jack")
    assert some.send("joe", "only we").spoken_to == ("jill",)
    assert Chat.create("joe").send("joe", "alone").spoken_to == ()


def test_a_person_who_joins_again_sees_what_they_may(redis: Redis) -> None:
    chat = Chat.create("joe", text="secret", settings=replace(FREE, is_open=True, history=0))
    chat.join("jack")
    chat.send("joe", "for jack")
    assert texts(chat.history("jack").messages) == ["joined", "for jack"]

    chat.leave("jack")
    chat.send("joe", "not for jack")
    with pytest.raises(ChatNotFound):
        chat.history("jack")
    assert Inbox("jack").fetch() == Inbox("jack").chats() == []

    chat.join("jack")
    chat.join("jack")
    assert texts(chat.history("jack").messages) == ["joined"]
    assert [news.unread for news in Inbox("jack").chats()] == [0]


def test_after_the_last_owner_the_first_member_is_owner(redis: Redis) -> None:
    chat = Chat.create("joe", members=["jack", "jill"])

    chat.leave("joe")

    assert [(member.user, member.role) for member in chat.members()] == [
        ("jack", "owner"),
        ("jill", "member"),
    ]
    [_created, left, role] = chat.history("jill").messages
    assert left.event
    assert role.event
    assert (left.event.kind, left.event.user) == (EventKind.LEFT, "joe")
    assert (role.event.kind, role.event.user, role.event.detail) == (EventKind.ROLE, "jack", "owner")
