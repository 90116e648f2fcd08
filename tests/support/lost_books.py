"""The scripts of autocomplete, each with what is done while its reply gets lost. (tests/kit/test_lost_replies.py)"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from redis import Redis

from components.exceptions import BookNotFound
from components.kit.at_once import at_once
from components.kit.client import get_client
from components.services.autocomplete import (
    AddressBook,
    Contact,
    RecentContacts,
    keys,
)
from components.services.autocomplete.address_book import PRUNE
from components.services.autocomplete.loading import Load, row

_NAME = "guild:7"


def _book() -> AddressBook:
    book = AddressBook(_NAME)
    book.load([(1, "ann smith"), (2, "bob"), (3, "Éva")])
    book.select(1)
    return book


def _loading(act: Callable[[AddressBook], Any]) -> Callable[[], Any]:
    """Return calls that are made while a load runs, and their results."""
    book = _book()

    def run() -> Any:
        said: list[Any] = []

        def entries() -> Any:
            yield from ((number, f"name {number}") for number in range(1_000))
            said.append(act(book))
            yield "x", "last"

        return [book.load(entries(), replace=True), said, book.count()]

    return run


def add(redis: Redis) -> Callable[[], Any]:
    return lambda: AddressBook(_NAME).add("ann smith", id=1)


def add_again(redis: Redis) -> Callable[[], Any]:
    book = _book()
    return lambda: [book.add("Bea", id=1), book.complete("b")]


def rename(redis: Redis) -> Callable[[], Any]:
    book = _book()
    return lambda: [book.rename(1, "Bea"), book.rename(9, "Joe"), book.count()]


def remove(redis: Redis) -> Callable[[], Any]:
    book = _book()
    return lambda: [book.remove(1), book.remove(9), book.count()]


def load(redis: Redis) -> Callable[[], Any]:
    book = _book()
    return lambda: [book.load((number, f"name {number}") for number in range(600)), book.count()]


def change_meanwhile(redis: Redis) -> Callable[[], Any]:
    """Change an entry while a load runs, which has to take the change over."""
    book = _book()
    load = Load(_NAME, replaces=True)
    at_once(load.begin(redis))
    at_once(load.write(redis, [row(1, "new", words=True), row(2, "new", words=True)]))
    return lambda: [book.rename(2, "bea"), book.remove(1), book.add("joe", id="y"), book.info().loading]


def begin(redis: Redis) -> Callable[[], Any]:
    return _loading(lambda book: None)


def finish(redis: Redis) -> Callable[[], Any]:
    book = _book()
    load = Load(_NAME, replaces=True)
    at_once(load.begin(redis))
    at_once(load.write(redis, [row(1, "bea", words=True)]))
    book.add("joe", id=4)
    return lambda: [at_once(load.finish(get_client())), book.complete("b"), book.count()]


def vacate(redis: Redis) -> Callable[[], Any]:
    book = _book()
    for entry in (1, 2, 3):
        book.remove(entry)
    return lambda: [
        book.vacate(),
        AddressBook("other").vacate(),
        redis.exists(keys.BookKeys(book.name).book),
        book.count(),
    ]


def erase_book(redis: Redis) -> Callable[[], Any]:
    book = _book()
    return lambda: [book.erase(), redis.exists(keys.BookKeys(book.name).book), book.vacate()]


def list_(redis: Redis) -> Callable[[], Any]:
    book = _book()
    return lambda: at_once(book._list(get_client()))


def prune(redis: Redis) -> Callable[[], Any]:
    its = keys.BookKeys(_book().name)
    redis.zadd(its.ranks, {"9": 700})

    def act() -> None:
        at_once(PRUNE.run(get_client(), its, ids=[1, 9]))  # its count is that of the last sending

    return act


def select(redis: Redis) -> Callable[[], Any]:
    book = _book()
    return lambda: [book.select(2), book.select(9), [round(each.weight, 3) for each in book.top()]]


def select_of_no_book(redis: Redis) -> Callable[[], Any]:
    def act() -> str:
        with pytest.raises(BookNotFound) as refused:
            AddressBook("none").select(1)
        return str(refused.value)

    return act


def _recent() -> RecentContacts:
    recent = RecentContacts("jack", limit=3)
    for contact in "abc":
        recent.touch(contact, label=f"label {contact}")
    return recent


def _shown(found: list[Contact]) -> list[str]:
    return [f"{contact.id} {contact.label}" for contact in found]


def touch(redis: Redis) -> Callable[[], Any]:
    recent = _recent()
    return lambda: [recent.touch("a"), recent.touch("d"), _shown(recent.list())]


def drop(redis: Redis) -> Callable[[], Any]:
    recent = _recent()
    return lambda: [recent.remove("b"), recent.remove("z"), _shown(recent.list())]


def drop_all(redis: Redis) -> Callable[[], Any]:
    return _recent().clear


CASES = {
    "autocomplete/begin": [begin],
    "autocomplete/drop": [drop, drop_all],
    "autocomplete/erase": [erase_book, vacate],
    "autocomplete/finish": [finish],
    "autocomplete/list": [list_],
    "autocomplete/prune": [prune],
    "autocomplete/select": [select, select_of_no_book],
    "autocomplete/touch": [touch],
    "autocomplete/write": [add, add_again, rename, remove, load, change_meanwhile],
}
