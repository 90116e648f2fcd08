"""
The Address books page: how large each is, how often and how fast it is searched, what is chosen most in it.

It looks through AddressBookReader. A page of the list costs five round trips, however many books there are. Who may
view the page sees the names in all books; what others typed nobody sees, as it is kept nowhere. A book that a model
feeds can be rebuilt, by a worker: a table of a million rows is no matter of one request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter

from django.core.exceptions import ImproperlyConfigured
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.defaultfilters import filesizeformat
from django.urls import URLPattern
from django.utils.text import capfirst

from components.control_room.base import Action, Done, Paging, Trail
from components.control_room.names import NamedPages, searched, shortened
from components.exceptions import BookNotFound, InvalidPrefix
from components.kit.compat import InvalidTask, TaskResult, TaskResultStatus
from components.services.autocomplete import AddressBook, AddressBookReader, BookInfo, BookUsage, Completions
from components.services.autocomplete.models import ModelBooks, feeding, model_books
from components.templatetags.control_room import grouped, legible

TOP = 20  # entries that a page shows, and completions
SLOWEST = 10  # minutes of the hour


@dataclass(frozen=True)
class Row:
    """A book as the pages show it."""

    #: Its name, as it is.
    id: str
    #: None of one that a model feeds and that was never loaded or has been removed, and of many, "guild:{}".
    info: BookInfo | None
    usage: BookUsage | None = None

    @property
    def name(self) -> str:
        return shortened(legible(self.id))

    @property
    def model(self) -> str:
        """The model that feeds it, such as "market.player"; "" if none does."""
        fed = feeding(self.id)
        return fed.model._meta.label_lower if fed else ""

    @property
    def parts(self) -> str:
        """For each of what there is one, of many that a model feeds, such as "guild"; "" of a single one."""
        fed = feeding(self.id)
        return fed.by.replace("__", " ") if isinstance(fed, ModelBooks) else ""

    @property
    def what(self) -> str:
        return f"{'address books' if self.parts else 'address book'} {self.name}"

    @property
    def slowest(self) -> float | None:
        """Seconds of the slowest search within an hour."""
        return self.usage.slowest[0].seconds if self.usage and self.usage.slowest else None


@dataclass(frozen=True)
class Trial:
    """What a prefix finds."""

    prefix: str
    found: Completions | None = None
    seconds: float | None = None
    #: Why it is none.
    problem: str = ""


class AddressBookAdmin(NamedPages):
    def get_urls(self) -> list[URLPattern]:
        return [
            self.page("", "changelist", self.overview),
            self.page("book/", "book", self.book),
            self.page("rebuild/", "rebuild", self.rebuild, needs="change"),
            self.page("remove/", "remove", self.remove, needs="delete"),
            *super().get_urls(),
        ]

    def find_url(self, name: str) -> str:
        return self.url("book", book=name)

    def has_view_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return self._has(request, "view") or self._has(request, "rebuild")

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """To change a book is to rebuild it."""
        return self._has(request, "rebuild")

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return self._has(request, "remove")

    def _has(self, request: HttpRequest, verb: str) -> bool:
        return request.user.has_perm(f"{self.opts.app_label}.{verb}_{self.opts.model_name}")

    def overview(self, request: HttpRequest) -> HttpResponse:
        reader, texts = AddressBookReader(), searched(request)
        for text in texts:
            if reader.find(text):
                return HttpResponseRedirect(self.find_url(text))
        beginning = texts[0] if texts else ""
        paging = Paging.of(request, total=reader.count(beginning))
        infos = reader.page(beginning, offset=paging.offset, limit=paging.size)
        usages = reader.usage([info.name for info in infos])
        context = {
            "text": beginning,
            "paging": paging,
            "rows": [Row(info.name, info, usage) for info, usage in zip(infos, usages, strict=True)],
            "sources": [] if beginning or paging.offset else _sources(reader),
        }
        template = "admin/components/books/list.html"
        return self.render(request, template, "Address books", context, live=not beginning)

    def book(self, request: HttpRequest) -> HttpResponse:
        reader, row = AddressBookReader(), _find(request)
        prefix = request.GET.get("prefix")
        there = row.info is not None
        usage = reader.usage([row.id])[0] if there else None
        context = {
            "row": replace(row, usage=usage),
            "info": row.info,
            "minutes": usage.slowest[:SLOWEST] if usage else [],
            "subject": self.subject(row.id),
            "loading": row.info.loading if row.info else reader.loading(row.id),
            "top": AddressBook(row.id).top(TOP) if there else [],
            "trial": _try(row.id, prefix) if there and prefix is not None else None,
        }
        template, title = "admin/components/books/book.html", capfirst(row.what)
        return self.render(request, template, title, context, live=prefix is None)

    def rebuild(self, request: HttpRequest) -> HttpResponse:
        row = _find(request)
        page = self.find_url(row.id)
        action = Action(
            title=f"Rebuild the {row.what}",
            button="Rebuild",
            effects=_effects_of_rebuild(row),
            run=lambda: _rebuild(row),
            subject=self.subject(row.id),
            idle=f"Nothing to rebuild it from: no model feeds the address book {row.name}. Load it anew where it was "
            "loaded, with replace=True.",
            is_idle=not row.model,
            back=page,
        )
        return self.confirm(request, action, trail=self._trail(row))

    def remove(self, request: HttpRequest) -> HttpResponse:
        row = _find(request)

        def run() -> Done:
            if not row.info:
                return Done()
            AddressBook(row.id).erase()
            return Done(f"Removed the address book {row.name}. It had {_entries(row.info.count)}.")

        action = Action(
            title=f"Remove the address book {row.name}",
            button="Remove",
            effects=_effects_of_removal(row, row.info) if row.info else [],
            run=run,
            subject=self.subject(row.id),
            idle=f"Nothing to remove: the address book {row.name} is not there.",
            is_idle=not row.info,
            back=self.url("changelist"),
            origin=self.find_url(row.id),
        )
        return self.confirm(request, action, trail=self._trail(row))

    def _trail(self, row: Row) -> Trail:
        return [(capfirst(row.what), self.find_url(row.id))]


def _find(request: HttpRequest) -> Row:
    """The book that the query names."""
    name = request.GET.get("book", "")
    info = AddressBookReader().find(name)
    if info is None and (not name or feeding(name) is None):
        raise Http404(f"There is no address book {name!r}.")
    return Row(name, info)


def _sources(reader: AddressBookReader) -> Sequence[Row]:
    """What models feed, and is not in the list: many books under one name, and books that are not there."""
    names = list(model_books())
    return [Row(name, None) for name, info in zip(names, reader.look(names), strict=True) if info is None]


def _try(name: str, prefix: str) -> Trial:
    began = perf_counter()
    try:
        found = AddressBook(name).complete(prefix, limit=TOP)
    except InvalidPrefix as error:
        return Trial(prefix, problem=str(error))
    except BookNotFound as error:  # it was removed since the page began
        raise Http404(str(error)) from None
    return Trial(prefix, found, perf_counter() - began)


def _rebuild(row: Row) -> Done:
    if not row.model:
        return Done()
    try:
        # Where TASKS does not have what the settings name, it cannot be imported; the other pages are not to suffer.
        from components.services.autocomplete.tasks import rebuilding

        result = rebuilding().enqueue(row.id)
    except (InvalidTask, ImproperlyConfigured) as error:
        return Done(but=[f"No task can rebuild it: {error} COMPONENTS names the TASKS alias and the queue."])
    return _told(row, result)


def _told(row: Row, result: TaskResult[..., int | None]) -> Done:
    """Backends that run a task at once, in the request, are done with it."""
    if result.status is TaskResultStatus.SUCCESSFUL:
        return Done(f"Rebuilt the {row.what}.")
    if result.status is TaskResultStatus.FAILED:
        kinds = ", ".join(error.exception_class_path for error in result.errors)
        return Done(
            but=[f"The rebuild of the {row.what} failed with {kinds}. What was there is searched as before."]
        )
    return Done(f"The next free worker rebuilds the {row.what}: the task {result.id}.")


def _effects_of_rebuild(row: Row) -> list[str]:
    info = row.info
    effects = [f"A worker makes it, from the table of {row.model}. Until then nothing is found in it."]
    if row.parts:
        effects = [
            f"A worker makes a book for each {row.parts}, one after the other, from the table of {row.model}, and "
            "removes those of which it has no row.",
            "Each is searched as it was until the new one is whole. What was selected, and how often, stays.",
        ]
    if info:
        effects = [
            f"A worker makes it what the table of {row.model} is. It has {_entries(info.count)} now.",
            "It is built beside the old one, which is searched until the new one is whole; what changes meanwhile is "
            "in both. What was selected, and how often, stays.",
        ]
    if info and info.loading is not None:
        effects.append(
            f"A load of it runs now, and has {_entries(info.loading)}; or it has died. The rebuild ends it."
        )
    return [
        *effects,
        "How far it is can be seen on the page of the book, and on that of the task among the queues.",
    ]


def _effects_of_removal(row: Row, info: BookInfo) -> list[str]:
    effects = [
        f"It has {_entries(info.count)}, {filesizeformat(info.bytes)}. Nothing is found in it any more.",
        f"What was selected, and how often, is forgotten: that of {_entries(info.selected)}.",
        f"Rows of {row.model} that are saved from now on are in it again, and all others once it is rebuilt."
        if row.model
        else "Who adds an entry to it from now on makes it anew.",
    ]
    if info.loading is not None:
        effects.append(f"The load that runs, and has {_entries(info.loading)}, ends with an error.")
    return [*effects, "This cannot be undone."]


def _entries(count: int) -> str:
    return f"{grouped(count)} entr{'y' if count == 1 else 'ies'}"
