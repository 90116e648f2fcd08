"""
The pages of address books: the size of each book, and the names that are chosen most often.

A page of the list costs four round trips, however many books there are. People who may view it see the names in all
books. Books that a model feeds are rebuilt by a worker, because loading a million rows takes too long for a request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

from django.core.exceptions import ImproperlyConfigured
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from components.control_room.pages import ControlRoomAdmin, Paging, searched
from components.control_room.verbs import Action, Done, Trail, Verb
from components.exceptions import BookNotFound, InvalidValue
from components.formatting import grouped, legible, memory, shortened
from components.kit.compat import InvalidTask, TaskResult, TaskResultStatus
from components.services.autocomplete import AddressBook, AddressBookReader, BookInfo
from components.services.autocomplete.folding import MAX_PREFIX
from components.services.autocomplete.models import ModelBooks, feeding, model_books

TOP = 20  # entries, and completions, on a page


@dataclass(frozen=True)
class Row:
    """An address book as the pages show it."""

    #: Its name.
    id: str
    #: None for a family of books, such as "guild:{}", and for a book that does not exist yet although a model feeds
    #: it.
    info: BookInfo | None

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
    def title(self) -> str:
        return self.say(gettext("Address book %(book)s"), gettext("Address books %(book)s"))

    def say(self, one: str, many: str, **facts: str) -> str:
        """Return the text that fits: about *one* book, or about the *many* of a family."""
        return (many if self.parts else one) % {"book": self.name, **facts}


class AddressBookAdmin(ControlRoomAdmin):
    purpose = _("An address book completes names while people type.")

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
        context = {
            "text": beginning,
            "paging": paging,
            "rows": [Row(info.name, info) for info in infos],
            "sources": [] if beginning or paging.offset else _sources(reader),
        }
        template = "admin/components/autocomplete/list.html"
        return self.render(request, template, gettext("Address books"), context, live=not beginning)

    def book(self, request: HttpRequest) -> HttpResponse:
        reader, row = AddressBookReader(), _find(request)
        prefix = request.GET.get("prefix")
        there = row.info is not None
        context = {
            "row": row,
            "info": row.info,
            "subject": self.subject(row.id),
            "loading": row.info.loading if row.info else reader.loading(row.id),
            "top": AddressBook(row.id).top(TOP) if there else [],
            "trial": _try(row.id, prefix) if there and prefix is not None else None,
        }
        template = "admin/components/autocomplete/book.html"
        return self.render(request, template, row.title, context, live=prefix is None)

    def rebuild(self, request: HttpRequest) -> Action:
        row = _find(request)
        return Action(
            of=row.id,
            trail=self._trail(row),
            title=row.say(
                gettext("Rebuild the address book %(book)s"), gettext("Rebuild the address books %(book)s")
            ),
            effects=_effects_of_rebuild(row),
            run=(lambda: _rebuild(row)) if row.model else None,
            idle=gettext(
                "No model is the source of the address book %(book)s, so it cannot be rebuilt from here. Run the "
                "code that loaded it again, with replace=True."
            )
            % {"book": row.name},
        )

    def remove(self, request: HttpRequest) -> Action:
        row = _find(request)
        info = row.info

        def run() -> Done:
            AddressBook(row.id).erase()
            count = info.count if info else 0
            said = ngettext(
                "Removed the address book %(book)s. It had %(count)s entry.",
                "Removed the address book %(book)s. It had %(count)s entries.",
                count,
            )
            return Done(said % {"book": row.name, "count": grouped(count)})

        return Action(
            of=row.id,
            trail=self._trail(row),
            title=gettext("Remove the address book %(book)s") % {"book": row.name},
            effects=_effects_of_removal(row, info) if info else [],
            run=run if info else None,
            idle=gettext("There is nothing to remove: the address book %(book)s does not exist.")
            % {"book": row.name},
            back=self.url("changelist"),
        )

    def _trail(self, row: Row) -> Trail:
        return [(row.title, self.find_url(row.id))]

    verbs = (
        Verb("rebuild", _("Rebuild"), rebuild, needs="rebuild"),
        Verb("remove", _("Remove the book"), remove, needs="remove", deletes=True),
    )


def _find(request: HttpRequest) -> Row:
    name = request.GET.get("book", "")
    info = AddressBookReader().find(name)
    if info is None and (not name or feeding(name) is None):
        raise Http404(_no_book(name))
    return Row(name, info)


def _no_book(name: str) -> str:
    return gettext("There is no address book %(name)r.") % {"name": name}


def _sources(reader: AddressBookReader) -> Sequence[Row]:
    """Return what the list of books lacks: families such as "guild:{}", and books of models that do not exist yet."""
    names = list(model_books())
    return [Row(name, None) for name, info in zip(names, reader.look(names), strict=True) if info is None]


def _try(name: str, prefix: str) -> dict[str, object]:
    """Return what a search for *prefix* finds, and in how many seconds; or why it cannot be searched for."""
    began = perf_counter()
    try:
        found = AddressBook(name).complete(prefix, limit=TOP, is_counted=False)
    except InvalidValue:
        problem = gettext(
            "A search has 1 to %(most)s characters. At least one of them is visible, and none is a control character."
        )
        return {"prefix": prefix, "problem": problem % {"most": MAX_PREFIX}}
    except BookNotFound:  # the book was removed after the page was started
        raise Http404(_no_book(name)) from None
    return {"prefix": prefix, "found": found, "seconds": perf_counter() - began}


def _rebuild(row: Row) -> Done:
    try:
        # The import fails if TASKS lacks the alias that the settings name. The other pages must still work.
        from components.services.autocomplete.tasks import rebuilding

        result = rebuilding().enqueue(row.id)
    except (InvalidTask, ImproperlyConfigured) as error:
        but = gettext(
            "No task can rebuild it: %(error)s Correct the TASKS alias and the queue in COMPONENTS."
        )
        return Done(but=[but % {"error": error}])
    return _told(row, result)


def _told(row: Row, result: TaskResult[..., int | None]) -> Done:
    """Report what happened. Backends that run tasks in the request have finished the task by now."""
    if result.status is TaskResultStatus.SUCCESSFUL:
        return Done(
            row.say(
                gettext("Rebuilt the address book %(book)s."), gettext("Rebuilt the address books %(book)s.")
            )
        )
    if result.status is TaskResultStatus.FAILED:
        kinds = ", ".join(error.exception_class_path for error in result.errors)
        but = row.say(
            gettext(
                "The rebuild of the address book %(book)s failed with %(errors)s. Searches still find the old "
                "entries."
            ),
            gettext(
                "The rebuild of the address books %(book)s failed with %(errors)s. Searches still find the old "
                "entries."
            ),
            errors=kinds,
        )
        return Done(but=[but])
    return Done(
        row.say(
            gettext("The next free worker rebuilds the address book %(book)s: the task %(task)s."),
            gettext("The next free worker rebuilds the address books %(book)s: the task %(task)s."),
            task=result.id,
        )
    )


def _effects_of_rebuild(row: Row) -> list[str]:
    info, facts = row.info, {"model": row.model, "parts": row.parts}
    if info:
        again = ngettext(
            "A worker loads it again from the table of %(model)s. It has %(count)s entry now.",
            "A worker loads it again from the table of %(model)s. It has %(count)s entries now.",
            info.count,
        )
        effects = [
            again % {**facts, "count": grouped(info.count)},
            gettext(
                "Searches use the old book until the new one is complete. Changes made meanwhile are in both. The "
                "scores of the entries stay."
            ),
        ]
    elif row.parts:
        effects = [
            gettext(
                "A worker loads one book for each %(parts)s, one after the other, from the table of %(model)s, and "
                "removes the books without rows."
            )
            % facts,
            gettext(
                "Searches use each old book until the new one is complete. The scores of the entries stay."
            ),
        ]
    else:
        effects = [
            gettext("A worker loads it from the table of %(model)s. Until then, nothing is found in it.")
            % facts
        ]
    if info and info.loading is not None:
        running = ngettext(
            "Another load, with %(count)s entry so far, is running or has ended early. The rebuild replaces it.",
            "Another load, with %(count)s entries so far, is running or has ended early. The rebuild replaces it.",
            info.loading,
        )
        effects.append(running % {"count": grouped(info.loading)})
    return [*effects, gettext("The pages of the book and of the task show the progress.")]


def _effects_of_removal(row: Row, info: BookInfo) -> list[str]:
    has = ngettext(
        "It has %(count)s entry, %(size)s. Searches find nothing in it afterwards.",
        "It has %(count)s entries, %(size)s. Searches find nothing in it afterwards.",
        info.count,
    )
    selected = ngettext(
        "The score of %(count)s entry is deleted.",
        "The scores of %(count)s entries are deleted.",
        info.selected,
    )
    effects = [
        has % {"count": grouped(info.count), "size": memory(info.bytes)},
        selected % {"count": grouped(info.selected)},
        gettext("Rows of %(model)s that are saved from now on create it again. A rebuild loads all rows.")
        % {"model": row.model}
        if row.model
        else gettext("An entry that is added from now on creates it again."),
    ]
    if info.loading is not None:
        ending = ngettext(
            "The running load, with %(count)s entry so far, ends with an error.",
            "The running load, with %(count)s entries so far, ends with an error.",
            info.loading,
        )
        effects.append(ending % {"count": grouped(info.loading)})
    return [*effects, gettext("This cannot be undone.")]
