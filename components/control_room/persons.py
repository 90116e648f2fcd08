"""People on the pages: by their names, as COMPONENTS["PEOPLE"] tells them, and by the ids that services know."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from components.control_room.names import shortened
from components.people import people
from components.templatetags.control_room import legible


@dataclass(frozen=True)
class Person:
    id: str
    #: "" if nobody knows them.
    name: str = ""

    @property
    def shown(self) -> str:
        return shortened(legible(self.name or self.id))

    @property
    def number(self) -> str:
        """Return their id, to stand beside the name; "" if the id is what is shown."""
        return shortened(legible(self.id)) if self.name and self.name != self.id else ""

    def __str__(self) -> str:
        """Return the name with the id, since another person may have the same name."""
        return f"{self.shown} ({self.number})" if self.number else self.shown


class Known(dict[str, Person]):
    """People by their ids. An id that was not asked for, such as an empty one that is stored, has no name."""

    def __missing__(self, id: str) -> Person:
        return Person(id)


def persons(ids: Iterable[str]) -> Known:
    """Return the people with these ids, in one query."""
    wanted = {each for each in ids if each}
    names = people().names(wanted) if wanted else {}
    return Known({each: Person(each, names.get(each, "")) for each in wanted})
