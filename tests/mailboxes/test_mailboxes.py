"""Mailboxes: nothing is lost by pulling, nothing stored twice, and the sender sees what became of his message."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from redis import Redis

from components.exceptions import Blocked, MailboxFull, MessageNotFound
from components.kit.stored import UNREADABLE
from components.services.mailboxes import Fate, Mail, Mailbox
from components.services.mailboxes.keys import MailboxKeys
from tests.support.mailboxes import texts, tomorrow


@pytest.fixture
def mailbox(redis: Redis) -> Mailbox:
    return Mailbox("jack")


def fill(mailbox: Mailbox, *texts: str, sender: str = "jill") -> list[int]:
    return [mailbox.push(sender, text).id for text in texts]


def test_messages_come_in_the_order_in_which_they_were_pushed(mailbox: Mailbox) -> None:
    fill(mailbox, *map(str, range(9)))
    fill(mailbox, "last", "more", sender="joe")

    mails = mailbox.pull()

    assert [(mail.sender, mail.text) for mail in mails] == [
        *(("jill", str(n)) for n in range(9)),
        ("joe", "last"),
    ]
    assert all(abs(datetime.now(UTC) - mail.sent_at) < timedelta(minutes=1) for mail in mails)
    assert texts(mailbox.peek(2, newest=True)) == ["last", "more"]
    assert mailbox.info().handed_out == 10


def test_a_message_has_a_text_or_data_or_both(mailbox: Mailbox) -> None:
    picture = {"kind": "picture", "url": "https://example.com/a.png", "sizes": [], "width": 2**60, "alt": "é"}
    mailbox.push("jill", "look", data=picture)
    mailbox.push("jill", data=[])
    mailbox.push("jill", '["no data"]')

    mails = mailbox.pull()

    assert [(mail.text, mail.data) for mail in mails] == [("look", picture), ("", []), ('["no data"]', None)]


def test_a_push_under_the_same_client_id_is_stored_once(mailbox: Mailbox) -> None:
    first = mailbox.push("jill", "one", client_id="a")

    again = mailbox.push("jill", "something else", client_id="a")
    other = mailbox.push("joe", "one", client_id="a")

    assert not first.is_duplicate
    assert again.is_duplicate
    assert (again.id, again.sent_at) == (first.id, first.sent_at)
    assert not other.is_duplicate
    assert texts(mailbox.pull()) == ["one", "one"]


@pytest.mark.parametrize("days", [0, 1])
def test_a_push_is_known_for_a_day_even_if_its_message_has_gone(
    mailbox: Mailbox, redis: Redis, days: int
) -> None:
    pushed = mailbox.push("jill", "one", client_id="a")
    mailbox.acknowledge(mailbox.pull()[0].id)
    for _ in range(days):
        tomorrow(redis, "jack")

    again = mailbox.push("jill", "one", client_id="a")

    assert (again.id, again.is_duplicate) == (pushed.id, True)
    assert mailbox.depth() == 0


def test_a_sender_and_a_client_id_do_not_run_together(mailbox: Mailbox) -> None:
    assert not mailbox.push("a", "one", client_id="bc").is_duplicate
    assert not mailbox.push("ab", "one", client_id="c").is_duplicate
    assert not mailbox.push("1:a", "one", client_id="bc").is_duplicate


def test_a_smaller_limit_drops_more(redis: Redis) -> None:
    ids = fill(Mailbox("jack"), "one", "two", "three")

    pushed = Mailbox("jack", limit=2, when_full="drop_oldest").push("jill", "four")

    assert pushed.dropped == tuple(ids[:2])
    assert texts(Mailbox("jack").pull()) == ["three", "four"]


def test_the_sender_sees_what_became_of_their_message(mailbox: Mailbox) -> None:
    [message] = fill(mailbox, "one")
    waiting = mailbox.status(message)
    mailbox.pull()
    handed_out = mailbox.status(message)
    mailbox.acknowledge(message)
    acknowledged = mailbox.status(message)

    assert (waiting.fate, waiting.pulled_at) == (Fate.WAITING, None)
    assert handed_out.fate is Fate.HANDED_OUT
    assert acknowledged.fate is Fate.ACKNOWLEDGED
    assert handed_out.pulled_at == acknowledged.pulled_at == mailbox.info().pulled_at
    assert acknowledged.pulled_at is not None


def test_only_the_named_sender_learns_the_fate(mailbox: Mailbox, redis: Redis) -> None:
    [message] = fill(mailbox, "one")

    def fate() -> Fate:
        with pytest.raises(MessageNotFound, match="from 'joe'"):
            mailbox.status(message, sender="joe")
        return mailbox.status(message, sender="jill").fate

    assert fate() is Fate.WAITING
    mailbox.pull()
    assert fate() is Fate.HANDED_OUT
    mailbox.acknowledge(message)
    assert fate() is Fate.ACKNOWLEDGED
    tomorrow(redis, "jack")
    assert fate() is Fate.ACKNOWLEDGED


def test_two_days_after_a_message_went_nobody_knows_whose_it_was(mailbox: Mailbox, redis: Redis) -> None:
    [message] = fill(mailbox, "one")
    mailbox.acknowledge(mailbox.pull()[0].id)
    for _ in range(2):
        tomorrow(redis, "jack")

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


def test_messages_dropped_longer_ago_than_remembered_are_not_called_acknowledged(
    mailbox: Mailbox, redis: Redis
) -> None:
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


def test_an_erased_mailbox_leaves_nothing_and_its_ids_never_come_again(
    mailbox: Mailbox, redis: Redis
) -> None:
    Mailbox("jack", limit=1, when_full="drop_oldest").push("jill", "one")
    [old] = Mailbox("jack", limit=1, when_full="drop_oldest").push("jill", "two").dropped
    mailbox.pull()
    mailbox.block("joe")

    mailbox.erase()

    assert redis.dbsize() == 0
    assert fill(mailbox, "three")[0] > old + 1


def test_the_figures_say_how_it_stands(mailbox: Mailbox) -> None:
    assert mailbox.info().pushed == mailbox.info().depth == 0
    fill(mailbox, "one", "two", "three")
    mailbox.acknowledge(mailbox.pull(2)[0].id)

    info = mailbox.info()

    assert (info.name, info.depth, info.handed_out, info.limit) == ("jack", 2, 1, 1_000)
    assert (info.pushed, info.acknowledged, info.dropped) == (3, 1, 0)
    assert info.oldest_at == mailbox.peek()[0].sent_at
    assert 100 < info.bytes < 10_000


def test_a_message_of_a_newer_release_is_told_apart_and_stays_until_it_is_acknowledged(
    mailbox: Mailbox, redis: Redis
) -> None:
    fill(mailbox, "one")
    stream = MailboxKeys("jack").messages
    redis.xadd(stream, {"from": "jill", "at": 1, "body": "znew"}, id=f"{2**52}-0")

    first, newer = mailbox.pull()

    assert (first.text, first.is_unreadable) == ("one", False)
    assert (newer.sender, newer.text, newer.data, newer.is_unreadable) == ("jill", UNREADABLE, None, True)
    assert mailbox.depth() == 2


def test_every_method_has_a_twin(redis: Redis) -> None:
    async def scene(mailbox: Mailbox) -> None:
        pushed = await mailbox.apush("jill", "one", data=1, client_id="a")
        [mail] = await mailbox.apull()
        assert mail == Mail(pushed.id, "jill", "one", 1, pushed.sent_at, False)
        assert [each.is_again for each in await mailbox.apeek()] == [True]
        assert (await mailbox.astatus(pushed.id, sender="jill")).fate is Fate.HANDED_OUT
        assert (await mailbox.ainfo()).depth == await mailbox.adepth() == 1
        assert await mailbox.aacknowledge(pushed.id) == 1
        await mailbox.ablock("joe")
        assert list(await mailbox.ablocked()) == ["joe"]
        await mailbox.aunblock("joe")
        await mailbox.apush("joe", "two")
        assert await mailbox.aclear() == await mailbox.amissed() == 1
        await mailbox.aerase()

    asyncio.run(scene(Mailbox("jack")))

    assert redis.dbsize() == 0


def test_messages_never_handed_out_are_not_acknowledged(mailbox: Mailbox) -> None:
    *_, last = fill(mailbox, "one", "two")

    assert mailbox.acknowledge(last) == 0

    assert texts(mailbox.pull()) == ["one", "two"]


def test_a_repeated_pull_acknowledges_nothing_of_what_the_first_one_handed_out(mailbox: Mailbox) -> None:
    ids = [mailbox.push("joe", str(number)).id for number in range(10)]
    [_, last] = mailbox.pull(2, newest=True)

    for _ in range(3):
        assert [mail.id for mail in mailbox.pull(8, after=last.id)] == ids[:8]

    assert mailbox.depth() == 8
    assert mailbox.acknowledge(ids[7]) == 8


def test_nothing_is_lost_by_pulling_the_newest(mailbox: Mailbox) -> None:
    fill(mailbox, "one", "two", "three", "four")

    newest = mailbox.pull(2, newest=True)
    assert texts(newest) == ["three", "four"]
    assert mailbox.acknowledge(newest[-1].id) == 2

    assert texts(mailbox.pull()) == ["one", "two"]


def test_a_full_mailbox_refuses(redis: Redis) -> None:
    mailbox = Mailbox("jack", limit=2)
    fill(mailbox, "one", "two")

    with pytest.raises(MailboxFull):
        mailbox.push("jill", "three")
    assert texts(mailbox.pull()) == ["one", "two"]
    with pytest.raises(MailboxFull):  # what was handed out counts until it is acknowledged
        mailbox.push("jill", "three")
    mailbox.acknowledge(mailbox.pull(1)[0].id)
    mailbox.push("jill", "three")

    assert texts(mailbox.pull()) == ["two", "three"]


def test_the_recipient_learns_how_many_were_dropped(redis: Redis) -> None:
    mailbox = Mailbox("jack", limit=2, when_full="drop_oldest")
    fill(mailbox, *"abcde")
    assert mailbox.missed() == 3

    mails = mailbox.pull()
    assert mails.missed == 3
    assert mailbox.pull().missed == 3  # the reply to the first may be lost
    mailbox.acknowledge(mails[0].id)
    assert mailbox.missed() == 3
    mailbox.acknowledge(mails[1].id)

    assert mailbox.missed() == 0
    assert mailbox.pull().missed == 0


def test_an_old_acknowledgement_does_not_hide_what_was_dropped(redis: Redis) -> None:
    mailbox = Mailbox("jack", limit=2, when_full="drop_oldest")
    fill(mailbox, *"ab")
    mails = mailbox.pull(after=mailbox.pull()[-1].id)
    fill(mailbox, *"cde")
    mailbox.pull()

    old = mailbox.peek()[0].id - 1
    mailbox.acknowledge(old)

    assert mails == []
    assert mailbox.missed() == 1


def test_the_mail_of_a_blocked_sender_is_refused(mailbox: Mailbox) -> None:
    fill(mailbox, "before")
    mailbox.block("jill")
    since = mailbox.blocked()
    mailbox.block("jill")

    with pytest.raises(Blocked):
        mailbox.push("jill", "one")
    fill(mailbox, "two", sender="joe")
    assert list(since) == ["jill"]
    assert mailbox.blocked() == since
    mailbox.unblock("jill")
    fill(mailbox, "three")

    assert mailbox.blocked() == {}
    assert texts(mailbox.pull()) == ["before", "two", "three"]
