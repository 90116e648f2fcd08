"""
RecentContacts: the people whom a person contacted last, newest first (chapter 6.1.1 of the book).

The contacts are a sorted set, scored by the last touch, and the labels are a hash. Up to 128 contacts of up to 64
bytes, Redis stores both in its compact encoding. They lie in the bucket of the person. One script touches a contact,
orders it by the server's clock, and drops the oldest. There are few contacts, so they are filtered in Python or in
the browser.
"""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from components.kit.client import AnyRedis
from components.kit.decoding import instant_of, text_of
from components.kit.ids import new_call
from components.kit.keyspace import parts
from components.kit.scripts import Call, Script, aside
from components.kit.sync_async import both
from components.kit.validation import check_int, check_name, check_several, is_name
from components.services.autocomplete.facts import Contact
from components.services.autocomplete.folding import (
    Spelling,
    check_contact,
    check_label,
    check_prefix,
    is_found,
    spell,
)
from components.services.autocomplete.keys import ContactsKeys

#: An alias, because inside the class *list* is a method.
_Contacts: TypeAlias = list[Contact]
_Ids: TypeAlias = list[str]
_Calls: TypeAlias = list[Call]

MAX_CONTACTS = 1_000  # all of them are sent in one answer
_TOGETHER = 250  # lists from which one round trip removes a person

DROP = Script("autocomplete/drop")
RECENT = Script("autocomplete/recent")
TOUCH = Script("autocomplete/touch")


class RecentContacts:
    """
    The *limit* newest contacts of *user*. Raises InvalidName, InvalidValue. Every method raises RedisUnavailable.
    """

    def __init__(self, user: str, *, limit: int = 100) -> None:
        self.user = check_name("person", user)
        self.limit = check_int("limit", limit, 1, MAX_CONTACTS)

    async def _touch(self, client: AnyRedis, contact: str, *, label: str = "") -> None:
        """Put *contact* first. Without *label*, it keeps its label, or shows its id. Raises InvalidValue."""
        await TOUCH.amany(client, self._touches({contact: label}))

    touch, atouch = both(_touch)

    async def _touch_all(self, client: AnyRedis, labels: Mapping[str, str]) -> _Ids:
        """
        Touch each contact of *labels*, in one round trip; the last one comes first in the list. Return the contacts
        that have no label yet. Raises InvalidValue; then no
        contact is touched.
        """
        answers = await TOUCH.amany(client, self._touches(labels))
        return [contact for contact, is_named in zip(labels, answers, strict=True) if not is_named]

    touch_all, atouch_all = both(_touch_all)

    async def _remove(self, client: AnyRedis, contact: str) -> bool:
        """Forget *contact*. Return whether it was there. Raises InvalidValue."""
        return await self._drop(client, check_contact(contact)) > 0

    remove, aremove = both(_remove)

    async def _list(self, client: AnyRedis) -> _Contacts:
        """Return all contacts, newest first."""
        rows = await RECENT.run(client, self._keys, limit=self.limit)
        return [
            Contact(text_of(who), text_of(label or who), instant_of(float(at) / 1_000))
            for who, label, at in rows
        ]

    list, alist = both(_list)

    async def _complete(self, client: AnyRedis, prefix: str, limit: int = 10) -> _Contacts:
        """Return the contacts with a word that begins with *prefix*, newest first. Raises InvalidValue."""
        wanted, most = check_prefix(prefix), check_int("limit", limit, 1, MAX_CONTACTS)
        return (await aside(client, _matching, await self._list(client), wanted))[:most]

    complete, acomplete = both(_complete)

    async def _erase(self, client: AnyRedis, others: Iterable[str] = ()) -> int:
        """
        Erase a person: delete their contacts, and remove them from the lists of their contacts and of *others*.
        Return the number of lists that contained the person. An interrupted call can be repeated, because the
        person's own list is deleted last. Raises InvalidName.
        """
        stored = (contact.id for contact in await self._list(client))
        known = [*check_several("others", others), *(each for each in stored if is_name(each))]
        lists = [RecentContacts(each) for each in dict.fromkeys(known) if each != self.user]
        found = 0
        for some in parts(lists, _TOGETHER):
            calls = [DROP.call(each._keys, contact=self.user, call=new_call()) for each in some]
            found += sum(await DROP.amany(client, calls))
        await self._drop(client, "")
        return found

    erase, aerase = both(_erase)

    async def _clear(self, client: AnyRedis) -> int:
        """Forget all contacts. Return how many there were."""
        return await self._drop(client, "")

    clear, aclear = both(_clear)

    async def _drop(self, client: AnyRedis, contact: str) -> int:
        return int(await DROP.run(client, self._keys, contact=contact, call=new_call()))

    def _touches(self, labels: Mapping[str, str]) -> _Calls:
        shown = {check_contact(each): label and check_label(label)[0] for each, label in labels.items()}
        return [
            TOUCH.call(self._keys, contact=each, label=label, limit=self.limit, call=new_call())
            for each, label in shown.items()
        ]

    @property
    def _keys(self) -> ContactsKeys:
        return ContactsKeys(self.user)  # built at each use, because the key prefix is a setting


def _matching(contacts: _Contacts, wanted: Spelling) -> _Contacts:
    return [each for each in contacts if any(is_found(spell(text), wanted) for text in (each.label, each.id))]
