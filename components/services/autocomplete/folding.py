"""
What is compared when a name is looked for: its search key, in which case, accents and width make no difference.

Compatibility forms become plain ones (NFKC), case is folded, accents and vowel points go, letters with a stroke lose
it. Marks that make another letter stay: the vowel signs of Indic scripts, the voicing of kana. Invisible characters
go, and white space is one blank. A prefix is folded as a name is, so they meet whatever the keyboard.
"""

from __future__ import annotations

import re
from unicodedata import category, normalize

from components.exceptions import InvalidEntry, InvalidPrefix
from components.validation import MAX_NAME

MAX_LABEL = 200  # characters
MAX_ID = 100  # characters
MAX_PREFIX = 200  # characters
MAX_KEY = 200  # characters of a search key that count: one of Arabic can stand for eighteen
MAX_WORDS = 8  # under which a name is found: each costs a member of the index

#: What is written or left out as one likes: accents, Hebrew points, Arabic vowels; and what cannot be seen.
_OPTIONAL = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064"
    "\u2066-\u2069\ufe00-\ufe0f\ufeff]"
)
#: Letters that have no decomposition, and are typed as others where a keyboard lacks them.
_PLAIN = {"\u0131": "i", "ø": "o", "đ": "d", "ð": "d", "ł": "l", "ħ": "h", "ŧ": "t", "æ": "ae", "œ": "oe"}
_STROKES = re.compile(f"[{''.join(_PLAIN)}]")
#: A letter or digit after something else, which may be a mark on a letter.
_START = re.compile(r"(?<![^\W_])[^\W_]")


def fold(text: str) -> str:
    """The search key of *text*."""
    if text.isascii():
        return " ".join(text.lower().split())
    folded = normalize("NFD", normalize("NFKC", text).casefold())
    plain = _STROKES.sub(lambda found: _PLAIN[found[0]], _OPTIONAL.sub("", folded))
    return " ".join(normalize("NFKC", plain).split())


def word_starts(key: str) -> list[int]:
    """Where in the search key *key* its words begin, and it does: in characters."""
    starts = [found.start() for found in _START.finditer(key)]
    if not key.isascii():  # marks are neither letters nor between words
        starts = [at for at in starts if not (at and category(key[at - 1]).startswith("M"))]
    if starts[:1] != [0]:
        starts.insert(0, 0)
    return starts[:MAX_WORDS]


def check_prefix(prefix: object) -> str:
    """The search key of *prefix*. Raises InvalidPrefix."""
    if not isinstance(prefix, str):
        raise InvalidPrefix(f"The prefix is {type(prefix).__name__}; it must be str.")
    if len(prefix) > MAX_PREFIX:
        raise InvalidPrefix(f"The prefix has {len(prefix):,} characters; {MAX_PREFIX} is the most.")
    if wrong := _wrong(prefix):
        raise InvalidPrefix(f"The prefix holds {wrong}.")
    if not (key := fold(prefix)[:MAX_KEY]):
        raise InvalidPrefix("The prefix is empty, or nothing of it can be seen.")
    return key


def check_label(label: object) -> tuple[str, str]:
    """*label* and its search key. Raises InvalidEntry."""
    _check_text("label", label, MAX_LABEL)
    assert isinstance(label, str)
    if not (key := fold(label)[:MAX_KEY]):
        raise InvalidEntry("The label of an entry is empty, or nothing of it can be seen.")
    return label, key


def check_id(entry: object) -> str:
    """*entry* as text, if it can be an id: a number is its digits. Raises InvalidEntry."""
    if isinstance(entry, int) and not isinstance(entry, bool):
        if abs(entry) >= 10 ** (MAX_ID - 1):
            raise InvalidEntry(f"The id of an entry is a number of {MAX_ID} digits or more.")
        return str(entry)
    _check_text("id", entry, MAX_ID)
    return str(entry)


def check_contact(contact: object) -> str:
    """*contact*, if it can be the id of one. Raises InvalidEntry."""
    _check_text("contact", contact, MAX_NAME)
    return str(contact)


def _check_text(what: str, text: object, longest: int) -> None:
    if not isinstance(text, str):
        raise InvalidEntry(f"The {what} of an entry is {type(text).__name__}; it must be str.")
    if not 1 <= len(text) <= longest:
        raise InvalidEntry(
            f"The {what} of an entry has {len(text):,} characters; it must have 1 to {longest}."
        )
    if wrong := _wrong(text):
        raise InvalidEntry(f"The {what} of an entry holds {wrong}.")


def _wrong(text: str) -> str | None:
    """What in *text* is no text: control characters, and halves of others."""
    if text.isprintable():
        return None
    for at, character in enumerate(text):
        if category(character) == "Cc":
            return f"a control character, at position {at}"
        if category(character) == "Cs":
            return f"half of a character, at position {at}"
    return None
