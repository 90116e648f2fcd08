"""The scripts of autocomplete, each with what is done when its calls are repeated."""

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
from tests.support.repeating import Act, cases

case = cases("autocomplete")

_NAME = "guild:7"


def _book() -> AddressBook:
    book = AddressBook(_NAME)
    book.load([(1, "ann smith"), (2, "bob"), (3, "Éva")])
    book.select(1)
    return book


def _loading(act: Callable[[AddressBook], Any]) -> Act:
    """Return calls that are made while a load runs, and their results."""
    book = _book()

    def run() -> Any:
        said: list[Any] = []

        def entries() -> Any:
            yield from ((number, f"name {number}") for number in range(9))
            said.append(act(book))
            yield "x", "last"

        return [book.load(entries(), replace=True), said, book.count()]

    return run


@case
def add(redis: Redis) -> Act:
    return lambda: AddressBook(_NAME).add("ann smith", id=1)


@case
def add_again(redis: Redis) -> Act:
    book = _book()
    return lambda: [book.add("Bea", id=1), book.complete("b")]


@case
def rename(redis: Redis) -> Act:
    book = _book()
    return lambda: [book.rename(1, "Bea"), book.rename(9, "Joe"), book.count()]


@case
def remove(redis: Redis) -> Act:
    book = _book()
    return lambda: [book.remove(1), book.remove(9), book.count()]


@case
def load(redis: Redis) -> Act:
    book = _book()
    return lambda: [book.load((number, f"name {number}") for number in range(9)), book.count()]


@case
def change_meanwhile(redis: Redis) -> Act:
    """Change an entry while a load runs, which has to take the change over."""
    book = _book()
    load = Load(_NAME, replaces=True)
    at_once(load.begin(redis))
    at_once(load.write(redis, [row(1, "new", words=True), row(2, "new", words=True)]))
    return lambda: [book.rename(2, "bea"), book.remove(1), book.add("joe", id="y"), book.info().loading]


@case
def begin(redis: Redis) -> Act:
    return _loading(lambda book: None)


@case
def finish(redis: Redis) -> Act:
    book = _book()
    load = Load(_NAME, replaces=True)
    at_once(load.begin(redis))
    at_once(load.write(redis, [row(1, "bea", words=True)]))
    book.add("joe", id=4)
    return lambda: [at_once(load.finish(get_client())), book.complete("b"), book.count()]


@case
def vacate(redis: Redis) -> Act:
    book = _book()
    for entry in (1, 2, 3):
        book.remove(entry)
    return lambda: [
        book.vacate(),
        AddressBook("other").vacate(),
        redis.exists(keys.BookKeys(book.name).book),
        book.count(),
    ]


@case
def erase_book(redis: Redis) -> Act:
    book = _book()
    return lambda: [book.erase(), redis.exists(keys.BookKeys(book.name).book), book.vacate()]


@case
def list_(redis: Redis) -> Act:
    book = _book()
    return lambda: at_once(book._list(get_client()))


@case
def prune(redis: Redis) -> Act:
    its = keys.BookKeys(_book().name)
    redis.zadd(its.ranks, {"9": 700})
    return lambda: at_once(PRUNE.run(get_client(), its, ids=[1, 9]))


@case
def select(redis: Redis) -> Act:
    book = _book()
    return lambda: [book.select(2), book.select(9), [round(each.weight, 3) for each in book.top()]]


@case
def select_of_no_book(redis: Redis) -> Act:
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


@case
def touch(redis: Redis) -> Act:
    recent = _recent()
    return lambda: [recent.touch("a"), recent.touch("d"), _shown(recent.list())]


@case
def drop(redis: Redis) -> Act:
    recent = _recent()
    return lambda: [recent.remove("b"), recent.remove("z"), _shown(recent.list())]


@case
def drop_all(redis: Redis) -> Act:
    return _recent().clear
