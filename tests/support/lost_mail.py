"""The scripts of mailboxes, each with what is done while its reply gets lost. (tests/kit/test_lost_replies.py)"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from redis import Redis

from components.exceptions import Blocked, MailboxFull
from components.services.mailboxes import Mailbox, WhenFull

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


def push(redis: Redis) -> Callable[[], Any]:
    return lambda: Mailbox(_WHO).push("jill", "one", data={"a": []}, client_id="a")


def push_again(redis: Redis) -> Callable[[], Any]:
    return lambda: _full().push("jill", "other", client_id="b")


def push_into_a_full_one(redis: Redis) -> Callable[[], Any]:
    mailbox = _full()
    return lambda: _refused(MailboxFull, lambda: mailbox.push("jill", "d", client_id="d"))


def push_and_drop(redis: Redis) -> Callable[[], Any]:
    """
    Push into a mailbox whose limit was larger before: several messages are dropped, some of which were handed out.
    """
    _full().pull(1)
    mailbox = Mailbox(_WHO, limit=2, when_full="drop_oldest")
    return lambda: [mailbox.push("jill", "d", client_id="d"), mailbox.missed()]


def push_by_a_blocked_sender(redis: Redis) -> Callable[[], Any]:
    Mailbox(_WHO).block("jill")
    return lambda: _refused(Blocked, lambda: Mailbox(_WHO).push("jill", "a", client_id="a"))


def pull(redis: Redis) -> Callable[[], Any]:
    mailbox = _full()
    mailbox.pull(1)
    return lambda: mailbox.pull(2)


def pull_newest(redis: Redis) -> Callable[[], Any]:
    mailbox = _full("drop_oldest")
    mailbox.push("jill", "d", client_id="d")
    mailbox.pull(2)

    def act() -> Any:
        mails = mailbox.pull(2, newest=True)
        return [mails, mails.missed]

    return act


def pull_on(redis: Redis) -> Callable[[], Any]:
    mailbox = _full("drop_oldest")
    mailbox.push("jill", "d", client_id="d")
    after = mailbox.pull(2)[-1].id
    return lambda: [mailbox.pull(2, after=after), mailbox.missed()]


def acknowledge(redis: Redis) -> Callable[[], Any]:
    mailbox = _full()
    upto = mailbox.pull(2)[-1].id
    return lambda: mailbox.acknowledge(upto)


def block(redis: Redis) -> Callable[[], Any]:
    return lambda: Mailbox(_WHO).block("jill")


def clear(redis: Redis) -> Callable[[], Any]:
    mailbox = _full()
    mailbox.pull(1)
    return mailbox.clear


def erase(redis: Redis) -> Callable[[], Any]:
    mailbox = _full("drop_oldest")
    mailbox.push("jill", "d", client_id="d")
    mailbox.pull(1)
    mailbox.block("joe")
    return mailbox.erase


CASES = {
    "mailboxes/block": [block],
    "mailboxes/clear": [clear],
    "mailboxes/erase": [erase],
    "mailboxes/pull": [pull, pull_newest, pull_on, acknowledge],
    "mailboxes/push": [push, push_again, push_into_a_full_one, push_and_drop, push_by_a_blocked_sender],
}
