"""
The Locks page: the locks that are held, their holders and since when, the waiters, and figures of past waits.

A page of the list costs six round trips, however many locks are held, or seven with the times for which they were
held; and a lock five, or eight with its history. The only action is to release a lock by force. The URL names the
holder that the visitor saw, so a later holder keeps it.
"""

from dataclasses import dataclass

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from components.conf import conf
from components.control_room.pages import ControlRoomAdmin, Paging, who
from components.control_room.verbs import Action, Done, Verb
from components.exceptions import InvalidName
from components.formatting import duration, grouped, legible, mean, shortened
from components.kit.validation import MAX_NAME
from components.services.counters import Series, pattern_of
from components.services.counters.charts import past_times
from components.services.locks import LockInfo, LockReader
from components.services.locks.keys import LockKeys

WAITERS = 50  # waiters on a page


@dataclass(frozen=True)
class Row:
    """A lock as the pages show it."""

    info: LockInfo
    #: For how long locks of this kind were held, in the slices of the last two hours; None if that is not measured.
    held: Series | None = None

    @property
    def name(self) -> str:
        return legible(self.info.name)

    @property
    def short_name(self) -> str:
        return shortened(self.name)

    @property
    def has_own_key(self) -> bool:
        return self.info.name == self.info.key

    @property
    def mean_wait(self) -> float | None:
        return mean(self.info.waited, self.info.waits)

    @property
    def holder_id(self) -> str:
        """Return the id of the holder, for a URL."""
        return legible(self.info.token)

    @property
    def who(self) -> str:
        unknown = gettext("an unknown holder with the token %(token)s") % {"token": self.info.token}
        return who(self.info.holder, unknown)


class LockAdmin(ControlRoomAdmin):
    purpose = _("A lock lets only one caller at a time do something.")

    def get_urls(self) -> list[URLPattern]:
        return [
            self.page("", "changelist", self.held),
            self.page("lock/", "lock", self.lock),
            *super().get_urls(),
        ]

    def find_url(self, name: str) -> str:
        return self.url("lock", key=name)

    def label(self, name: str) -> str:
        return legible(LockKeys.name_of(name) or name)

    def held(self, request: HttpRequest) -> HttpResponse:
        reader = LockReader()

        def rows(paging: Paging) -> list[Row]:
            infos = reader.held(offset=paging.offset, limit=paging.size)
            # Those that are waited for come first, then those held longest, so that rows keep their places.
            infos.sort(key=lambda info: (not info.waiting, info.fence, info.key))
            held = past_times("locks-held", [pattern_of(info.name) for info in infos]) if has_past else {}
            return [Row(info, held.get(pattern_of(info.name))) for info in infos]

        has_past = conf().count_services and request.user.has_perm("components.view_counter")
        template = "admin/components/locks/list.html"
        return self.list_page(request, template, find=_search, total=reader.count, rows=rows)

    def lock(self, request: HttpRequest) -> HttpResponse:
        info = _find(request)
        row = Row(info)
        context = {
            "row": row,
            "info": info,
            "subject": self.subject(info.key),
            "pattern": pattern_of(info.name),
            "measured": _measured() if request.user.has_perm("components.view_counter") else [],
            "waiters": LockReader().waiters(info.key, limit=WAITERS) if info.waiting else [],
        }
        return self.render(request, "admin/components/locks/lock.html", _title(row), context)

    def release(self, request: HttpRequest) -> Action:
        row = Row(_find(request))
        info = row.info

        def run() -> Done:
            if not LockReader().force_release(info.key, info.token, info.fence):
                return Done()
            return Done(_released(row))

        is_seen = info.is_held and row.holder_id == request.GET.get("holder", "")
        return Action(
            of=info.key,
            title=gettext("Release the lock %(lock)s by force") % {"lock": row.name},
            effects=_effects(row),
            run=run if is_seen else None,
            idle=gettext("Nothing to release: that holder no longer holds the lock %(lock)s.")
            % {"lock": row.name},
            trail=[(_title(row), self.find_url(info.key))],
        )

    verbs = (Verb("release", _("Release by force"), release, deletes=True),)


def _search(text: str) -> str | None:
    try:
        info = LockReader().find(text)
    except InvalidName:  # no lock can have this name
        return None
    return info.key if info else None


def _find(request: HttpRequest) -> LockInfo:
    """
    Return the lock that the query names by its key. A lock of lock() of which nothing is stored is shown as free, for
    example after it was released while its page was open. Raises Http404 for a key of the caller's own of which
    nothing is stored, because it may not be the key of a lock.
    """
    key = request.GET.get("key", "")
    try:
        info = LockReader().at(key)
    except InvalidName:
        raise Http404(
            gettext("No lock can have the key %(key)r: a name is text of 1 to %(most)s characters.")
            % {"key": shortened(key), "most": MAX_NAME}
        ) from None
    if info is None and LockKeys.name_of(key) is None:
        raise Http404(
            gettext("There is no lock with the key %(key)r, or nobody has used it for a day.") % {"key": key}
        )
    return info or LockInfo.of_free(key)


def _measured() -> list[tuple[str, str, str]]:
    """Return the events whose times are measured, and what their charts say."""
    return [
        ("locks-held", gettext("Given back"), gettext("How long it was held")),
        ("locks-waited", gettext("Waits"), gettext("How long callers waited")),
        ("locks-refused", gettext("Refused"), gettext("How long callers waited in vain")),
    ]


def _title(row: Row) -> str:
    return gettext("Lock %(lock)s") % {"lock": row.name}


def _facts(row: Row) -> dict[str, object]:
    """Return what sentences say about the holder; *since* is "" if it is not known."""
    since = row.info.since
    begun = f"{timezone.localtime(since):%Y-%m-%d %H:%M:%S %Z}" if since else ""
    return {"lock": row.name, "holder": row.who, "since": begun, "fence": row.info.fence}


def _released(row: Row) -> str:
    facts = _facts(row)
    if not facts["since"]:
        said = gettext(
            "Released the lock %(lock)s by force. It was held by %(holder)s, with the fencing token %(fence)s."
        )
    else:
        said = gettext(
            "Released the lock %(lock)s by force. It was held by %(holder)s, since %(since)s, with the fencing "
            "token %(fence)s."
        )
    return said % facts


def _effects(row: Row) -> list[str]:
    info, facts = row.info, _facts(row)
    held = gettext("It is held by %(holder)s, with the fencing token %(fence)s.")
    if facts["since"]:
        held = gettext("It is held by %(holder)s, since %(since)s, with the fencing token %(fence)s.")
    effects = [held % facts]
    if info.remaining is not None:
        effects.append(
            gettext("It expires in %(time)s if it is not renewed.") % {"time": duration(info.remaining)}
        )
    if info.waiting:
        effects.append(
            gettext("Callers waiting for it: %(count)s. One of them gets it at once.")
            % {"count": grouped(info.waiting)}
        )
    else:
        effects.append(gettext("Nobody waits for it, so it becomes free."))
    return [
        *effects,
        gettext(
            "The holder is not stopped. It learns that the lock is lost when it renews it, releases it, or checks "
            "it. Until then, two holders may be working."
        ),
        gettext(
            "Once a later holder has written, writes of this holder that carry its fencing token are refused. Its "
            "other writes are not."
        ),
    ]
