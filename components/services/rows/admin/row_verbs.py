"""
The actions on one cached row, or on all rows of a model: refresh, remove, change the delay.

RowControls changes all rows of a model in parts. One request changes about MOST rows, and then shows the confirmation
again for the remaining buckets. Repeating an action has no further effect.
"""

from __future__ import annotations

from dataclasses import dataclass

from django import forms
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest

from components.control_room.names import shortened
from components.control_room.pages import ControlRoomAdmin
from components.control_room.verbs import Action, Done, Trail, Verb, filled
from components.exceptions import InvalidDuration, InvalidName
from components.services.rows import (
    SHORTEST_DELAY,
    CacheInfo,
    Changed,
    RowControls,
    RowInfo,
    RowReader,
    check_delay,
    name_and_key,
)
from components.services.rows.members import check_cache_name, check_key
from components.services.rows.models import cached_rows
from components.templatetags.control_room import duration, grouped, legible

MOST = 50_000  # rows that one request changes: about a second


class DelayForm(forms.Form):
    """The form for changing the delay."""

    delay = forms.FloatField(
        label="Delay in seconds",
        min_value=SHORTEST_DELAY,
        help_text="The time between two loads. It applies until the row is scheduled with another delay.",
        widget=forms.NumberInput(attrs={"autocomplete": "off", "step": "any"}),
    )

    def clean_delay(self) -> float:
        try:
            return check_delay(self.cleaned_data["delay"])
        except InvalidDuration as error:
            raise ValidationError(str(error)) from None


@dataclass(frozen=True)
class Target:
    """The target that the query of a request names: one row, or all scheduled rows of a name, from a bucket on."""

    name: str
    key: str | None
    #: None for all rows, and for a row that is neither on the schedule nor stored.
    info: RowInfo | None
    #: The number of rows on the schedule.
    count: int
    start: int = 0

    @classmethod
    def of(cls, request: HttpRequest) -> Target:
        if wanted := request.GET.get("row", ""):
            name, key = split(wanted)
            info = find_row(wanted)
            return cls(name, key, info, int(info is not None and info.delay is not None))
        name = request.GET.get("model", "")
        known = known_caches(RowReader()).get(name)
        if known is None:
            raise Http404(f"No row of {name!r} is on the schedule, and no model has rows of this name.")
        text = request.GET.get("bucket", "")
        start = int(text) if text.isascii() and text.isdecimal() and len(text) < 3 else 0
        return cls(name, None, None, known.count, start)

    @property
    def id(self) -> str:
        return self.name if self.key is None else f"{self.name}:{self.key}"

    @property
    def label(self) -> str:
        return shortened(legible(self.id))

    @property
    def has_page(self) -> bool:
        return self.key is None or self.info is not None

    @property
    def what(self) -> str:
        if self.key is not None:
            return f"the row {self.label}"
        return f"{'the rest of the' if self.start else 'all'} rows of {self.label}"

    @property
    def controls(self) -> RowControls:
        return RowControls(self.name)

    @property
    def effect(self) -> str:
        """Return the state of the target, in a sentence."""
        if self.key is None:
            return f"{rows(self.count)} of {self.label} {'is' if self.count == 1 else 'are'} on the schedule."
        if self.info is None or self.info.delay is None:
            return "It is not on the schedule, and is stored until it is too old."
        return f"It is loaded every {duration(self.info.delay)}."


def _refresh(pages: ControlRoomAdmin, request: HttpRequest) -> Action:
    target = Target.of(request)

    def run() -> Done:
        if target.key is None:
            changed = target.controls.refresh_all(start=target.start, most=MOST)
            said = f"{rows(changed.rows)} of {target.label} {_are(changed.rows)} due now."
            return _done(pages, "refresh", target, changed, said)
        absent = target.controls.refresh(target.key)
        return Done("" if absent else f"The row {target.label} is due now.")

    return Action(
        of=target.id,
        trail=_trail(pages, target),
        title=f"Refresh {target.what}",
        effects=[
            target.effect,
            f"{'It is' if target.key is not None else 'They are'} due now: the next free daemon, "
            "manage.py cacherows, loads what the database has.",
            "Until then, readers get the stored values.",
        ],
        run=run if target.count else None,
        idle=f"Nothing to refresh: {_none(target)} on the schedule.",
    )


def _remove(pages: ControlRoomAdmin, request: HttpRequest) -> Action:
    target = Target.of(request)

    def run() -> Done:
        if target.key is None:
            changed = target.controls.remove_all(start=target.start, most=MOST)
            said = f"Removed {rows(changed.rows)} of {target.label}."
            return _done(pages, "remove", target, changed, said)
        target.controls.remove(target.key)
        return Done(f"Removed the row {target.label}.")

    return Action(
        of=target.id,
        trail=_trail(pages, target),
        title=f"Remove {target.what}",
        effects=[target.effect, *_effects_of_removal(target)],
        run=run if (target.count if target.key is None else target.info) else None,
        idle=f"Nothing to remove: {_none(target)} on the schedule{', nor kept' if target.key is not None else ''}.",
        back=pages.find_url(target.name) if target.name in cached_rows() else pages.url("changelist"),
    )


def _delay(pages: ControlRoomAdmin, request: HttpRequest) -> Action:
    target = Target.of(request)
    if not target.count:
        raise Http404(f"Nothing has a delay to change: {_none(target)} on the schedule.")
    known = target.info.delay if target.info else None
    form = filled(DelayForm, request, delay=f"{known:g}" if known else None)

    def run() -> Done:
        delay = form.cleaned_data["delay"]
        if known == delay:
            return Done(idle=f"The delay of the row {target.label} is {duration(delay)} already.")
        if target.key is None:
            changed = target.controls.set_delay_of_all(delay, start=target.start, most=MOST)
            said = f"Set the delay of {rows(changed.rows)} of {target.label} to {duration(delay)}."
            return _done(pages, "delay", target, changed, said)
        if target.controls.set_delay(delay, target.key):
            return Done(but=[f"The row {target.label} left the schedule."])
        was = duration(known) if known else ""
        return Done(f"Set the delay of the row {target.label} to {duration(delay)}. It was {was}.")

    return Action(
        of=target.id,
        trail=_trail(pages, target),
        title=f"Change the delay of {target.what}",
        effects=[
            target.effect,
            "A row is never older than its delay and a lease. A shorter delay counts from now; a longer one from the "
            "next load.",
        ],
        run=run,
        form=form,
    )


VERBS = (
    Verb("refresh", "Refresh", _refresh, needs="refresh"),
    Verb("delay", "Change delay", _delay),
    Verb("remove", "Remove", _remove, needs="remove", deletes=True),
)


def _done(pages: ControlRoomAdmin, verb: str, target: Target, changed: Changed, said: str) -> Done:
    if not changed.rest:
        return Done(said if changed.rows else "")
    but = f"About {changed.left:.0%} are left: one request takes about {rows(MOST)}. Go on with the rest."
    return Done(said, [but], onward=pages.url(verb, model=target.name, bucket=changed.rest))


def _trail(pages: ControlRoomAdmin, target: Target) -> Trail:
    what = "Cached row" if target.key is not None else "Cached rows of"
    return [(f"{what} {target.label}", pages.find_url(target.id))] if target.has_page else []


def known_caches(reader: RowReader) -> dict[str, CacheInfo]:
    """Return the caches that have rows on the schedule or that models declare, by their names."""
    known = {name: CacheInfo(name, 0, 0, 0.0, False) for name in cached_rows()}
    known |= {info.name: info for info in reader.names()}
    return dict(sorted(known.items()))


def find_row(wanted: str) -> RowInfo | None:
    """Return the row that is written "market.item:42"; None if there is none."""
    name, key = name_and_key(wanted)
    try:
        return RowReader().find(name, key)
    except InvalidName:  # no row can have this name
        return None


def split(wanted: str) -> tuple[str, str]:
    """Return the name and the key of a row. Raises Http404, with the reason, if they cannot be such."""
    name, key = name_and_key(wanted)
    try:
        return check_cache_name(name), check_key(key)
    except InvalidName as error:
        raise Http404(str(error)) from None


def rows(count: int) -> str:
    return f"{grouped(count)} row{'' if count == 1 else 's'}"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _none(target: Target) -> str:
    return f"{target.what} is not" if target.key is not None else f"no row of {target.label} is"


def _effects_of_removal(target: Target) -> list[str]:
    if target.key is None:
        return [
            "They leave the schedule, and their stored values are dropped. No daemon loads them any more.",
            "Rows that were cached because somebody read them stay until they are too old.",
            "In the database nothing changes. Readers load them from there.",
        ]
    return [
        "It leaves the schedule, and its stored values are dropped. No daemon loads it any more.",
        "In the database nothing changes. Readers load it from there.",
    ]
