"""
The pages of address books: the size of each book, how often and how fast it is searched, and the names that are
chosen most often.

A page of the list costs five round trips, however many books there are. People who may view it see the names in all
books. Nobody sees what others typed, because it is not stored. Books that a model feeds are rebuilt by a worker,
because loading a million rows takes too long for a request.
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

from components.control_room.names import searched, shortened
from components.control_room.pages import ControlRoomAdmin, Paging
from components.control_room.verbs import Action, Done, Trail, Verb
from components.exceptions import BookNotFound, InvalidPrefix
from components.kit.compat import InvalidTask, TaskResult, TaskResultStatus
from components.services.autocomplete import AddressBook, AddressBookReader, BookInfo, BookUsage, Completions
from components.services.autocomplete.models import ModelBooks, feeding, model_books
from components.templatetags.control_room import grouped, legible

TOP = 20  # entries, and completions, on a page
SLOWEST = 10  # number of slowest searches on a page: one for each minute


@dataclass(frozen=True)
class Row:
    """An address book as the pages show it."""

    #: Its name.
    id: str
    #: None for a family of books, such as "guild:{}", and for a book that does not exist yet although a model feeds
    #: it.
    info: BookInfo | None
    usage: BookUsage | None = None

    @property
    def name(self) -> str:
        return shortened(legible(self.id))

    @property
    def model(self) -> str:
        """Return the model that feeds it, such as "market.player"; "" if none does."""
        fed = feeding(self.id)
        return fed.model._meta.label_lower if fed else ""

    @property
    def parts(self) -> str:
        """Return the field that the books of a model are split by, such as "guild"; "" for a single book."""
        fed = feeding(self.id)
        return fed.by.replace("__", " ") if isinstance(fed, ModelBooks) else ""

    @property
    def what(self) -> str:
        return f"{'address books' if self.parts else 'address book'} {self.name}"

    @property
    def slowest(self) -> float | None:
        """Return how many seconds the slowest search of the hour took; None if there was no search."""
        return self.usage.slowest[0].seconds if self.usage and self.usage.slowest else None


@dataclass(frozen=True)
class Trial:
    """The search for a prefix that a visitor tries."""

    prefix: str
    found: Completions | None = None
    seconds: float | None = None
    #: Why this prefix cannot be searched for.
    problem: str = ""


class AddressBookAdmin(ControlRoomAdmin):
    looks = ("view", "rebuild")

    def get_urls(self) -> list[URLPattern]:
        return [
            self.page("", "changelist", self.overview),
            self.page("book/", "book", self.book),
            *super().get_urls(),
        ]

    def find_url(self, name: str) -> str:
        return self.url("book", book=name)

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
        template = "admin/components/autocomplete/list.html"
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
        template, title = "admin/components/autocomplete/book.html", capfirst(row.what)
        return self.render(request, template, title, context, live=prefix is None)

    def rebuild(self, request: HttpRequest) -> Action:
        row = _find(request)
        return Action(
            of=row.id,
            trail=self._trail(row),
            title=f"Rebuild the {row.what}",
            effects=_effects_of_rebuild(row),
            run=(lambda: _rebuild(row)) if row.model else None,
            idle=f"There is nothing to rebuild it from: no model feeds the address book {row.name}. "
            "Run the code that loaded it again, with replace=True.",
        )

    def remove(self, request: HttpRequest) -> Action:
        row = _find(request)
        info = row.info

        def run() -> Done:
            AddressBook(row.id).erase()
            return Done(f"Removed the address book {row.name}. It had {_entries(info.count if info else 0)}.")

        return Action(
            of=row.id,
            trail=self._trail(row),
            title=f"Remove the address book {row.name}",
            effects=_effects_of_removal(row, info) if info else [],
            run=run if info else None,
            idle=f"There is nothing to remove: the address book {row.name} does not exist.",
            back=self.url("changelist"),
        )

    def _trail(self, row: Row) -> Trail:
        return [(capfirst(row.what), self.find_url(row.id))]

    verbs = (
        Verb("rebuild", "Rebuild", rebuild, needs="rebuild"),
        Verb("remove", "Remove", remove, needs="remove", deletes=True),
    )


def _find(request: HttpRequest) -> Row:
    """Return the book that the query names. Raises Http404."""
    name = request.GET.get("book", "")
    info = AddressBookReader().find(name)
    if info is None and (not name or feeding(name) is None):
        raise Http404(f"There is no address book {name!r}.")
    return Row(name, info)


def _sources(reader: AddressBookReader) -> Sequence[Row]:
    """Return what the list of books lacks: families such as "guild:{}", and books of models that do not exist yet."""
    names = list(model_books())
    return [Row(name, None) for name, info in zip(names, reader.look(names), strict=True) if info is None]


def _try(name: str, prefix: str) -> Trial:
    began = perf_counter()
    try:
        found = AddressBook(name).complete(prefix, limit=TOP)
    except InvalidPrefix as error:
        return Trial(prefix, problem=str(error))
    except BookNotFound as error:  # the book was removed after the page was started
        raise Http404(str(error)) from None
    return Trial(prefix, found, perf_counter() - began)


def _rebuild(row: Row) -> Done:
    try:
        # The import fails if TASKS lacks the alias that the settings name. The other pages must still work.
        from components.services.autocomplete.tasks import rebuilding

        result = rebuilding().enqueue(row.id)
    except (InvalidTask, ImproperlyConfigured) as error:
        return Done(
            but=[f"No task can rebuild it: {error} Correct the TASKS alias and the queue in COMPONENTS."]
        )
    return _told(row, result)


def _told(row: Row, result: TaskResult[..., int | None]) -> Done:
    """Report what happened. Backends that run tasks in the request have finished the task by now."""
    if result.status is TaskResultStatus.SUCCESSFUL:
        return Done(f"Rebuilt the {row.what}.")
    if result.status is TaskResultStatus.FAILED:
        kinds = ", ".join(error.exception_class_path for error in result.errors)
        return Done(
            but=[f"The rebuild of the {row.what} failed with {kinds}. Searches still find the old entries."]
        )
    return Done(f"The next free worker rebuilds the {row.what}: the task {result.id}.")


def _effects_of_rebuild(row: Row) -> list[str]:
    info = row.info
    effects = [f"A worker loads it from the table of {row.model}. Until then, nothing is found in it."]
    if row.parts:
        effects = [
            f"A worker loads one book for each {row.parts}, one after the other, from the table of {row.model}, and "
            "removes the books without rows.",
            "Searches use each old book until the new one is complete. Past selections still count.",
        ]
    if info:
        effects = [
            f"A worker loads it again from the table of {row.model}. It has {_entries(info.count)} now.",
            "Searches use the old book until the new one is complete. Changes made meanwhile are in both. "
            "Past selections still count.",
        ]
    if info and info.loading is not None:
        effects.append(
            f"A load of {_entries(info.loading)} so far is running, or has died. The rebuild replaces it."
        )
    return [
        *effects,
        "The pages of the book and of the task show the progress.",
    ]


def _effects_of_removal(row: Row, info: BookInfo) -> list[str]:
    effects = [
        f"It has {_entries(info.count)}, {filesizeformat(info.bytes)}. Searches find nothing in it afterwards.",
        f"Past selections of {_entries(info.selected)} are deleted.",
        f"Rows of {row.model} that are saved from now on create it again. A rebuild loads all rows."
        if row.model
        else "An entry that is added from now on creates it again.",
    ]
    if info.loading is not None:
        effects.append(f"The running load, with {_entries(info.loading)} so far, ends with an error.")
    return [*effects, "This cannot be undone."]


def _entries(count: int) -> str:
    return f"{grouped(count)} entr{'y' if count == 1 else 'ies'}"
