"""The scripts of mailboxes, each with what is done when its calls are repeated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from redis import Redis

from components.exceptions import Blocked, MailboxFull
from components.services.mailboxes import Mailbox, WhenFull
from tests.support.repeating import Act, cases

case = cases("mailboxes")

_WHO = "jack"


def _full(when_full: WhenFull = "refuse") -> Mailbox:
    mailbox = Mailbox(_WHO, limit=3, when_full=when_full)
    for text in "abc":
        mailbox.push("jill", text, client_id=text)
    return mailbox


def _refused(error: type[Exception], act: Callable[[], object]) -> str:
    with pytest.raises(error) as refused:
        act()
    return str(refused.value)


@case
def push(redis: Redis) -> Act:
    return lambda: Mailbox(_WHO).push("jill", "one", data={"a": []}, client_id="a")


@case
def push_again(redis: Redis) -> Act:
    return lambda: _full().push("jill", "other", client_id="b")


@case
def push_into_a_full_one(redis: Redis) -> Act:
    mailbox = _full()
    return lambda: _refused(MailboxFull, lambda: mailbox.push("jill", "d", client_id="d"))


@case
def push_and_drop(redis: Redis) -> Act:
    """
    Push into a mailbox whose limit was larger before: several messages are dropped, some of which were handed out.
    """
    _full().pull(1)
    mailbox = Mailbox(_WHO, limit=2, when_full="drop_oldest")
    return lambda: [mailbox.push("jill", "d", client_id="d"), mailbox.missed()]


@case
def push_by_a_blocked_sender(redis: Redis) -> Act:
    Mailbox(_WHO).block("jill")
    return lambda: _refused(Blocked, lambda: Mailbox(_WHO).push("jill", "a", client_id="a"))


@case
def pull(redis: Redis) -> Act:
    mailbox = _full()
    mailbox.pull(1)
    return lambda: mailbox.pull(2)


@case
def pull_newest(redis: Redis) -> Act:
    mailbox = _full("drop_oldest")
    mailbox.push("jill", "d", client_id="d")
    mailbox.pull(2)

    def act() -> Any:
        mails = mailbox.pull(2, newest=True)
        return [mails, mails.missed]

    return act


@case
def pull_on(redis: Redis) -> Act:
    mailbox = _full("drop_oldest")
    mailbox.push("jill", "d", client_id="d")
    after = mailbox.pull(2)[-1].id
    return lambda: [mailbox.pull(2, after=after), mailbox.missed()]


@case
def acknowledge(redis: Redis) -> Act:
    mailbox = _full()
    upto = mailbox.pull(2)[-1].id
    return lambda: mailbox.acknowledge(upto)


@case
def block(redis: Redis) -> Act:
    return lambda: Mailbox(_WHO).block("jill")


@case
def clear(redis: Redis) -> Act:
    mailbox = _full()
    mailbox.pull(1)
    return mailbox.clear


@case
def erase(redis: Redis) -> Act:
    mailbox = _full("drop_oldest")
    mailbox.push("jill", "d", client_id="d")
    mailbox.pull(1)
    mailbox.block("joe")
    return mailbox.erase
