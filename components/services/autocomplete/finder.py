"""The finder of address books, by name."""

from __future__ import annotations

from components.kit.cards import Link
from components.kit.finders import FinderReading, Found, ask_names, best_of
from components.services.autocomplete.keys import ALL, names
from components.templatetags.control_room import legible


def find(text: str) -> FinderReading:
    """Find address books."""
    answers = yield ask_names([names(ALL)], text)
    return [Found(Link("book", legible(name), book=name)) for name in best_of(answers, text)]
