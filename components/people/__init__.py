"""
People: their names, and who may write to whom. Services know people by opaque ids; pages and the API show names.

A project with profiles, friends or guilds names a class with the methods of Users in COMPONENTS["PEOPLE"]. It is
instantiated once, without arguments. Its methods are called in a thread that may use the database.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Any, Protocol, cast

from asgiref.sync import sync_to_async
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db import models
from django.utils.module_loading import import_string

from components.conf import conf

_ADDRESS = re.compile("[@\N{FULLWIDTH COMMERCIAL AT}\N{SMALL COMMERCIAL AT}]")


class People(Protocol):
    """The interface of a class that knows people."""

    def names(self, ids: Iterable[str]) -> dict[str, str]:
        """Return the names to show, by id, without ids that belong to nobody."""

    def find(self, names: Iterable[str]) -> dict[str, str]:
        """Return the ids of the people with exactly these names, by name, without names that nobody has."""

    def refused(self, by: str, ids: Iterable[str]) -> set[str]:
        """Return those of *ids* to whom *by* may not write, and whom *by* may not add to a chat."""

    def book(self, by: str) -> str | None:
        """Return the name of the address book, by user ids, of all to whom *by* may write; None if there is none."""


class Users:
    """
    The users of AUTH_USER_MODEL, known by str(user.pk). Everybody may write to everybody.

    People are shown by what they log in with, and found by it. What looks like an e-mail address is neither shown nor
    found: such people are shown by get_short_name(), or else by their id.
    """

    #: The field of the user model by which people are shown and found, instead of what they log in with.
    name_field = ""

    def name_of(self, user: Any) -> str:
        """Return the name that others see."""
        short = getattr(user, "get_short_name", str)()
        names = (getattr(user, self._field), short)
        return next((str(name) for name in names if name and not _ADDRESS.search(str(name))), str(user.pk))

    def names(self, ids: Iterable[str]) -> dict[str, str]:
        keys = [key for each in set(ids) if (key := _primary_key(each)) is not None]
        return {str(user.pk): self.name_of(user) for user in self._users.filter(pk__in=keys)}

    def find(self, names: Iterable[str]) -> dict[str, str]:
        wanted = {name for name in names if "\0" not in name}  # PostgreSQL does not accept the others
        users = self._users.filter(is_active=True, **{f"{self._field}__in": wanted})
        shown = [
            (name, str(user.pk))
            for user in users
            if (name := self.name_of(user)) == getattr(user, self._field)
        ]
        count = Counter(name for name, _id in shown)  # whom several share is nobody's
        return {name: id for name, id in shown if count[name] == 1 and name in wanted}

    @property
    def _field(self) -> str:
        return self.name_field or get_user_model().USERNAME_FIELD

    def refused(self, by: str, ids: Iterable[str]) -> set[str]:
        return set()

    def book(self, by: str) -> str | None:
        return None

    @property
    def _users(self) -> Any:
        return get_user_model()._default_manager


def _primary_key(id: str) -> Any:
    """Return the primary key that str() turns into *id*; None if there can be none."""
    field = cast(Any, get_user_model()._meta.pk)
    if "\0" in id:
        return None
    try:
        key = field.clean(id, None)
    except ValidationError:
        return None
    return key if str(key) == id else None


@lru_cache(maxsize=1)
def _made(path: str) -> People:
    made: People = import_string(path)()
    return made


def people() -> People:
    """Return the instance of the class that COMPONENTS["PEOPLE"] names. Raises ImportError."""
    return _made(conf().people)


def may_view(user: str, model: type[models.Model]) -> bool:
    """Return whether *user* may view *model* in the admin, and so, by default, data derived from its rows."""
    try:
        found = get_user_model()._default_manager.filter(pk=user).first()
    except (ValueError, ValidationError):  # the id belongs to nobody
        return False
    if found is None or not found.is_active or not getattr(found, "is_staff", False):
        return False
    return found.has_perm(f"{model._meta.app_label}.view_{model._meta.model_name}")


def names_of(ids: Iterable[str]) -> dict[str, str]:
    """Return the names to show, by id, without ids that are empty or belong to nobody."""
    wanted = {each for each in ids if each}
    return people().names(wanted) if wanted else {}


async def anames_of(ids: Iterable[str]) -> dict[str, str]:
    """Do what names_of() does, awaited."""
    wanted = {each for each in ids if each}
    return await sync_to_async(people().names)(wanted) if wanted else {}


def unwilling(by: str, ids: Iterable[str]) -> set[str]:
    """Return those of *ids* who do not let *by* put them into a chat, as COMPONENTS["CHAT_CONSENT"] says."""
    others = set(ids) - {by}
    path = conf().chat_consent
    return set() if path is None or not others else set(_hook(path)(by, others)) & others


def is_hidden(user: str) -> bool:
    """Return whether others do not see when *user* has a chat open, as COMPONENTS["CHAT_HIDDEN"] says."""
    path = conf().chat_hidden
    return path is not None and bool(_hook(path)(user))


_hook = lru_cache(maxsize=2)(import_string)


class ContactsListener(Protocol):
    """
    The interface of a class that is notified when people write to each other.

    Its methods raise nothing, because the message is stored already.
    """

    def note(self, user: str, ids: Collection[str]) -> None:
        """Note that *user* has written to *ids*, the latest first."""

    async def anote(self, user: str, ids: Collection[str], *, anew: bool = False) -> None:
        """Do what note() does, awaited. If *anew*, the names may have changed since they were last noted."""


_listeners: list[ContactsListener] = []


def listen_to_contacts(listener: ContactsListener) -> None:
    """Notify *listener* from now on when people write to each other."""
    if listener not in _listeners:
        _listeners.append(listener)


def note_contacts(user: str, ids: Collection[str]) -> None:
    """Tell all listeners that *user* has written to *ids*, or has put them into a chat."""
    for listener in _listeners:
        listener.note(user, ids)


async def anote_contacts(user: str, ids: Collection[str], *, anew: bool = False) -> None:
    """Do what note_contacts() does, awaited. If *anew*, even known names are looked up again."""
    for listener in _listeners:
        await listener.anote(user, ids, anew=anew)
