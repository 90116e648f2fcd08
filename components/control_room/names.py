"""
Pages of things whose names may hold anything: line feeds, markup, two dots, hundreds of characters.

Such a name goes into the query of a URL. In the log, whose entries Django puts into paths, it is percent-quoted; and
what people read of it, there and in titles, is legible(): no database takes a NUL.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, unquote

from django.http import HttpRequest

from components.control_room.base import ControlRoomAdmin
from components.kit.leases import Holder
from components.models import Anchor
from components.templatetags.control_room import legible


class NamedPages(ControlRoomAdmin):
    """The admin of such things. A subclass says where the page of one is."""

    def find_url(self, name: str) -> str:
        """The page of the thing that is called so."""
        raise NotImplementedError

    def label(self, name: str) -> str:
        """What people call it."""
        return legible(name)

    def subject(self, name: str) -> Anchor:
        """What a log entry about it points to."""
        # Dots too: "." and ".." mean something in a path.
        anchor: Anchor = self.model(pk=quote(name, safe="").replace(".", "%2E"))
        anchor.label = self.label(name)
        return anchor

    def subject_url(self, name: str) -> str:
        return self.find_url(unquote(name))

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        return self.subject(unquote(object_id))


def searched(request: HttpRequest) -> list[str]:
    """What the visitor searches for: as it was typed, and without the white space around it."""
    typed = request.GET.get("q", "")
    return [text for text in dict.fromkeys([typed, typed.strip()]) if text.strip()]


def who(holder: Holder, unknown: str) -> str:
    """A holder in half a sentence; *unknown* if its id tells nothing."""
    if not holder.host:
        return legible(unknown)
    owner = f"{holder.owner} (" if holder.owner else ""
    place = f"process {holder.process} on {holder.host}, {holder.thread}"
    return legible(f"{owner}{place}{')' if owner else ''}")


def shortened(name: str) -> str:
    """*name* for a list: of a very long one the start and the end."""
    return name if len(name) <= 100 else f"{name[:60]}\N{HORIZONTAL ELLIPSIS}{name[-39:]}"


def mean(total: float, count: int) -> float | None:
    return total / count if count else None
