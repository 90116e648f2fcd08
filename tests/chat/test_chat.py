"""
Chats and inboxes, as a person uses them; edits of messages, and reactions.

The numbers are those of the defects of the book's listings (chapter 6.5), which this chat does not have. What calls
in any order must keep is in test_chat_model.py.
"""

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import pytest
from redis import Redis

from components.exceptions import (
    ChatExists,
    ChatNotFound,
    ClientIdReused,
    InvalidMessage,
    MessageNotFound,
    NotAMember,
    TooFast,
)
from components.kit.sync_async import at_once
from components.services.chat import Chat, ChatReader, ChatSettings, Inbox, Quote, Role, inbox_index
from components.services.chat.emoji import FORM
from components.services.chat.inbox_index import YOUNG, write_hints
from components.services.chat.keys import ChatKeys, InboxKeys
from components.services.chat.page.texts import REACTIONS
from tests.support.chats import FREE, let_pass, size_of, stored, texts


def test_messages_sent_while_away_are_there_on_return(redis: Redis) -> None:
    chat = Chat.create("joe", members=["jack", "jill"], text="hello", title="Party")
    chat.send("joe", "who brings the cake?", mentions=["jill", "nobody"])

    [news] = Inbox("jill").fetch()

    assert texts(news.messages) == ["created", "hello", "who brings the cake?"]
    assert (news.title, news.role, news.members) == ("Party", Role.MEMBER, 3)
    assert (news.unread, news.mentions, news.messages[-1].mentions) == (2, 1, ("jill",))
    assert news.reads == {"joe": 3, "jack": 0, "jill": 0}
    inbox = Inbox("jill")
    assert [chat.chat_id for chat in inbox.chats()] == [chat.id]
    assert inbox.acknowledge({chat.id: 2, "other": 7}) == {chat.id: 2}
    assert texts(inbox.fetch()[0].messages) == ["who brings the cake?"]
    assert inbox.acknowledge({chat.id: 100}) == {chat.id: 3}
    assert inbox.fetch() == []


def test_a_chat_is_created_once(redis: Redis) -> None:
    first = Chat.create("joe", text="hello", id="guild:7", client_id="a")
    again = Chat.create("joe", text="hello", id="guild:7", client_id="a")

    with pytest.raises(ChatExists):
        Chat.create("joe", members=["jill"], id="guild:7")
    assert not redis.exists(InboxKeys("jill").hints)
    assert texts(again.history("joe").messages) == ["created", "hello"]
    assert first.id == again.id
    assert not first.send("joe", "other").is_duplicate
    assert first.send("joe", "hello", client_id="a").is_duplicate


@pytest.mark.parametrize(
    "other",
    [{"text": "hi"}, {"data": {}}, {"mentions": ["jack", "joe"]}, {"mentions": []}, {"reply_to": 1}],
)
def test_a_client_id_stands_for_one_content(redis: Redis, other: dict[str, Any]) -> None:
    chat = Chat.create("joe", members=["jack", "jill"], settings=FREE)
    redis.hincrby(ChatKeys(chat.id).chat, "at", 1)  # so that they were members before the message
    asked = {"text": "hello", "mentions": ["jack", "ann", "jill"], "client_id": "a"}
    sent = chat.send("jill", **asked)
    chat.add(["ann"])  # who was no member when they were mentioned

    chat.edit("jill", sent.seq, "bye")
    with pytest.raises(ClientIdReused):
        chat.send("jill", **asked | other)
    again = chat.send("jill", **asked)

    assert (again.seq, again.is_duplicate) == (sent.seq, True)
    assert texts(chat.history("joe").messages) == ["created", "bye", "joined"]


@pytest.mark.parametrize(
    "other",
    [{"text": "hi"}, {"title": "Hall"}, {"members": ["ann"]}, {"settings": ChatSettings(is_open=True)}],
)
def test_a_chat_is_created_again_only_as_it_was(redis: Redis, other: dict[str, Any]) -> None:
    asked = {"text": "hello", "members": ["jack", "jill"], "id": "guild:7", "client_id": "a"}
    chat = Chat.create("joe", **asked)

    with pytest.raises(ClientIdReused):
        Chat.create("joe", **asked | other)

    chat.rename("Guild")
    Chat.create("joe", **asked | {"members": ["jill", "jack"]})
    redis.hdel(ChatKeys("guild:7").chat, "content")  # as an earlier release has stored it
    Chat.create("joe", **asked | other)
    assert texts(chat.history("joe").messages) == ["created", "hello", "renamed"]


@pytest.mark.parametrize("is_current", [True, False])
def test_a_repeated_call_does_not_create_a_chat_again_that_has_ended(redis: Redis, is_current: bool) -> None:
    asked = {"text": "hello", "members": ["jack"], "id": "guild:7", "client_id": "a"}
    chat = Chat.create("joe", **asked, by="joe")
    if not is_current:
        redis.hdel(ChatKeys("guild:7").chat, "content")  # as an earlier release has stored it
    for person in ("jack", "joe"):
        chat.leave(person)
    redis.delete(InboxKeys("joe").hints)

    assert Chat.create("joe", **asked).id == "guild:7"
    with pytest.raises(ChatNotFound):
        chat.info()
    assert not redis.exists(InboxKeys("joe").hints)
    with pytest.raises(ClientIdReused) if is_current else nullcontext():
        Chat.create("joe", **asked | {"text": "another"})
    assert Chat.create("joe", **asked | {"client_id": "b"}).info().first_seq > 2


def test_a_deleted_chat_leaves_no_hints_and_few_past_chats_stay(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    def past() -> set[str]:
        return {each.decode() for each in redis.zrange(InboxKeys("jack").past, 0, -1)}

    make("jack").delete()
    assert not redis.exists(InboxKeys("jack").hints, InboxKeys("joe").hints)

    monkeypatch.setattr(inbox_index, "MANY_PAST", 1)
    spoken, reacted, trimmed, *silent = (make("jack") for _ in range(9))
    spoken.send("jack", "hello")
    reacted.react("jack", 2, THUMB)
    trimmed.send("jack", "hello")
    trimmed.trim(before=4)
    for chat in (*silent, trimmed):
        chat.send("joe", "hello")
        chat.leave("jack")
    assert past() == {trimmed.id}
    for chat in (spoken, reacted):
        chat.leave("jack")
    trimmed.send("joe", "gone")
    at_once(inbox_index._prune_past(redis, "jack"))

    assert past() == {spoken.id, reacted.id}
    assert not redis.exists(InboxKeys("jack").hints)


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
    assert some.send("jill", "what?", reply_to=2).spoken_to == ("joe",)
    assert Chat.create("joe").send("joe", "alone").spoken_to == ()


@pytest.mark.parametrize(
    ("where", "limit", "seqs", "has_more", "has_newer"),
    [
        ({}, 3, [18, 19, 20], True, False),
        ({"before": 18}, 3, [15, 16, 17], True, False),
        ({"before": 4}, 3, [1, 2, 3], False, False),
        ({"after": 8}, 1, [9], True, False),
        ({"after": 18}, 2, [19, 20], False, False),
        ({"around": 10}, 5, [8, 9, 10, 11, 12], True, True),
        ({"around": 10}, 4, [9, 10, 11, 12], True, True),
        ({"around": 1}, 6, [1, 2, 3, 4], False, True),
        ({"around": 20}, 6, [18, 19, 20], True, False),
        ({"around": 10}, 50, list(range(1, 21)), False, False),
        ({"around": 10}, 1, [10, 11], True, True),
        ({"around": 99}, 4, [19, 20], True, False),
        ({"around": 0}, 4, [1, 2], False, True),
    ],
)
def test_a_page_of_the_history(
    redis: Redis, where: dict[str, int], limit: int, seqs: list[int], has_more: bool, has_newer: bool
) -> None:
    chat = Chat.create("joe", settings=FREE)
    for number in range(19):
        chat.send("joe", f"text {number}")

    page = chat.history("joe", **where, limit=limit)

    assert [message.seq for message in page.messages] == seqs
    assert (page.has_more, page.has_newer, page.oldest) == (has_more, has_newer, 1)


def test_the_history_around_a_message_begins_where_a_newcomer_may_look(redis: Redis) -> None:
    chat = Chat.create("joe", text="secret", settings=ChatSettings(history=0, is_open=True, rate_limit=0))
    chat.join("jack")
    chat.send("joe", "welcome")

    page = chat.history("jack", around=2)

    assert [message.seq for message in page.messages] == [3, 4]
    assert (page.has_more, page.oldest) == (False, 3)
    with pytest.raises(ChatNotFound):
        chat.history("jill", around=2)


def test_a_damaged_reply_is_shown_as_a_message(redis: Redis) -> None:
    chat = Chat.create("joe", text="hello", settings=FREE)
    chat.send("joe", "again", reply_to=2)
    stream = ChatKeys(chat.id).messages
    [(_id, fields)] = redis.xrange(stream, "3", "3")
    redis.xadd(stream, {**fields, b"r": b"nonsense"}, id="4-0")
    redis.hset(ChatKeys(chat.id).chat, "seq", 4)

    replies = [(message.text, message.reply_to) for message in chat.history("joe").messages[-2:]]
    assert replies == [("again", Quote(2, "joe", "hello")), ("again", None)]


def make(*members: str) -> Chat:
    return Chat.create("joe", members=members, text="hello", settings=FREE)


def test_5_a_former_member_reads_no_more_whatever_their_inbox_says(redis: Redis) -> None:
    chat = make("jack")
    chat.leave("jack")
    redis.zadd(InboxKeys("jack").hints, {chat.id: 1})

    assert Inbox("jack").fetch() == Inbox("jack").chats() == []


def test_9_and_10_positions_are_exact_whatever_is_said(redis: Redis) -> None:
    chat = make("jack")
    redis.hset(ChatKeys(chat.id).chat, "seq", 10**13)

    sent = chat.send("joe", "a", data=[])

    assert sent.seq == 10**13 + 1
    assert [message.seq for message in chat.history("jack", after=10**13 - 1).messages] == [10**13 + 1]
    assert chat.acknowledge("jack", 10**13 + 1) == 10**13 + 1


def test_15_a_send_is_one_round_trip(redis: Redis) -> None:
    chat = make("jack")
    chat.send("joe", "known to the server now")
    calls = redis.info("commandstats")["cmdstat_evalsha"]["calls"]

    chat.send("joe", "one", mentions=["jack"])

    assert redis.info("commandstats")["cmdstat_evalsha"]["calls"] == calls + 1


def test_21_two_who_leave_at_once_leave_nothing_behind(redis: Redis) -> None:
    for _ in range(10):
        chat = make("jack", "jill")
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(chat.leave, ["joe", "jack", "jill"]))
        assert chat.id.encode() not in redis.zrange(ChatKeys(chat.id).names, 0, -1)
        with pytest.raises(ChatNotFound):
            chat.members()


def test_22_what_a_crash_leaves_between_inbox_and_chat_is_repaired(redis: Redis) -> None:
    chat = make("jack")
    at_once(write_hints(redis, chat.id, ["mary"]))  # and the one who lets her in dies
    assert Inbox("mary").fetch() == []
    hints = InboxKeys("mary").hints
    assert redis.exists(hints)

    redis.zincrby(hints, -YOUNG - 1, chat.id)

    assert Inbox("mary").fetch() == []
    assert not redis.exists(hints)
    with pytest.raises(NotAMember):
        chat.kick("mary")


THUMB, HEART = "👍", "❤️"


@pytest.fixture
def chat(redis: Redis) -> Chat:
    return Chat.create("joe", members=["jack", "jill"], text="hello", settings=FREE)


def test_an_edit_reaches_those_who_have_the_message_and_those_who_were_away(chat: Chat) -> None:
    had = {chat.id: chat.news("jack").position}

    edited_at = chat.edit("joe", 2, "hello again")

    message = chat.message("jack", 2)
    assert (message.text, message.edited_at) == ("hello again", edited_at)
    assert message.sent_at <= edited_at
    [again] = Inbox("jack").changes(had).chats
    assert (again.changed, again.last_message) == ([message], message)
    assert Inbox("jack").changes({chat.id: again.position}).chats == []
    [news] = Inbox("jill").fetch()
    assert (news.messages[1:], news.changed) == ([message], [])
    assert ChatReader().messages(chat.id).messages[1] == message


def test_edits_and_reactions_count_towards_the_rate_limit_but_not_towards_the_slow_mode(redis: Redis) -> None:
    settings = ChatSettings(rate_limit=3, rate_period=600, slow_mode=100)
    chat = Chat.create("joe", members=["jack"], settings=settings)
    chat.send("jack", "one")

    chat.edit("jack", 2, "two")
    chat.edit("jack", 2, "two")  # the same again is free
    chat.react("jack", 2, THUMB)

    for act in (lambda: chat.edit("jack", 2, "four"), lambda: chat.react("jack", 2, THUMB, is_on=False)):
        with pytest.raises(TooFast):
            act()
    chat.configure(rate_limit=0)
    chat.edit("jack", 2, "five")
    with pytest.raises(TooFast) as slow:
        chat.send("jack", "still slow")
    assert 0 < slow.value.retry_after <= 100


@pytest.mark.parametrize(
    "act",
    [
        lambda chat: chat.trim(before=3),
        lambda chat: chat.delete_message(2),
        lambda chat: Inbox("joe").erase(),
        lambda chat: chat.delete(),
    ],
    ids=["trim", "delete", "erase", "end"],
)
def test_what_was_changed_goes_with_the_message(redis: Redis, chat: Chat, act: Any) -> None:
    size = chat.info().bytes
    chat.edit("joe", 2, "a longer text")
    assert chat.info().bytes > size

    act(chat)

    assert not {"altered", "changes"} & set(stored(redis, chat.id))
    if found := ChatReader().find(chat.id):
        assert found.bytes == size_of(redis, chat.id)


def test_what_was_changed_expires_with_the_history(redis: Redis) -> None:
    chat = Chat.create("joe", text="hello", settings=ChatSettings(max_age=3600, rate_limit=0))
    chat.edit("joe", 2, "hello again")
    keys = ChatKeys(chat.id)

    assert all(0 < redis.pttl(key) <= 3_600_000 for key in (keys.altered, keys.changes))
    chat.configure(max_age=None)
    assert {redis.pttl(key) for key in (keys.altered, keys.changes)} == {-1}
    chat.configure(max_age=60)
    let_pass(redis, chat.id, 61)
    with pytest.raises(MessageNotFound):
        chat.edit("joe", 2, "too late")


def test_a_chat_of_the_limit_of_bytes_makes_room_for_an_edit(redis: Redis) -> None:
    chat = Chat.create("joe", text="x" * 400, settings=ChatSettings(max_bytes=1_000, rate_limit=0))
    chat.send("joe", "y" * 400)

    chat.edit("joe", 3, "z" * 500)

    assert texts(chat.history("joe").messages) == ["z" * 500]
    assert chat.info().bytes < 1_010


@pytest.mark.parametrize("value", [b"", b"nonsense", b"3:abc", b"5:12345", b"1:10:9:x", b"2:990:2:zz"])
def test_damaged_alterations_make_a_placeholder_and_no_error(redis: Redis, chat: Chat, value: bytes) -> None:
    chat.edit("joe", 2, "hello again")
    redis.hset(ChatKeys(chat.id).altered, "2", value)

    message = chat.message("jack", 2)

    assert message.is_unreadable == bool(value)
    assert len(Inbox("jack").fetch()[0].messages) == 2
    chat.edit("joe", 2, "mended")
    assert chat.message("jack", 2).text == "mended"


def reactions(chat: Chat) -> dict[str, list[str]]:
    return {emoji: list(who) for emoji, who in chat.message("joe", 2).reactions.items()}


@pytest.mark.parametrize(
    "emoji",
    [
        *REACTIONS, "👍🏽", "👩\u200d👩\u200d👧\u200d👦", "🇩🇪", "✅",
        "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
        "1️⃣", "#️⃣", "‼️", "™️", "㊗️", "▶️", "↔️", "\u2139\ufe0f", "©️", "Ⓜ️", "🧑🏻\u200d🤝\u200d🧑🏿",
        "🧑🏻\u200d🤝\u200d🧑🏻", "🏽", "👁️\u200d🗨️",
    ],
    ids=lambda each: each.encode("unicode_escape").decode(),
)  # fmt: skip
def test_emojis_are_reactions(chat: Chat, emoji: str) -> None:
    chat.react("jack", 2, emoji)
    chat.react("jill", 2, emoji.replace("\ufe0f", ""))
    assert reactions(chat) == {emoji: ["jack", "jill"]}
    assert re.fullmatch(FORM, emoji)

    chat.react("jack", 2, emoji.replace("\ufe0f", ""), is_on=False)

    assert reactions(chat) == {emoji: ["jill"]}


def test_reactions_of_earlier_releases_are_one_kind_and_can_be_removed(redis: Redis, chat: Chat) -> None:
    chat.react("jill", 2, HEART)
    stored = redis.hget(ChatKeys(chat.id).altered, "2")
    old = [part for emoji in ("❤", HEART, "👍👍") for part in (emoji, "jack")]
    packed = b"".join(b"%d:%b" % (len(part.encode()), part.encode()) for part in old)
    redis.hset(ChatKeys(chat.id).altered, "2", stored + packed)
    assert reactions(chat) == {HEART: ["jill", "jack"], "👍👍": ["jack"]}

    chat.react("jack", 2, HEART, is_on=False)
    chat.react("jack", 2, "👍👍", is_on=False)

    assert reactions(chat) == {HEART: ["jill"]}


def test_other_texts_are_none(chat: Chat) -> None:
    no_emojis: list[Any] = [
        *"a1 <7🇩\u202e\ufe0f\ud83d",
        "",
        "+1",
        "👍a",
        "👍\u202e",
        "👍" * 9,
        "👍\u200d",
        "👍\ufe0f",
    ]
    no_emojis += ["❤\ufe0e", "❤️❤️", "😀👍", "🇩🇩", "🏴\U000e0067", "👩\u200d🐈", "a🏽", "😀🏽", "1\u20e3\u20e3"]
    for emoji in [*no_emojis, None, 7, b"x"]:
        with pytest.raises(InvalidMessage):
            chat.react("jack", 2, emoji)

    assert reactions(chat) == {}


def test_a_message_has_no_more_reactions_than_the_chat_allows(chat: Chat) -> None:
    chat.configure(max_reactions=2)
    chat.react("joe", 2, THUMB)
    chat.react("jack", 2, THUMB)

    with pytest.raises(InvalidMessage, match="too many reactions"):
        chat.react("jack", 2, HEART)
    chat.react("jack", 2, THUMB, is_on=False)
    chat.react("jack", 2, HEART)

    assert reactions(chat) == {THUMB: ["joe"], HEART: ["jack"]}
    chat.configure(max_reactions=0)
    chat.react("joe", 2, THUMB, is_on=False)
    with pytest.raises(InvalidMessage):
        chat.react("joe", 2, THUMB)


def test_a_message_has_twenty_different_reactions_at_most(chat: Chat) -> None:
    for number in range(20):
        chat.react("jack", 2, chr(0x1F600 + number))

    with pytest.raises(InvalidMessage, match="20 different"):
        chat.react("joe", 2, THUMB)
    chat.react("joe", 2, chr(0x1F600))

    assert len(reactions(chat)) == 20
