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

NAMES: list[Any] = ["", "x" * 501, b"jack", None, 7, "\ud800"]
COUNTS: list[Any] = [0, -1, 1.0, math.nan, True, "3", 100_001]
IDS: list[Any] = [-1, 1.0, True, "1", 2**53, [1]]


@pytest.fixture
def mailbox(redis: Redis) -> Mailbox:
    mailbox = Mailbox("jack", max_text=100, max_data=100)
    mailbox.push("jill", "one")
    mailbox.pull()
    return mailbox


def refuse(redis: Redis, error: type[Exception], say: str, act: Callable[[], object]) -> None:
    before = snapshot(redis)
    with pytest.raises(error, match=say):
        act()
    assert snapshot(redis) == before


@pytest.mark.parametrize("name", NAMES)
def test_names_are_texts_of_1_to_500_characters(mailbox: Mailbox, redis: Redis, name: Any) -> None:
    refuse(redis, InvalidName, "mailbox cannot be called", lambda: Mailbox(name))
    for act in (mailbox.block, mailbox.unblock, lambda sender: mailbox.push(sender, "two")):
        refuse(redis, InvalidName, "person cannot be called", lambda act=act: act(name))  # type: ignore[misc]
    if name is not None:
        refuse(redis, InvalidName, "person", lambda: mailbox.status(1, sender=name))


@pytest.mark.parametrize("count", COUNTS)
def test_limits_are_whole_numbers_from_1_on(mailbox: Mailbox, redis: Redis, count: Any) -> None:
    for act in (
        lambda: Mailbox("jack", limit=count),
        lambda: mailbox.pull(count),
        lambda: mailbox.peek(count),
        lambda: MailboxReader().messages("jack", limit=count),
    ):
        refuse(redis, InvalidValue, "The limit is", act)


def test_a_mailbox_refuses_or_drops(redis: Redis) -> None:
    with pytest.raises(ValueError, match="when_full is 'block'"):
        Mailbox("jack", when_full="block")  # type: ignore[arg-type]


@pytest.mark.parametrize("message", IDS)
def test_ids_are_whole_numbers(mailbox: Mailbox, redis: Redis, message: Any) -> None:
    for act in (
        lambda: mailbox.pull(after=message),
        lambda: mailbox.acknowledge(message),
        lambda: mailbox.status(message),
    ):
        refuse(redis, ValueError, "The id of a message is", act)


@pytest.mark.parametrize("wait", [-0.1, math.nan, math.inf, True, "2", None])
def test_a_wait_is_a_number_of_seconds(mailbox: Mailbox, redis: Redis, wait: Any) -> None:
    refuse(redis, InvalidValue, "The wait is", lambda: mailbox.pull(after=2**52, wait=wait))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is empty"),
        (" \n\t\u2003", "is empty"),
        ("x" * 101, "has 101 characters; a message takes 100"),
        ("a\0b", "a NUL, at position 1"),
        ("ab\ud800", "half of a character, at position 2"),
        (b"bytes", "is bytes"),
        (None, "is NoneType"),
        (7, "is int"),
    ],
)
def test_a_text_is_text_that_can_be_read(mailbox: Mailbox, redis: Redis, text: Any, why: str) -> None:
    refuse(redis, InvalidMessage, why, lambda: mailbox.push("jill", text))


def test_an_empty_text_needs_data(mailbox: Mailbox) -> None:
    assert not mailbox.push("jill", data={}).is_duplicate


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({1, 2}, "not JSON"),
        (math.nan, "not JSON"),
        ([math.inf], "not JSON"),
        (b"bytes", "not JSON"),
        ({(1, 2): 3}, "not JSON"),
        ("\udfff", "half of a character"),
        ("x" * 99, "101 bytes"),
        ("é" * 50, "102 bytes"),
    ],
)
def test_data_are_json_of_limited_size(mailbox: Mailbox, redis: Redis, data: Any, why: str) -> None:
    refuse(redis, InvalidMessage, why, lambda: mailbox.push("jill", "text", data=data))


@pytest.mark.parametrize("depth", [32, 33])
def test_data_may_be_nested_32_deep(redis: Redis, depth: int) -> None:
    mailbox = Mailbox("jack")
    data: Any = {}
    for number in range(depth - 1):
        data = {"a": data} if number % 2 else [data]

    if depth > 32:
        refuse(redis, InvalidMessage, "nested too deeply", lambda: mailbox.push("jill", data=data))
    else:
        mailbox.push("jill", data=data)
        assert [mail.data for mail in mailbox.pull()] == [data]


def test_data_that_hold_themselves_are_refused(mailbox: Mailbox, redis: Redis) -> None:
    endless: list[Any] = []
    endless.append(endless)
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]

    for data in (endless, deep):
        refuse(redis, InvalidMessage, "nested too deeply", lambda data=data: mailbox.push("jill", data=data))  # type: ignore[misc]


@pytest.mark.parametrize("client_id", ["", "x" * 65, b"a", 7, "a\0", "\ud800"])
def test_a_client_id_is_a_short_text(mailbox: Mailbox, redis: Redis, client_id: Any) -> None:
    refuse(redis, InvalidMessage, "client id", lambda: mailbox.push("jill", "two", client_id=client_id))
