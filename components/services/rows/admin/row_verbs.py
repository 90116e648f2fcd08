"""
The actions on one cached row, or on all rows of a model: refresh, remove, change the delay.

RowControls changes all rows of a model in parts. One request changes about MOST rows, and then shows the confirmation
again for the remaining buckets. Repeating an action has no further effect.
"""

from __future__ import annotations

from dataclasses import dataclass

from django import forms
from django.core.validators import MaxValueValidator
from django.http import Http404, HttpRequest
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from components.control_room.pages import ControlRoomAdmin, number_in
from components.control_room.verbs import Action, Done, Trail, Verb, filled
from components.exceptions import InvalidName
from components.formatting import duration, grouped, legible, shortened
from components.kit.validation import LONGEST
from components.services.rows import (
    SHORTEST_DELAY,
    CacheInfo,
    Changed,
    RowControls,
    RowInfo,
    RowReader,
    name_and_key,
)
from components.services.rows.models import cached_rows

MOST = 50_000  # rows that one request changes: about a second


class DelayForm(forms.Form):
    """The form for changing the delay."""

    delay = forms.FloatField(
        label=_("Interval in seconds"),
        min_value=SHORTEST_DELAY,
        validators=[MaxValueValidator(LONGEST)],
        help_text=_(
            "The time between two loads. It applies until the code schedules the row with another one."
        ),
        widget=forms.NumberInput(attrs={"autocomplete": "off", "step": "any"}),
    )


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
            name, key = name_and_key(wanted)
            try:
                info = RowReader().find(name, key)
            except InvalidName:
                raise Http404(no_row(wanted)) from None
            return cls(name, key, info, int(info is not None and info.delay is not None))
        name = request.GET.get("model", "")
        known = known_caches(RowReader()).get(name)
        if known is None:
            raise Http404(no_cache(name))
        return cls(name, None, None, known.count, number_in(request.GET.get("bucket", "")) or 0)

    @property
    def id(self) -> str:
        return self.name if self.key is None else f"{self.name}:{self.key}"

    @property
    def label(self) -> str:
        return shortened(legible(self.id))

    @property
    def effect(self) -> str:
        """Return the state of the target, in a sentence."""
        if self.key is None:
            return ngettext(
                "%(count)s row of %(name)s is reloaded regularly.",
                "%(count)s rows of %(name)s are reloaded regularly.",
                self.count,
            ) % {"count": grouped(self.count), "name": self.label}
        if self.info is None or self.info.delay is None:
            return gettext("It is not reloaded regularly, and stays in the cache until it is too old.")
        return gettext("It is reloaded every %(time)s.") % {"time": duration(self.info.delay)}

    def say(self, row: str, rows: str, rest: str = "") -> str:
        """Return the text that fits: about one *row*, all *rows* of a name, or the *rest* of them."""
        text = row if self.key is not None else rest if rest and self.start else rows
        return text % {"name": self.label}


def _refresh(pages: ControlRoomAdmin, request: HttpRequest) -> Action:
    target = Target.of(request)

    def run() -> Done:
        if target.key is None:
            changed = RowControls(target.name).refresh_all(start=target.start, most=MOST)
            said = ngettext(
                "%(count)s row of %(name)s will be reloaded next.",
                "%(count)s rows of %(name)s will be reloaded next.",
                changed.rows,
            )
            return _done(pages, "refresh", target, changed, said)
        absent = RowControls(target.name).refresh(target.key)
        return Done(
            "" if absent else gettext("The row %(name)s will be reloaded next.") % {"name": target.label}
        )

    return Action(
        of=target.id,
        trail=_trail(pages, target),
        title=target.say(
            row=gettext("Reload the row %(name)s"),
            rows=gettext("Reload all rows of %(name)s"),
            rest=gettext("Reload the rest of the rows of %(name)s"),
        ),
        effects=[
            target.effect,
            target.say(
                row=gettext("The next free daemon (manage.py cacherows) loads it from the database."),
                rows=gettext("The next free daemon (manage.py cacherows) loads them from the database."),
            ),
            gettext("Until then, readers get the values in the cache."),
        ],
        run=run if target.count else None,
        idle=target.say(
            row=gettext("There is nothing to reload: the row %(name)s is not reloaded regularly."),
            rows=gettext("There is nothing to reload: no row of %(name)s is reloaded regularly."),
        ),
    )


def _remove(pages: ControlRoomAdmin, request: HttpRequest) -> Action:
    target = Target.of(request)

    def run() -> Done:
        if target.key is None:
            changed = RowControls(target.name).remove_all(start=target.start, most=MOST)
            said = ngettext(
                "Removed %(count)s row of %(name)s from the cache.",
                "Removed %(count)s rows of %(name)s from the cache.",
                changed.rows,
            )
            return _done(pages, "remove", target, changed, said)
        RowControls(target.name).remove(target.key)
        return Done(gettext("Removed the row %(name)s from the cache.") % {"name": target.label})

    return Action(
        of=target.id,
        trail=_trail(pages, target),
        title=target.say(
            row=gettext("Remove the row %(name)s from the cache"),
            rows=gettext("Remove all rows of %(name)s from the cache"),
            rest=gettext("Remove the rest of the rows of %(name)s from the cache"),
        ),
        effects=[target.effect, *_effects_of_removal(target)],
        run=run if (target.count if target.key is None else target.info) else None,
        idle=target.say(
            row=gettext("There is nothing to remove: the row %(name)s is not in the cache."),
            rows=gettext("There is nothing to remove: no row of %(name)s is reloaded regularly."),
        ),
        back=pages.find_url(target.name) if target.name in cached_rows() else pages.url("changelist"),
    )


def _delay(pages: ControlRoomAdmin, request: HttpRequest) -> Action:
    target = Target.of(request)
    if not target.count:
        raise Http404(
            target.say(
                row=gettext("There is no interval to change: the row %(name)s is not reloaded regularly."),
                rows=gettext("There is no interval to change: no row of %(name)s is reloaded regularly."),
            )
        )
    known = target.info.delay if target.info else None
    form = filled(DelayForm, request, delay=f"{known:g}" if known else None)

    def run() -> Done:
        delay = form.cleaned_data["delay"]
        facts = {"name": target.label, "time": duration(delay), "former": duration(known) if known else ""}
        if known == delay:
            return Done(idle=gettext("The interval of the row %(name)s is %(time)s already.") % facts)
        if target.key is None:
            changed = RowControls(target.name).set_delay_of_all(delay, start=target.start, most=MOST)
            said = ngettext(
                "Set the interval of %(count)s row of %(name)s to %(time)s.",
                "Set the interval of %(count)s rows of %(name)s to %(time)s.",
                changed.rows,
            )
            return _done(pages, "delay", target, changed, said, time=duration(delay))
        if RowControls(target.name).set_delay(delay, target.key):
            return Done(but=[gettext("The row %(name)s is no longer reloaded regularly.") % facts])
        return Done(gettext("Set the interval of the row %(name)s to %(time)s. It was %(former)s.") % facts)

    return Action(
        of=target.id,
        trail=_trail(pages, target),
        title=target.say(
            row=gettext("Change the interval of the row %(name)s"),
            rows=gettext("Change the interval of all rows of %(name)s"),
            rest=gettext("Change the interval of the rest of the rows of %(name)s"),
        ),
        effects=[
            target.effect,
            gettext("A shorter interval applies at once; a longer one from the next load on."),
        ],
        run=run,
        form=form,
    )


VERBS = (
    Verb("refresh", _("Reload now"), _refresh, needs="refresh"),
    Verb("delay", _("Change the interval"), _delay),
    Verb("remove", _("Remove from the cache"), _remove, needs="remove", deletes=True),
)


def _done(
    pages: ControlRoomAdmin, verb: str, target: Target, changed: Changed, said: str, **facts: str
) -> Done:
    """Return what happened. *said* is a sentence about %(count)s rows of %(name)s."""
    told = said % {"count": grouped(changed.rows), "name": target.label, **facts}
    if not changed.rest:
        return Done(told if changed.rows else "")
    but = gettext(
        "About %(percent)s%% are left, because one request handles about %(most)s rows. Continue with the rest."
    )
    left = but % {"percent": round(100 * changed.left), "most": grouped(MOST)}
    return Done(told, [left], onward=pages.url(verb, model=target.name, bucket=changed.rest))


def _trail(pages: ControlRoomAdmin, target: Target) -> Trail:
    if target.key is not None and target.info is None:  # it has no page
        return []
    title = title_of_row(target.label) if target.key is not None else title_of_rows(target.label)
    return [(title, pages.find_url(target.id))]


def title_of_row(name: str) -> str:
    return gettext("Cached row %(name)s") % {"name": name}


def title_of_rows(name: str) -> str:
    return gettext("Cached rows of %(name)s") % {"name": name}


def no_cache(name: str) -> str:
    """Return the sentence that there are no rows of this name."""
    return gettext("No row of %(name)r is reloaded regularly, and no model has this name.") % {"name": name}


def no_row(name: str) -> str:
    """Return the sentence that no row, and no model, can have this name."""
    return gettext("No cached row can be called %(name)r.") % {"name": shortened(name)}


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


def _effects_of_removal(target: Target) -> list[str]:
    if target.key is None:
        return [
            gettext("Their values are removed from the cache, and no daemon reloads them any more."),
            gettext(
                "Rows that are in the cache only because somebody read them stay until they are too old."
            ),
            gettext("Nothing changes in the database. Readers load them from there."),
        ]
    return [
        gettext("Its values are removed from the cache, and no daemon reloads it any more."),
        gettext("Nothing changes in the database. Readers load it from there."),
    ]
