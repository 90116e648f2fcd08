"""Names of two words in twelve scripts, the same in every run and in equal shares; and prefixes of them."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from components.services.autocomplete import fold
from tests.support.names import NAMES, SYLLABLES

LENGTHS = range(1, 9)  # lengths of prefixes, in characters


def entries(count: int) -> Iterator[tuple[int, str]]:
    """Yield ids and labels."""
    chosen = Random(6)
    for number in range(1, count + 1):
        yield number, NAMES[number % len(NAMES)](chosen)


def prefixes(length: int, count: int, *, words: bool = True) -> list[str]:
    """
    Return beginnings of names with *length* characters, or of second words if *words*.

    Some match many names, some few or none.
    """
    chosen, found = Random(length), []
    while len(found) < count:
        key = fold(chosen.choice(NAMES)(chosen))
        if words and chosen.random() < 0.5:
            key = key.replace("-", " ").partition(" ")[2]
        if len(prefix := key[:length].strip()) == length:
            found.append(prefix)
    return found


def guild(count: int) -> list[str]:
    """Return names of the letters a to z, each once, as the directory of the book knows them."""
    chosen, found = Random(6), dict[str, None]()
    while len(found) < count:
        found["".join(chosen.choices(SYLLABLES["latin"], k=chosen.randint(2, 5)))] = None
    return list(found)


def beginnings(names: list[str], count: int) -> list[str]:
    """Return beginnings of one to four letters."""
    chosen = Random()
    return [chosen.choice(names)[: chosen.randint(1, 4)] for _ in range(count)]
