"""What is asked with a plain command is asked once more if its reply was lost, as a script is."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from components.embedded import EmbeddedServer
from components.services.autocomplete import AddressBook, AddressBookReader
from components.services.chat import Chat, Inbox
from components.services.counters import CounterReader, count, flush
from components.services.locks.fences import FencedValue
from components.services.mailboxes import Mailbox
from components.testing import empty, redis_at
from tests.support.proxy import LossyProxy

ASKED: list[tuple[str, Callable[[], object]]] = [
    ("HMGET", lambda: Chat("chat").configure(slow_mode=1)),
    ("HEXISTS", lambda: Chat("chat").trim(before=2)),
    ("DEL", lambda: Inbox("jill").erase()),
    ("HDEL", lambda: Mailbox("joe").unblock("jill")),
    ("HGET", lambda: AddressBook("book").count()),
    ("HGETALL", lambda: AddressBook("book").info()),
    ("ZLEXCOUNT", lambda: AddressBookReader().count()),
    ("ZRANGEBYLEX", lambda: AddressBookReader().page()),
    ("ZADD", lambda: AddressBook("other").add("Ann", id=1)),
    ("ZREM", lambda: AddressBook("book").erase()),
    ("EXISTS", lambda: AddressBook("none").vacate()),
    ("GET", lambda: FencedValue("value").get()),
    ("ZRANGE", lambda: CounterReader().families()),
]


@pytest.fixture
def proxy(redis_server: EmbeddedServer) -> Iterator[LossyProxy]:
    with LossyProxy(redis_server) as proxy, empty(redis_server), redis_at(proxy.url):
        Chat.create("jill", members=["joe"], text="hello", id="chat")
        Mailbox("joe").block("jill")
        AddressBook("book").add("Ann", id=1)
        FencedValue("value").set("x", fence=1)
        count("orders:paid")
        flush()
        yield proxy


@pytest.mark.parametrize(("command", "call"), ASKED, ids=[f"{at}-{each[0]}" for at, each in enumerate(ASKED)])
def test_a_command_is_resent_if_its_reply_is_lost(
    proxy: LossyProxy, command: str, call: Callable[[], object]
) -> None:
    proxy.lose_replies(to=f"\r\n{command}\r\n")

    call()

    assert proxy.lost == 1
