"""Names of things and of holders as the pages write them, and what a visitor searches for."""

from django.http import HttpRequest
from django.utils.translation import gettext

from components.formatting import legible
from components.kit.leases import Holder


def searched(request: HttpRequest) -> list[str]:
    """Return what the visitor searches for: as they typed it, and without the white space around it."""
    typed = request.GET.get("q", "")
    return [text for text in dict.fromkeys([typed, typed.strip()]) if text.strip()]


def number_in(text: str) -> int | None:
    """Return the number that a part of a query names; None if it is none, or larger than any that is stored."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 17 else None


def who(holder: Holder, unknown: str) -> str:
    """Return the holder as a part of a sentence; *unknown* if its id tells nothing."""
    if not holder.host:
        return legible(unknown)
    place = gettext("process %(process)s on %(host)s, %(thread)s") % vars(holder)
    return legible(f"{holder.owner} ({place})" if holder.owner else place)
