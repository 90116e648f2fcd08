"""What owners, moderators and the system do with a chat and its members."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from redis import Redis

from components.exceptions import ChatNotFound, Muted, NotAllowed, TooFast, TooManyMembers
from components.kit.client import get_client
from components.kit.sync_async import at_once
from components.services.autocomplete import RecentContacts
from components.services.chat import (
    Chat,
    ChatReader,
    ChatSettings,
    Event,
    EventKind,
    Inbox,
    Position,
    Role,
    erasure,
)
from components.services.chat.keys import ChatKeys
from tests.support.chats import FREE, let_pass, size_of, stored, texts


@pytest.fixture
def chat(redis: Redis) -> Chat:
    """joe is owner, mod is moderator, jack and jill are members."""
    chat = Chat.create("joe", members=["jack", "jill", "mod"], id="guild:7", settings=FREE)
    chat.set_role("mod", Role.MODERATOR, by="joe")
    return chat


@pytest.mark.parametrize(
    "act",
    [
        lambda chat, by: chat.kick("jill", by=by),
        lambda chat, by: chat.block("jill", by=by),
        lambda chat, by: chat.unblock("mary", by=by),
        lambda chat, by: chat.mute("jill", by=by),
        lambda chat, by: chat.unmute("jill", by=by),
        lambda chat, by: chat.set_role("jill", "moderator", by=by),
        lambda chat, by: chat.rename("Mine", by=by),
        lambda chat, by: chat.configure(max_text=7, by=by),
        lambda chat, by: chat.close(by=by),
        lambda chat, by: chat.reopen(by=by),
        lambda chat, by: chat.add(["mary"], by=by),
    ],
)
def test_members_are_no_owners_and_strangers_learn_nothing(
    chat: Chat, act: Callable[[Chat, str], object]
) -> None:
    before = texts(chat.history("joe").messages)

    with pytest.raises(NotAllowed):
        act(chat, "jack")
    with pytest.raises(ChatNotFound):
        act(chat, "stranger")
    with pytest.raises(ChatNotFound):
        act(Chat("nowhere"), "joe")

    assert texts(chat.history("joe").messages) == before


def test_a_muted_member_reads_and_does_not_write_until_it_ends(chat: Chat, redis: Redis) -> None:
    chat.mute("jack", seconds=60, by="mod")
    with pytest.raises(Muted):
        chat.send("jack", "but")
    until = chat.news("jack").muted_until
    assert until
    event = chat.history("jack", limit=1).messages[0].event
    assert event == Event(EventKind.MUTED, "mod", "jack", until.isoformat())

    members = ChatKeys(chat.id).members
    words = redis.hget(members, "jack").decode().split(" ")
    words[5] = str(int(words[5]) - 61_000)
    redis.hset(members, "jack", " ".join(words))

    assert chat.send("jack", "at last").seq
    assert [member.muted_until for member in chat.members()] == [None] * 4


def test_a_mute_lasts_through_leaving_and_coming_back(chat: Chat) -> None:
    chat.configure(is_open=True)
    chat.mute("jack", seconds=3600, by="mod")
    until = chat.news("jack").muted_until
    assert until
    chat.block("jack")
    chat.unblock("jack")
    assert chat.muted() == {"jack": until}

    chat.add(["mary", "jack"], by="joe")

    with pytest.raises(Muted, match=str(until.year)):
        chat.send("jack", "but")
    assert (chat.news("jack").muted_until, chat.muted()) == (until, {})
    chat.unmute("jack", by="mod")
    chat.leave("jack")
    chat.join("jack")
    assert chat.send("jack", "at last").seq


def test_a_mute_that_is_over_is_not_remembered(chat: Chat, redis: Redis) -> None:
    chat.mute("jack", seconds=60)
    chat.leave("jack")
    redis.zadd(ChatKeys(chat.id).muted, {"jack": 1, "mary": 2})

    chat.add(["jack"])
    chat.leave("jill")

    assert chat.muted() == {}
    assert chat.send("jack", "at last").seq


def test_a_chat_remembers_so_many_who_left_while_they_were_muted(chat: Chat, redis: Redis) -> None:
    mutes = ChatKeys(chat.id).muted
    redis.zadd(mutes, {f"old {number}": 10**14 + number for number in range(9_997)})
    for number, seconds in enumerate([60, None, 10, 90, None]):
        chat.add([f"p{number}"])
        chat.mute(f"p{number}", seconds=seconds)
        chat.leave(f"p{number}")

    assert redis.zcard(mutes) == 10_000
    kept = chat.muted().keys()
    assert {"p1", "p4", "old 0"} <= kept
    assert not {"p2", "p0"} & kept
    chat.delete()
    assert not redis.exists(ChatKeys(chat.id).muted)


def test_settings_change_one_at_a_time(chat: Chat) -> None:
    chat.configure(max_text=3, by="joe")
    chat.configure(max_members=5, slow_mode=60)
    chat.rename("Party", by="mod")

    info = chat.info()
    assert (info.title, info.settings.max_text, info.settings.max_members) == ("Party", 3, 5)
    chat.add(["mary"])
    with pytest.raises(TooManyMembers):
        chat.add(["other"])
    chat.send("jack", "one")
    with pytest.raises(TooFast) as refused:
        chat.send("jack", "two")
    assert 50 < refused.value.retry_after <= 60
    chat.send("mod", "a")
    chat.send("mod", "b")
    with pytest.raises(TypeError):
        chat.configure(no_such=1)


def test_the_control_room_sees_all_chats(redis: Redis, chat: Chat) -> None:
    others = [Chat.create("joe", text="hello").id for _ in range(40)]
    reader = ChatReader()

    pages = [info.id for offset in range(0, 60, 7) for info in reader.page(offset=offset, limit=7)]

    assert reader.count() == 41
    assert sorted(pages) == sorted([chat.id, *others])
    found = reader.find(chat.id)
    assert found
    assert (found.members, found.messages, found.created_by, found.last_at) == (4, 2, "joe", None)
    assert reader.find("nowhere") is reader.find("no id/") is None
    assert texts(reader.messages(others[0]).messages) == ["created", "hello"]
    with pytest.raises(ChatNotFound):
        reader.messages("nowhere")


def test_trimming_takes_all_before_a_seq(chat: Chat) -> None:
    for number in range(5):
        chat.send("joe", str(number))

    assert chat.trim(before=5) == 4
    assert chat.trim(before=5) == 0

    assert texts(chat.history("jack").messages) == list("234")
    assert (chat.news("jack").unread, Inbox("jack").fetch()[0].missed) == (3, 4)


def test_a_deleted_chat_leaves_nothing_but_how_far_it_came(redis: Redis, chat: Chat) -> None:
    for number in range(60):
        chat.send("jack", str(number), mentions=["jill"])
    chat.block("mary")
    chat.delete_message(5)

    last_seq = chat.info().last_seq

    chat.delete()
    chat.delete()

    assert {part.partition("/")[0] for part in stored(redis, chat.id)} <= {"chat", "calls"}
    assert ChatReader().count() == 0
    assert Inbox("jack").fetch() == []
    assert Chat.create("jack", id=chat.id).info().first_seq == last_seq + 1


def test_erasing_a_person_removes_their_messages_everywhere(redis: Redis, chat: Chat) -> None:
    past = Chat.create("jill", members=["jack"], settings=FREE)
    past.send("jack", "secret of the past", mentions=["jill"])
    past.leave("jack")
    for number in range(5):
        chat.send("jack", f"secret {number}", mentions=["jill"])
        chat.send("jill", str(number))
    RecentContacts("jill").touch("jack", label="Jack")
    RecentContacts("jack").touch("joe")

    erased = Inbox("jack").erase()

    assert (erased.chats, erased.messages) == (2, 6)
    assert Inbox("jack").erase().messages == 0
    assert texts(chat.history("jill", after=2).messages) == [*"01234", "left", "erased"]
    assert texts(past.history("jill").messages) == ["created", "left", "erased"]
    assert [news.mentions for news in Inbox("jill").chats()] == [0, 0]
    assert RecentContacts("jill").list() == []
    assert [key for key in redis.keys("*") if b"jack" in key] == []
    for chat_id in (chat.id, past.id):
        assert b"jack" not in redis.hkeys(ChatKeys(chat_id).members)


def test_messages_read_by_all_are_dropped_if_configured(redis: Redis, chat: Chat) -> None:
    chat.configure(drop_read_after=60)
    chat.send("joe", "read by all")
    chat.send("joe", "not by jill")
    let_pass(redis, chat.id, 3600)
    for person in ("joe", "jack", "mod"):
        chat.acknowledge(person, 9)
    let_pass(redis, chat.id, 60)  # it is looked for now and then

    chat.acknowledge("jill", 4)

    assert texts(chat.history("jack").messages) == ["not by jill"]
    assert chat.news("jill").unread == 1


def test_bytes_are_limited_too(redis: Redis) -> None:
    chat = Chat.create("joe", settings=ChatSettings(max_bytes=10_000, rate_limit=0))

    for _ in range(20):
        chat.send("joe", "a" * 1000)

    info = chat.info()
    assert 8_000 < info.bytes <= 10_100
    assert info.messages == 9


def test_after_a_clock_was_ahead_messages_have_the_time_and_are_trimmed_by_their_age(redis: Redis) -> None:
    chat = Chat.create("joe", text="ahead", settings=ChatSettings(max_age=3_600, rate_limit=0))
    keys = ChatKeys(chat.id)
    let_pass(redis, chat.id, -86_400)
    sent_at = chat.send("joe", "first").sent_at
    assert abs(sent_at.timestamp() - redis.time()[0]) < 60
    assert chat.send("joe", "second").sent_at >= sent_at
    redis.persist(keys.messages)
    let_pass(redis, chat.id, 3_601)
    redis.hset(keys.chat, "due_at", sent_at.timestamp() * 1_000 // 1 + 86_400_000)
    chat.send("joe", "last")

    assert [entry[b"b"] for _id, entry in redis.xrange(keys.messages)] == [b"tlast"]


@pytest.mark.parametrize("ahead", [timedelta(days=5_000), timedelta(minutes=3)])
@pytest.mark.parametrize(
    "limits", [{"slow_mode": 60, "rate_limit": 0}, {"rate_limit": 2, "rate_period": 60}], ids=["slow", "rate"]
)
def test_a_clock_of_the_server_that_had_jumped_ahead_silences_nobody(
    redis: Redis, chat: Chat, limits: dict[str, int], ahead: timedelta
) -> None:
    chat.configure(**limits)
    chat.send("jack", "before")
    [key] = redis.keys("*:rate:*jack")
    paid, spoke = (float(word) for word in redis.get(key).split())
    jumped = ahead // timedelta(milliseconds=1)
    redis.set(key, f"{paid + jumped:.3f} {spoke + jumped:.0f}")

    assert chat.send("jack", "again").seq

    if "slow_mode" not in limits:
        chat.send("jack", "twice")
    with pytest.raises(TooFast) as refused:
        chat.send("jack", "at once")
    assert refused.value.retry_after <= 60


def test_all_parts_of_an_erasure_are_reported(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    """The event comes with the first part; a client that syncs between two parts still counts right at the end."""
    chat = Chat.create("joe", members=["jack", "jill"], settings=FREE)
    for number in range(3):
        chat.send("jill", f"secret {number}", mentions=["jack"])
        chat.send("joe", f"{number}", mentions=["jack"])
    monkeypatch.setattr(erasure, "_LOOKED_AT", 2)
    seen: list[tuple[Position, int]] = []
    calls = erasure.ERASE.run
    positions = dict(Inbox("jack").changes({}).positions)

    async def between(*args: object, **options: object) -> object:
        answer = await calls(*args, **options)
        changes = Inbox("jack").changes(positions)
        positions.update(changes.positions)
        seen.extend((positions[chat.id], news.unread) for news in changes.chats)
        return answer

    monkeypatch.setattr(erasure.ERASE, "run", between)
    assert Inbox("jill").erase().messages == 3

    assert texts(chat.history("jack").messages).count("erased") == 1
    assert [unread for _position, unread in seen] == [5, 4, 3]
    assert len({position for position, _unread in seen}) == 3


@pytest.mark.parametrize("has_left", [False, True])
def test_an_erasure_leaves_bytes_and_life_of_a_chat_right(redis: Redis, has_left: bool) -> None:
    chat = Chat.create("joe", members=["jill"], settings=replace(FREE, max_age=1000))
    chat.send("jill", "secret" * 100, mentions=["joe"])
    chat.send("jill", "", data={"key": "secret"})
    if has_left:
        chat.leave("jill")
    let_pass(redis, chat.id, 900)
    Inbox("jill").erase()

    assert chat.info().bytes == size_of(redis, chat.id)
    let_pass(redis, chat.id, 900)
    assert texts(chat.history("joe").messages) == (["erased"] if has_left else ["left", "erased"])
    let_pass(redis, chat.id, 200)
    assert texts(chat.history("joe").messages) == []


def test_an_erasure_may_take_as_many_bytes_as_its_event_brings(redis: Redis) -> None:
    """A difference of nought was written as -0, which Redis refuses: then the rest of the erasure was not done."""
    chats = [Chat.create("joe", members=["jill"], settings=FREE) for _ in range(40)]
    for length, chat in enumerate(chats, 1):
        chat.send("jill", "x" * length)

    erased = Inbox("jill").erase()

    assert (erased.chats, erased.messages) == (40, 40)
    assert all(chat.info().bytes == size_of(redis, chat.id) for chat in chats)


@pytest.mark.parametrize("kept", [10_000, 5])
def test_counts_that_change_since_the_history_lets_go_are_told_as_well(redis: Redis, kept: int) -> None:
    """A client that syncs between a message and what its sender lets go then, or before an administrator trims."""
    chat = Chat.create("joe", members=["jack"], settings=replace(FREE, max_messages=kept))
    for number in range(5):
        chat.send("joe", f"{number}", mentions=["jack"])
    changes = Inbox("jack").changes({})
    before = changes.chats[0].last_seq - 1
    if kept < 10_000:
        redis.hset(ChatKeys(chat.id).chat, "max_messages", 2)
        at_once(chat._trim_all(get_client()))
    else:
        assert chat.trim(before=before) == before - 1

    [news] = Inbox("jack").changes(changes.positions).chats

    assert (changes.chats[0].unread, news.unread, news.mentions) == (5, 2, 2)
    assert Inbox("jack").changes({chat.id: news.position}).chats == []
