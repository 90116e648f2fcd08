"""
Actions on the things that pages show. A Verb has the text of its links, and a page that asks before it acts.

A service declares its verbs once, with the permission that each needs. ControlRoomAdmin gives each a page at <name>/,
and templates link to it with {% verb "release" key=info.key %}, which shows nothing to people who lack the
permission. Verb.ask returns the Action that the page asks about.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django import forms
from django.http import HttpRequest
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

#: The names and addresses of the pages between a component's first page and this one, outermost first.
Trail = Sequence[tuple[str, str]]
NOTHING = _("There was nothing to do.")
_F = TypeVar("_F", bound=forms.Form)


@dataclass(frozen=True)
class Done:
    """The result of an action."""

    #: A sentence for the log and the visitor; "" if the action did nothing.
    said: str = ""
    #: What went wrong, in one sentence each.
    but: Sequence[str] = ()
    #: Where to go next, instead of Action.back.
    onward: str = ""
    #: Why the action did nothing, if not for the reason in Action.idle.
    idle: str = ""


@dataclass(frozen=True)
class Action:
    """A verb together with the thing to which it applies."""

    #: The name of the thing, as subject() of the admin takes it; the log entry points to it.
    of: str
    #: The title of the page that asks.
    title: str
    #: What will happen, a sentence each.
    effects: Sequence[str]
    #: None if there is nothing to do.
    run: Callable[[], Done] | None
    #: Why there was nothing to do.
    idle: str | Promise = NOTHING
    trail: Trail = ()
    #: The form to fill in; run() reads it.
    form: forms.Form | None = None
    #: The page that the visitor comes from; "" for the last page of the trail.
    origin: str = ""
    #: Where to go afterwards, if not back to that page.
    back: str = ""


@dataclass(frozen=True)
class Verb:
    """An action that people can take on a thing."""

    #: The name of the verb's page.
    name: str
    #: The text on links and on the button.
    label: str | Promise
    #: A function that returns the action for the thing that a request's query names. It gets the admin, and raises
    #: Http404.
    ask: Callable[[Any, HttpRequest], Action]
    #: The permission: "change" means change_lock in the admin of locks.
    needs: str = "change"
    #: Whether the action destroys something or takes it from somebody. Its links are styled accordingly.
    deletes: bool = False


def filled(form: type[_F], request: HttpRequest, **initial: object) -> _F:
    """Return the form with the visitor's input, or as it is shown first."""
    return form(request.POST if request.method == "POST" else None, initial=initial, label_suffix="")
