"""Bad input: each its own clear error, before anything is sent, and the state as it was."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from redis import Redis

from components.exceptions import InvalidMessage, InvalidName, InvalidValue
from components.services.mailboxes import Mailbox, MailboxReader
from tests.support.snapshots import snapshot

NAMES: list[Any] = ["", "x" * 501, b"jack", 7, "\ud800"]
COUNTS: list[Any] = [0, -1, 1.0, math.nan, True, "3", 100_001]
IDS: list[Any] = [-1, 1.0, True, "1", 2**53, [1]]
WAITS: list[Any] = [-0.1, math.nan, math.inf, True, "2", None]
TEXTS: list[Any] = ["", " \n\t\u2003", "x" * 101, "a\0b", "ab\ud800", b"bytes", None, 7]
CLIENT_IDS: list[Any] = ["", "x" * 65, b"a", 7, "a\0", "\ud800"]
DATA: list[Any] = [{1, 2}, math.nan, [math.inf], b"x", {(1, 2): 3}, "\udfff", "x" * 99, "é" * 50]


@pytest.fixture
def mailbox(redis: Redis) -> Mailbox:
    mailbox = Mailbox("jack", max_text=100, max_data=100)
    mailbox.push("jill", "one")
    mailbox.pull()
    return mailbox


@pytest.mark.parametrize(
    ("error", "values", "act"),
    [
        (InvalidName, [*NAMES, None], lambda mailbox, value: Mailbox(value)),
        (InvalidName, [*NAMES, None], lambda mailbox, value: mailbox.block(value)),
        (InvalidName, [*NAMES, None], lambda mailbox, value: mailbox.unblock(value)),
        (InvalidName, [*NAMES, None], lambda mailbox, value: mailbox.push(value, "two")),
        (InvalidName, NAMES, lambda mailbox, value: mailbox.status(1, sender=value)),
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
    mailbox: Mailbox,
    redis: Redis,
    error: type[Exception],
    values: list[Any],
    act: Callable[[Mailbox, Any], object],
) -> None:
    before = snapshot(redis)

    for value in values:
        with pytest.raises(error):
            act(mailbox, value)

    assert snapshot(redis) == before


def test_values_at_the_bounds_are_accepted(redis: Redis) -> None:
    mailbox = Mailbox("x" * 500, limit=100_000, max_text=100, max_data=100)

    mailbox.push("y" * 500, "z" * 100, data="d" * 98, client_id="c" * 64)
    mailbox.push("jill", data={})

    assert [len(mail.text) for mail in mailbox.pull(100_000, after=2**53 - 1)] == [100, 0]


@pytest.mark.parametrize("depth", [32, 33, 100_000])
def test_data_may_be_nested_32_deep(redis: Redis, depth: int) -> None:
    mailbox = Mailbox("jack")
    data: Any = {}
    for number in range(depth - 1):
        data = {"a": data} if number % 2 else [data]
    endless: list[Any] = []
    endless.append(endless)

    if depth == 32:
        mailbox.push("jill", data=data)
        assert [mail.data for mail in mailbox.pull()] == [data]
        return
    for bad in (data, endless):
        with pytest.raises(InvalidMessage):
            mailbox.push("jill", data=bad)
    assert redis.dbsize() == 0
