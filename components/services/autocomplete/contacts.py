"""
RecentContacts: whom a person used last, newest first (chapter 6.1.1 of the book).

A sorted set by the last touch, and the labels beside it: with up to 128 contacts of up to 64 bytes both are compact.
They lie in the bucket of the person. One script touches, orders by the server's clock, and drops the oldest; sent
again, its reply being lost, it changes nothing. They are few, so they are filtered here, or in the browser.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from components.exceptions import InvalidLimit
from components.kit.at_once import at_once
from components.kit.buckets import bucket
from components.kit.client import AnyRedis, get_async_client, get_client
from components.kit.scripts import Call, Script
from components.kit.stored import text_of
from components.kit.together import together
from components.kit.values import check_name, is_name
from components.services.autocomplete import keys
from components.services.autocomplete.folding import (
    Spelling,
    check_contact,
    check_label,
    check_prefix,
    is_found,
    spell,
)
from components.services.autocomplete.records import Contact, instant

#: Inside of the class, list is its method.
_Contacts: TypeAlias = list[Contact]
_Ids: TypeAlias = list[str]
_Calls: TypeAlias = list[Call]

MAX_CONTACTS = 1_000  # they are sent whole
_TOGETHER = 250  # lists that forget somebody in one round trip

_drop = Script("autocomplete/drop")
_recent = Script("autocomplete/recent")
_touch = Script("autocomplete/touch")


class RecentContacts:
    """
    The contacts of *user*: the *limit* newest.

    Raises InvalidName, InvalidLimit. Every method raises RedisUnavailable.
    """

    def __init__(self, user: str, *, limit: int = 100) -> None:
        self.user = check_name("person", user)
        self.limit = check_limit(limit, MAX_CONTACTS)

    def touch(self, contact: str, *, label: str = "") -> None:
        """Put *contact* first. Without a label it is called as before, or by its id. Raises InvalidEntry."""
        at_once(self._touch(get_client(), {contact: label}))

    async def atouch(self, contact: str, *, label: str = "") -> None:
        """touch(), awaited."""
        await self._touch(get_async_client(), {contact: label})

    def touch_all(self, labels: Mapping[str, str]) -> _Ids:
        """
        touch() for each contact of *labels*, in one round trip: the last of them comes first.

        Those that have no label yet. Raises InvalidEntry; nobody is touched then.
        """
        return at_once(self._touch(get_client(), labels))

    async def atouch_all(self, labels: Mapping[str, str]) -> _Ids:
        """touch_all(), awaited. Those that come while others of the event loop are under way go in one round trip."""
        return _unnamed(labels, await together(_touch, self._touches(labels)))

    def remove(self, contact: str) -> bool:
        """Forget *contact*; whether it was there. Raises InvalidEntry."""
        return at_once(self._drop(get_client(), check_contact(contact))) > 0

    async def aremove(self, contact: str) -> bool:
        """remove(), awaited."""
        return await self._drop(get_async_client(), check_contact(contact)) > 0

    def list(self) -> _Contacts:
        """All, newest first."""
        return at_once(self._list(get_client()))

    async def alist(self) -> _Contacts:
        """list(), awaited."""
        return await self._list(get_async_client())

    def complete(self, prefix: str, limit: int = 10) -> _Contacts:
        """Those of which a word begins with *prefix*, newest first. Raises InvalidPrefix, InvalidLimit."""
        return at_once(self._complete(get_client(), prefix, limit))

    async def acomplete(self, prefix: str, limit: int = 10) -> _Contacts:
        """complete(), awaited."""
        return await self._complete(get_async_client(), prefix, limit)

    def erase(self, others: Iterable[str] = ()) -> int:
        """
        The erasure of a person: his contacts are forgotten, and so is he in their lists and in those of *others*.

        In how many lists he was. Repeat it if it was interrupted: his own list goes last. Raises InvalidName.
        """
        return at_once(self._erase(get_client(), others))

    async def aerase(self, others: Iterable[str] = ()) -> int:
        """erase(), awaited."""
        return await self._erase(get_async_client(), others)

    def clear(self) -> int:
        """Forget all; how many there were."""
        return at_once(self._drop(get_client(), ""))

    async def aclear(self) -> int:
        """clear(), awaited."""
        return await self._drop(get_async_client(), "")

    def _keys(self, call: str | None = None) -> tuple[str, ...]:
        tag = bucket(self.user)
        shared = keys.contacts(tag, self.user), keys.contacts_labels(tag, self.user)
        return shared if call is None else (*shared, keys.contacts_call(tag, call))

    async def _touch(self, client: AnyRedis, labels: Mapping[str, str]) -> _Ids:
        return _unnamed(labels, await _touch.amany(client, self._touches(labels)))

    def _touches(self, labels: Mapping[str, str]) -> _Calls:
        shown = {check_contact(each): label and check_label(label)[0] for each, label in labels.items()}
        return [(self._keys(), [each, label, self.limit, new_call()]) for each, label in shown.items()]

    async def _drop(self, client: AnyRedis, contact: str) -> int:
        return int(await _drop.acall(client, keys=self._keys(new_call()), args=[contact]))

    async def _erase(self, client: AnyRedis, others: Iterable[str]) -> int:
        stored = (contact.id for contact in await self._list(client))
        known = [*others, *(each for each in stored if is_name(each))]
        lists = [RecentContacts(each) for each in dict.fromkeys(known) if each != self.user]
        found = 0
        for at in range(0, len(lists), _TOGETHER):
            calls = [(each._keys(new_call()), [self.user]) for each in lists[at : at + _TOGETHER]]
            found += sum(await _drop.amany(client, calls))
        await self._drop(client, "")
        return found

    async def _list(self, client: AnyRedis) -> _Contacts:
        rows = await _recent.acall(client, keys=self._keys(), args=[self.limit])
        return [Contact(text_of(who), text_of(label or who), instant(float(at))) for who, label, at in rows]

    async def _complete(self, client: AnyRedis, prefix: str, limit: int) -> _Contacts:
        wanted, most = check_prefix(prefix), check_limit(limit, MAX_CONTACTS)
        found = [each for each in await self._list(client) if _matches(each, wanted)]
        return found[:most]


def _unnamed(contacts: Iterable[str], answers: Sequence[int]) -> _Ids:
    return [contact for contact, is_named in zip(contacts, answers, strict=True) if not is_named]


def _matches(contact: Contact, wanted: Spelling) -> bool:
    return any(is_found(spell(text), wanted) for text in (contact.label, contact.id))


def check_limit(limit: object, most: int) -> int:
    """*limit*, if it is a whole number from 1 to *most*. Raises InvalidLimit."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= most:
        raise InvalidLimit(f"The limit is {limit!r}; it must be a whole number, 1 to {most:,}.")
    return limit


def new_call() -> str:
    """A name that no other call has."""
    return secrets.token_hex(8)
