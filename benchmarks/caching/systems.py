"""Who reads rows, each as its own documents show it; all of them in the same server, but for the ORM."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from django.core.cache import caches

from benchmarks.caching import BOOK, CACHEOPS_HERE, HIREDIS_AWAY, ORM, OURS, PLAIN, book
from benchmarks.caching.models import Item
from benchmarks.crew import client

_LONG = 3_600.0  # seconds for which rows are good: none is loaded in a turn
NAMES = [field.attname for field in Item._meta.concrete_fields]


@dataclass(frozen=True)
class Guarantees:
    """What the figures of a system contain, in a few words each."""

    age: str
    backwards: str
    values: str
    many: str


class System(ABC):
    """One way to read rows."""

    guarantees: Guarantees
    #: For one row and one list, when all is cached.
    queries = 0

    def begin(self, lists: Iterable[Sequence[int]]) -> None:  # noqa: B027  (the ORM has nothing to prepare)
        """Let all rows of these *lists* be cached."""

    @abstractmethod
    def one(self, pk: int) -> Any: ...

    @abstractmethod
    def many(self, pks: Sequence[int]) -> Collection[Any]:
        """The rows."""

    def value(self, row: Any, name: str) -> Any:
        return getattr(row, name)


class Ours(System):
    guarantees = Guarantees(
        "the delay and a lease, whoever wrote", "never", "typed, when asked for", "1 round trip"
    )

    def begin(self, lists: Iterable[Sequence[int]]) -> None:
        pks = {pk for pks in lists for pk in pks}
        Item.cached.schedule_many(pks, _LONG)
        Item.cached.get_many(pks)

    def one(self, pk: int) -> Any:
        return Item.cached.get(pk)

    def many(self, pks: Sequence[int]) -> Collection[Any]:
        return Item.cached.get_many(pks).values()


class Orm(System):
    guarantees = Guarantees("as it is", "never", "typed", "1 query")
    queries = 2

    def one(self, pk: int) -> Any:
        return Item.objects.get(pk=pk)

    def many(self, pks: Sequence[int]) -> Collection[Any]:
        return Item.objects.in_bulk(pks).values()


class Cacheops(System):
    guarantees = Guarantees(
        "the timeout, after what sends no signal",
        "may: a refill can be late",
        "typed, by pickle",
        "by the whole list",
    )

    def begin(self, lists: Iterable[Sequence[int]]) -> None:
        for pks in lists:
            for row in self.many(pks):
                self.one(row.pk)

    def one(self, pk: int) -> Any:
        return Item.objects.get(pk=pk)

    def many(self, pks: Sequence[int]) -> Collection[Any]:
        return list(Item.objects.filter(pk__in=pks))


class DjangoCache(System):
    guarantees = Guarantees("the timeout", "may", "typed, by pickle", "1 round trip")

    def begin(self, lists: Iterable[Sequence[int]]) -> None:
        for pks in lists:
            caches["rows"].set_many(
                {f"item:{row['id']}": row for row in Item.objects.filter(pk__in=pks).values()}
            )

    def one(self, pk: int) -> Any:
        return caches["rows"].get(f"item:{pk}")

    def many(self, pks: Sequence[int]) -> Collection[Any]:
        return caches["rows"].get_many([f"item:{pk}" for pk in pks]).values()

    def value(self, row: Any, name: str) -> Any:
        return row[name]


class Book(System):
    guarantees = Guarantees("none: as it is if the daemon died", "may", "text", "-")

    def begin(self, lists: Iterable[Sequence[int]]) -> None:
        redis = client()
        for pk in {pk for pks in lists for pk in pks}:
            book.schedule(redis, pk, _LONG)
        while book.load_next(redis):
            pass

    def one(self, pk: int) -> Any:
        return book.read(client(), pk)

    def many(self, pks: Sequence[int]) -> Collection[Any]:
        return book.read_many(client(), list(pks)).values()

    def value(self, row: Any, name: str) -> Any:
        return row[name]


@dataclass(frozen=True)
class Way:
    """How the process of a system is started."""

    system: type[System]
    distribution: str = "Django"
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def guarantees(self) -> Guarantees:
        return self.system.guarantees


#: By the name in the report.
_ALL = {
    OURS: Way(Ours),
    PLAIN: Way(Ours, environment={HIREDIS_AWAY: "1"}),
    ORM: Way(Orm),
    "cacheops": Way(Cacheops, "django-cacheops", {CACHEOPS_HERE: "1"}),
    "Django's cache": Way(DjangoCache),
    BOOK: Way(Book),
}


def find() -> dict[str, Way]:
    """Those whose libraries are installed; of the others it is said."""
    found = {}
    for name, way in _ALL.items():
        try:
            version(way.distribution)
        except PackageNotFoundError:
            print(f"{name} is not installed, and left out: pip install -r benchmarks/requirements.txt")
            continue
        found[name] = way
    return found
