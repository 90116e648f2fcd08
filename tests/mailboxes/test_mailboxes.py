"""Mailboxes: nothing is lost by pulling, nothing stored twice, and the sender sees what became of his message."""

import asyncio
import math
import re
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from redis import Redis

from components.exceptions import ClientIdReused, InvalidMessage, InvalidName, InvalidValue, MessageNotFound
from components.kit.decoding import UNREADABLE
from components.kit.pubsub import channel
from components.services.mailboxes import Fate, Mail, Mailbox, MailboxReader, Mails
from components.services.mailboxes.keys import MailboxKeys
from tests.support.snapshots import snapshot
from tests.support.waiting import eventually


@pytest.fixture
def mailbox(redis: Redis) -> Mailbox:
    return Mailbox("jack")


def fill(mailbox: Mailbox, *texts: str, sender: str = "jill") -> list[int]:
    return [mailbox.push(sender, text).id for text in texts]


def test_messages_come_in_the_order_in_which_they_were_pushed(mailbox: Mailbox) -> None:
    fill(mailbox, *map(str, range(9)))
    fill(mailbox, "last", "more", sender="joe")

    mails = mailbox.pull()

    assert [(mail.sender, mail.text) for mail in mails[7:]] == [("jill", "7"), ("jill", "8"), ("joe", "last")]
    assert all(abs(datetime.now(UTC) - mail.sent_at) < timedelta(minutes=1) for mail in mails)
    assert texts(mailbox.peek(2, newest=True)) == ["last", "more"]
    info = mailbox.info()
    assert (info.name, info.handed_out, info.limit) == ("jack", 10, 1_000)
    assert (info.oldest_at, 100 < info.bytes < 10_000) == (mails[0].sent_at, True)


def test_a_message_has_a_text_or_data_or_both(mailbox: Mailbox) -> None:
    picture = {"kind": "picture", "url": "https://example.com/a.png", "sizes": [], "width": 2**60, "alt": "é"}
    mailbox.push("jill", "look", data=picture)
    mailbox.push("jill", data=[])
    mailbox.push("jill", '["no data"]')

    mails = mailbox.pull()

    assert [(mail.text, mail.data) for mail in mails] == [("look", picture), ("", []), ('["no data"]', None)]


def test_a_push_is_known_for_a_day_even_if_its_message_has_gone(mailbox: Mailbox, redis: Redis) -> None:
    pushed = mailbox.push("jill", "one", client_id="a")
    mailbox.acknowledge(mailbox.pull()[0].id)
    tomorrow(redis, "jack")

    again = mailbox.push("jill", "one", client_id="a")

    assert (again.id, again.is_duplicate) == (pushed.id, True)
    assert mailbox.depth() == 0
    [key] = redis.keys("*:sent:*")
    redis.rename(key, f"{key.decode().rpartition(':')[0]}:{redis.time()[0] // 86_400 + 1}")
    assert mailbox.push("jill", "one", client_id="a").id == pushed.id  # the clock was ahead, and came back


@pytest.mark.parametrize("other", [{"text": "two"}, {"data": {}}])
def test_a_client_id_stands_for_one_content(mailbox: Mailbox, redis: Redis, other: dict[str, Any]) -> None:
    asked = {"text": "one", "client_id": "a"}
    pushed = mailbox.push("jill", **asked)
    mailbox.clear()

    with pytest.raises(ClientIdReused):
        mailbox.push("jill", **asked | other)
    assert mailbox.push("jill", **asked).id == pushed.id

    [(part, key, record)] = [
        (part, key, record)
        for part in redis.scan_iter("*:sent:*")
        for key, record in redis.hgetall(part).items()
        if b"/" not in key
    ]
    redis.hset(part, key, re.sub(rb" =\w+", b"", record))  # as an earlier release has stored it
    assert mailbox.push("jill", **asked | other).id == pushed.id


def test_a_sender_and_a_client_id_do_not_run_together(mailbox: Mailbox) -> None:
    assert not mailbox.push("a", "one", client_id="bc").is_duplicate
    assert not mailbox.push("ab", "one", client_id="c").is_duplicate
    assert not mailbox.push("1:a", "one", client_id="bc").is_duplicate


def test_a_smaller_limit_drops_more(redis: Redis) -> None:
    ids = fill(Mailbox("jack"), "one", "two", "three")

    pushed = Mailbox("jack", limit=2, when_full="drop_oldest").push("jill", "four")

    assert pushed.dropped == tuple(ids[:2])
    assert texts(Mailbox("jack").pull()) == ["three", "four"]


def test_only_the_named_sender_learns_the_fate(mailbox: Mailbox, redis: Redis) -> None:
    [message] = fill(mailbox, "one")
    assert mailbox.status(message).pulled_at is None

    def fate() -> Fate:
        with pytest.raises(MessageNotFound, match="from 'joe'"):
            mailbox.status(message, sender="joe")
        return mailbox.status(message, sender="jill").fate

    assert fate() is Fate.WAITING
    mailbox.pull()
    assert fate() is Fate.HANDED_OUT
    mailbox.acknowledge(message)
    assert fate() is Fate.ACKNOWLEDGED
    assert mailbox.status(message).pulled_at == mailbox.info().pulled_at is not None
    tomorrow(redis, "jack")
    assert fate() is Fate.ACKNOWLEDGED
    tomorrow(redis, "jack")  # from when on nobody knows whose it was
    with pytest.raises(MessageNotFound):
        mailbox.status(message, sender="jill")
    assert mailbox.status(message).fate is Fate.ACKNOWLEDGED


def test_the_fate_of_what_never_was_is_not_found(mailbox: Mailbox) -> None:
    with pytest.raises(MessageNotFound):
        mailbox.status(1)
    first, last = fill(mailbox, "one", "two")

    for message in (0, first - 1, last + 1, 2**53 - 1):
        with pytest.raises(MessageNotFound, match=f"no message {message}"):
            mailbox.status(message)


def test_messages_dropped_long_ago_are_not_called_acknowledged(mailbox: Mailbox, redis: Redis) -> None:
    first, second, third = fill(mailbox, "one", "two", "three")
    acknowledged = mailbox.pull()[0].id
    mailbox.acknowledge(acknowledged)
    mailbox.clear()
    [later] = fill(mailbox, "four")
    mailbox.acknowledge(mailbox.pull()[0].id)
    dropped = MailboxKeys("jack").dropped

    assert mailbox.status(first).fate is Fate.ACKNOWLEDGED
    redis.zrem(dropped, second)
    for forgotten in (first, second):  # either may have been the one that is not remembered
        with pytest.raises(MessageNotFound):
            mailbox.status(forgotten)
    assert mailbox.status(third).fate is Fate.DROPPED
    redis.delete(dropped)
    with pytest.raises(MessageNotFound):
        mailbox.status(third)
    assert mailbox.status(later).fate is Fate.ACKNOWLEDGED


def test_an_erased_mailbox_leaves_nothing_and_its_ids_stay_used(mailbox: Mailbox, redis: Redis) -> None:
    Mailbox("jack", limit=1, when_full="drop_oldest").push("jill", "one")
    [old] = Mailbox("jack", limit=1, when_full="drop_oldest").push("jill", "two").dropped
    mailbox.pull()
    mailbox.block("joe")
    redis.hset(mailbox._keys.sent + f":{redis.time()[0] // 86_400 + 1}", "of a clock that was ahead", "")

    mailbox.erase()

    assert redis.dbsize() == 0
    assert fill(mailbox, "three")[0] > old + 1


def test_a_message_of_a_newer_release_stays_until_it_is_acknowledged(mailbox: Mailbox, redis: Redis) -> None:
    fill(mailbox, "one")
    stream = MailboxKeys("jack").messages
    redis.xadd(stream, {"from": "jill", "at": 1, "body": "znew"}, id=f"{2**52}-0")

    first, newer = mailbox.pull()

    assert (first.text, first.is_unreadable) == ("one", False)
    assert (newer.sender, newer.text, newer.data, newer.is_unreadable) == ("jill", UNREADABLE, None, True)
    assert mailbox.depth() == 2


def test_a_repeated_pull_acknowledges_nothing_of_what_the_first_one_handed_out(mailbox: Mailbox) -> None:
    ids = [mailbox.push("joe", str(number)).id for number in range(10)]
    [_, last] = mailbox.pull(2, newest=True)

    for _ in range(3):
        assert [mail.id for mail in mailbox.pull(8, after=last.id)] == ids[:8]

    assert mailbox.depth() == 8
    assert mailbox.acknowledge(ids[7]) == 8


NAMES = [f"person:{number}" for number in range(70)]


@pytest.fixture
def reader(redis: Redis) -> MailboxReader:
    for name in NAMES:
        Mailbox(name).push("jill", "one")
    return MailboxReader()


def test_all_are_listed_once_whatever_the_pages(reader: MailboxReader) -> None:
    assert reader.count() == 70
    for size in (7, 100):
        pages = [reader.page(offset=offset, limit=size) for offset in range(0, 70, size)]
        assert sorted(info.name for page in pages for info in page) == sorted(NAMES)
    assert reader.page(offset=70) == reader.page(limit=0) == []
    page = reader.page(limit=20)
    assert [info.name for info in page] == sorted(info.name for info in page)
    assert page == [Mailbox(info.name).info() for info in page]
    assert reader.find("person:7") == Mailbox("person:7").info()
    assert reader.find("person:71") is reader.find("") is None


def test_a_reader_who_pulls_has_a_mailbox_and_one_who_looks_has_none(mailbox: Mailbox, redis: Redis) -> None:
    mailbox.info()
    mailbox.peek()
    mailbox.acknowledge(1)
    assert MailboxReader().find("jack") is None
    assert (MailboxReader().count(), redis.dbsize()) == (0, 0)

    mailbox.pull()

    assert [info.name for info in MailboxReader().page()] == ["jack"]
    assert MailboxReader().find("jack") is not None


def test_messages_are_read_by_page_and_not_handed_out(redis: Redis) -> None:
    for text in "abcde":
        Mailbox("jack").push("jill", text)
    reader = MailboxReader()

    first = reader.messages("jack", limit=3)
    second = reader.messages("jack", first=first[-1].id + 1, limit=3)

    assert (texts(first), texts(second)) == (list("abc"), list("de"))
    assert Mailbox("jack").info().handed_out == 0


# Waiting, with threads and with coroutines


def listeners(redis: Redis, name: str) -> int:
    [(_, count)] = redis.pubsub_numsub(channel("mailbox", name))
    return int(count)


@pytest.mark.parametrize("is_erased", [False, True])
def test_mail_ends_the_wait_of_a_thread(mailbox: Mailbox, redis: Redis, is_erased: bool) -> None:
    """What is left of the stream after an acknowledgement or an erasure does not."""
    mailbox.push("jill", "one")
    [mail] = mailbox.pull()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(mailbox.pull, after=mail.id, wait=60)
        assert eventually(lambda: redis.info("clients")["blocked_clients"])
        if is_erased:
            mailbox.erase()
        mailbox.push("jill", "two")

        [mail] = waiting.result(20)
        assert (mail.text, mail.is_again) == ("two", False)


def test_patience_ends_and_mail_that_is_there_is_not_waited_for(mailbox: Mailbox) -> None:
    assert mailbox.pull(wait=0.02) == asyncio.run(mailbox.apull(wait=0.02)) == []
    mailbox.push("jill", "one")

    assert texts(mailbox.pull(wait=1e9)) == ["one"]
    assert texts(asyncio.run(mailbox.apull(wait=1e9))) == ["one"]


def test_coroutines_wait_for_news_on_one_connection(redis: Redis) -> None:
    names = [f"person:{number}" for number in range(20)]
    redis.config_resetstat()

    async def scene() -> list[Mails]:
        async with asyncio.timeout(20):
            waiting = [asyncio.ensure_future(Mailbox(name).apull(wait=60)) for name in names]
            while not all([await asyncio.to_thread(listeners, redis, name) for name in names]):
                await asyncio.sleep(0.005)
            subscribed = [client for client in redis.client_list() if int(client["sub"]) > 0]
            assert len(subscribed) == 1
            for name in names:
                await Mailbox(name).apush("jill", name)
            return await asyncio.gather(*waiting)

    assert [texts(mails) for mails in asyncio.run(scene())] == [[name] for name in names]
    assert redis.info("commandstats")["cmdstat_evalsha"]["calls"] <= 5 * len(names)  # nobody asks on and on


def test_mail_after_the_last_look_is_not_missed(mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is pushed between the look that finds nothing and the waiting."""
    look = mailbox._pull

    async def look_and_push(*asked: object) -> Mails:
        mails = await look(*asked)  # type: ignore[arg-type]
        if not mails:
            monkeypatch.setattr(mailbox, "_pull", look)
            await mailbox.apush("jill", "one")
        return mails

    monkeypatch.setattr(mailbox, "_pull", look_and_push)

    async def scene() -> Mails:
        async with asyncio.timeout(20):
            return await mailbox.apull(wait=1e9)

    assert texts(asyncio.run(scene())) == ["one"]


BAD_NAMES: list[Any] = ["", "x" * 501, b"jack", 7, "\ud800"]
COUNTS: list[Any] = [0, -1, 1.0, math.nan, True, "3", 100_001]
IDS: list[Any] = [-1, 1.0, True, "1", 2**53, [1]]
WAITS: list[Any] = [-0.1, math.nan, math.inf, True, "2", None]
TEXTS: list[Any] = [
    "",
    "\u3164 \u2800\u200d",
    " \n\t\u2003",
    "x" * 101,
    "a\0b",
    "ab\ud800",
    b"bytes",
    None,
    7,
]
CLIENT_IDS: list[Any] = ["", "x" * 65, b"a", 7, "a\0", "\ud800"]
DATA: list[Any] = [{1, 2}, {7: 1}, math.nan, [math.inf], b"x", {(1, 2): 3}, "\udfff", "x" * 99, "é" * 50]


@pytest.fixture
def small(redis: Redis) -> Mailbox:
    mailbox = Mailbox("jack", max_text=100, max_data=100)
    mailbox.push("jill", "one")
    mailbox.pull()
    return mailbox


@pytest.mark.parametrize(
    ("error", "values", "act"),
    [
        (InvalidName, [*BAD_NAMES, None], lambda mailbox, value: Mailbox(value)),
        (InvalidName, [*BAD_NAMES, None], lambda mailbox, value: mailbox.block(value)),
        (InvalidName, [*BAD_NAMES, None], lambda mailbox, value: mailbox.unblock(value)),
        (InvalidName, [*BAD_NAMES, None], lambda mailbox, value: mailbox.push(value, "two")),
        (InvalidName, BAD_NAMES, lambda mailbox, value: mailbox.status(1, sender=value)),
        (InvalidValue, COUNTS, lambda mailbox, value: Mailbox("jack", limit=value)),
        (InvalidValue, COUNTS, lambda mailbox, value: mailbox.pull(value)),
        (InvalidValue, COUNTS, lambda mailbox, value: mailbox.peek(value)),
        (InvalidValue, COUNTS, lambda mailbox, value: MailboxReader().messages("jack", limit=value)),
        (ValueError, ["block", None], lambda mailbox, value: Mailbox("jack", when_full=value)),
        (ValueError, IDS, lambda mailbox, value: mailbox.pull(after=value)),
        (ValueError, IDS, lambda mailbox, value: mailbox.acknowledge(value)),
        (ValueError, IDS, lambda mailbox, value: mailbox.status(value)),
        (InvalidValue, WAITS, lambda mailbox, value: mailbox.pull(after=2**52, wait=value)),
        (InvalidMessage, TEXTS, lambda mailbox, value: mailbox.push("jill", value)),
        (InvalidMessage, DATA, lambda mailbox, value: mailbox.push("jill", "text", data=value)),
        (InvalidMessage, CLIENT_IDS, lambda mailbox, value: mailbox.push("jill", "two", client_id=value)),
    ],
)
def test_an_invalid_value_is_refused_and_changes_nothing(
    small: Mailbox,
    redis: Redis,
    error: type[Exception],
    values: list[Any],
    act: Callable[[Mailbox, Any], object],
) -> None:
    before = snapshot(redis)

    for value in values:
        with pytest.raises(error):
            act(small, value)

    assert snapshot(redis) == before


def test_values_at_the_bounds_are_accepted(redis: Redis) -> None:
    mailbox = Mailbox("x" * 500, limit=100_000, max_text=100, max_data=100)

    mailbox.push("y" * 500, "z" * 100, data="d" * 98, client_id="c" * 64)
    mailbox.push("jill", data={})

    assert [len(mail.text) for mail in mailbox.pull(100_000, after=2**53 - 1)] == [100, 0]


def nested(depth: int) -> Any:
    data: Any = {}
    for number in range(depth - 1):
        data = {"a": data} if number % 2 else [data]
    return data


def test_data_may_be_nested_32_deep(mailbox: Mailbox) -> None:
    endless: list[Any] = []
    endless.append(endless)

    mailbox.push("jill", data=nested(32))
    for bad in (nested(33), nested(100_000), endless):
        with pytest.raises(InvalidMessage):
            mailbox.push("jill", data=bad)

    assert [mail.data for mail in mailbox.pull()] == [nested(32)]


DAY = 86_400  # seconds


def texts(mails: Iterable[Mail]) -> list[str]:
    return [mail.text for mail in mails]


def sent(name: str, *, ago: int = 0) -> str:
    """Return the key of the pushes of the day *ago* days before today."""
    return f"{MailboxKeys(name).sent}:{int(time.time()) // DAY - ago}"


def tomorrow(redis: Redis, name: str) -> None:
    """Let a day pass for the memory of pushes into a mailbox, which expires."""
    for ago in (2, 1, 0):
        left = redis.pttl(sent(name, ago=ago)) - DAY * 1000
        if redis.exists(sent(name, ago=ago)):
            redis.rename(sent(name, ago=ago), sent(name, ago=ago + 1))
            redis.pexpire(sent(name, ago=ago + 1), left)
