"""People as pages show them: with their names, and with the ids under which services know them."""

from collections.abc import Iterable
from dataclasses import dataclass

from components.formatting import legible, shortened
from components.people import names_of


@dataclass(frozen=True)
class Person:
    id: str
    #: The name; "" if nobody with this id is known.
    name: str = ""

    @property
    def shown(self) -> str:
        return shortened(legible(self.name or self.id))

    @property
    def number(self) -> str:
        """The id, where the name is shown."""
        return shortened(legible(self.id)) if self.name and self.name != self.id else ""

    def __str__(self) -> str:
        """Return the name with the id: two people may have the same name."""
        return f"{self.shown} ({self.number})" if self.number else self.shown


class Known(dict[str, Person]):
    """People by id. An unknown id, such as an empty one in stored data, gives a person without a name."""

    def __missing__(self, id: str) -> Person:
        return Person(id)


def persons(ids: Iterable[str]) -> Known:
    """Return the people with these ids, found by one query."""
    wanted = {each for each in ids if each}
    names = names_of(wanted)
    return Known({each: Person(each, names.get(each, "")) for each in wanted})
