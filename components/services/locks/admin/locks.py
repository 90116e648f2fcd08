"""
The Locks page: what is held, by whom, since when, who waits, and how often they had to.

It looks through LockReader. A page of the list costs six round trips, however many locks are held, and a lock five.
What changes something is one act: to release a lock by force. It names the holder that the visitor saw, so that
another who has it by then is not hit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern
from django.utils import timezone

from components.control_room.base import Action, Done, Paging
from components.control_room.names import NamedPages, mean, searched, shortened, who
from components.exceptions import InvalidName
from components.services.locks import LockInfo, LockReader
from components.services.locks.keys import LockKeys
from components.templatetags.control_room import duration, grouped, legible

WAITERS = 50  # that a page shows


@dataclass(frozen=True)
class Row:
    """A lock as the pages show it."""

    info: LockInfo

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
        """Who holds it, for the query of a URL."""
        return legible(self.info.token)

    @property
    def who(self) -> str:
        return who(self.info.holder, f"an unknown holder with the token {self.info.token}")


class LockAdmin(NamedPages):
    def get_urls(self) -> list[URLPattern]:
        return [
            self.page("", "changelist", self.held),
            self.page("lock/", "lock", self.lock),
            self.page("release/", "release", self.release, needs="change"),
            *super().get_urls(),
        ]

    def find_url(self, name: str) -> str:
        return self.url("lock", key=name)

    def label(self, name: str) -> str:
        return legible(LockKeys.name_of(name) or name)

    def held(self, request: HttpRequest) -> HttpResponse:
        texts, template = searched(request), "admin/components/locks/list.html"
        if texts:
            if info := _search(texts):
                return HttpResponseRedirect(self.url("lock", key=info.key))
            return self.render(request, template, "Locks", {"text": texts[0]}, live=False)
        reader = LockReader()
        paging = Paging.of(request, total=reader.count())
        infos = reader.held(offset=paging.offset, limit=paging.size)
        infos.sort(key=lambda info: (info.fence, info.key))  # longest held first: rows keep their places
        context = {"rows": [Row(info) for info in infos], "paging": paging}
        return self.render(request, template, "Locks", context)

    def lock(self, request: HttpRequest) -> HttpResponse:
        info = _find(request)
        row = Row(info)
        context = {
            "row": row,
            "info": info,
            "subject": self.subject(info.key),
            "waiters": LockReader().waiters(info.key, limit=WAITERS) if info.waiting else [],
        }
        return self.render(request, "admin/components/locks/lock.html", f"Lock {row.name}", context)

    def release(self, request: HttpRequest) -> HttpResponse:
        row = Row(_find(request))
        info, seen = row.info, request.GET.get("holder", "")
        is_idle = not info.is_held or row.holder_id != seen
        page = self.url("lock", key=info.key)

        def run() -> Done:
            if is_idle or not LockReader().force_release(info.key, info.token, info.fence):
                return Done()
            return Done(f"Released the lock {row.name} by force. It was held by {_history(row)}.")

        action = Action(
            title=f"Release the lock {row.name} by force",
            button="Release by force",
            effects=_effects(row),
            run=run,
            subject=self.subject(info.key),
            idle=f"Nothing to release: that holder does not hold the lock {row.name} any more.",
            is_idle=is_idle,
            back=page,
        )
        return self.confirm(request, action, trail=[(f"Lock {row.name}", page)])


def _search(texts: Sequence[str]) -> LockInfo | None:
    reader = LockReader()
    for text in texts:
        try:
            if info := reader.find(text):
                return info
        except InvalidName:  # no lock can be called so
            continue
    return None


def _find(request: HttpRequest) -> LockInfo:
    """
    Return the lock that the query names by its key.

    One that lock() makes is free where nothing is known of it, as after a release while its page is open. Raises
    Http404 for a key of somebody's own of which nothing is known: it may be no lock's.
    """
    key = request.GET.get("key", "")
    try:
        info = LockReader().at(key)
    except InvalidName as error:
        raise Http404(str(error)) from None
    if info is None and LockKeys.name_of(key) is None:
        raise Http404(f"No lock at the key {key!r} is held, or was waited for or lost within a day.")
    return info or LockInfo.of_free(key)


def _history(row: Row) -> str:
    """By whom it is held, since when, with which fence."""
    since = row.info.since
    begun = f", since {timezone.localtime(since):%Y-%m-%d %H:%M:%S %Z}" if since else ""
    return f"{row.who}{begun}, with the fence {row.info.fence}"


def _effects(row: Row) -> list[str]:
    info = row.info
    end = "."
    if info.remaining is not None:
        end = f"; its time ends in {duration(info.remaining)} if it is not renewed."
    waiting = (
        f"{grouped(info.waiting)} wait for it: one of them gets it at once."
        if info.waiting
        else "Nobody waits for it: it is free then."
    )
    return [
        f"It is held by {_history(row)}{end}",
        waiting,
        "Who holds it is not stopped. It learns that the lock is lost at its next renewal, or when it asks or "
        "releases it; until then two may be at work.",
        "What it writes with its fence is refused once a later holder has written; what it does without one is not.",
    ]
