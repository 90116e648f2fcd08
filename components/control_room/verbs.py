"""
What people can do to the things that pages show: a Verb has a page that asks first, and says what its links say.

A service declares its verbs once, with the permission that each needs. ControlRoomAdmin gives each a page at
<name>/, and templates link to it with {% verb "release" key=info.key %}, which shows nothing to people who lack the
permission. The page asks what Verb.ask tells it to ask, an Action.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django import forms
from django.http import HttpRequest

#: Names and addresses of the pages between a component's first page and this one, outermost first.
Trail = Sequence[tuple[str, str]]
_F = TypeVar("_F", bound=forms.Form)


@dataclass(frozen=True)
class Done:
    """What an action did."""

    #: A sentence for the log and the visitor; "" if the action did nothing.
    said: str = ""
    #: What did not go as asked, a sentence each.
    but: Sequence[str] = ()
    #: Where to go on, if that is not where the action leads.
    onward: str = ""
    #: Why the action did nothing, if that is not what Action.idle says.
    idle: str = ""


@dataclass(frozen=True)
class Action:
    """A verb and what it is about to be done to."""

    #: The name of the thing, as subject() of the admin takes it; the log entry points to it.
    of: str
    #: The title of the page that asks.
    title: str
    #: What will happen, a sentence each.
    effects: Sequence[str]
    #: None if it is known beforehand that there is nothing to do.
    run: Callable[[], Done] | None
    #: Why there was nothing to do.
    idle: str = "There was nothing to do."
    trail: Trail = ()
    #: What has to be filled in; run() reads it.
    form: forms.Form | None = None
    #: The page that the visitor comes from; "" for the last one of the trail.
    origin: str = ""
    #: Where to go afterwards, if that is another page.
    back: str = ""


@dataclass(frozen=True)
class Verb:
    """Something that people can do to a thing."""

    #: Names the page.
    name: str
    #: On links and on the button.
    label: str
    #: Says what is about to be done to what the query of a request names. Gets the admin, and raises Http404.
    ask: Callable[[Any, HttpRequest], Action]
    #: The permission: "change" stands for change_lock in the admin of locks.
    needs: str = "change"
    #: Whether something is lost for good, or taken from somebody: its links look like it.
    deletes: bool = False


def filled(form: type[_F], request: HttpRequest, **initial: object) -> _F:
    """Return the form as the visitor sent it, or as it is shown first."""
    return form(request.POST if request.method == "POST" else None, initial=initial, label_suffix="")
