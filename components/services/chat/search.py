"""
Search: words that somebody looks for in the history of a chat.

They are compared as address books compare names: capitals, accents and the width of letters do not count, and the
beginning of a word finds it. All words must occur, in any order. In scripts that do not separate words by blanks, a
word is also found inside a text.

No index is stored: docs/chat.md says why. Instead, a search examines the history from its end, as far as one request
may cost, and says where to go on.
"""

import re
from collections.abc import Iterable, Iterator
from unicodedata import normalize

from components.exceptions import InvalidValue
from components.services.autocomplete.folding import MAX_KEY, Spelling, check_prefix, is_found, spell

MAX_WORDS = 8  # words in one search
EXCERPT = 240  # characters of a text that are shown around the first word found
_BEFORE = 60  # of these, characters before that word
#: Between words: white space, slashes in addresses, and punctuation that other scripts write without a blank.
_WORD = re.compile(r"[^\s/\u2026\u3001-\u3011\u30fb\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f]+")
#: Punctuation around words, which folding ignores. Signs such as + and $ distinguish names.
_AROUND = r"!\"'(),\-./:;=?\[\\\]^_`{}~\xa1\xa7\xab\xb7\xbb\xbf\u060c\u061b\u061f\u0964\u2010-\u2027"
#: A word without the punctuation around it.
_INNER = re.compile(f"[^{_AROUND}](?:.*[^{_AROUND}])?", re.DOTALL)
#: A word of digits and of Latin, Greek or Cyrillic letters. Without its marks, it needs no other folding, which saves
#: most of the time.
_PLAIN = re.compile(f"[{_AROUND}]*([a-z0-9\u03b1-\u03c9\u0430-\u044f]+)[{_AROUND}]*")
_MARKS = re.compile("[\u0300-\u036f]")
#: Scripts without blanks between words: Thai to Burmese, Khmer, kana, Han.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)


class Search:
    """A search for *words*. Raises InvalidValue."""

    def __init__(self, words: str) -> None:
        check_prefix(words)
        self._wanted = [each for word in _WORD.findall(words) if (each := spell(word)).key]
        if not 1 <= len(self._wanted) <= MAX_WORDS:
            raise InvalidValue(
                f"The search has {len(self._wanted)} words that can be found; it must have 1 to {MAX_WORDS}."
            )
        #: What a plain word begins with if it matches: each wanted word as it is, and without its hyphens.
        self._begun = [(each.key, each.key.replace(" ", "")) for each in self._wanted]
        self._all = (1 << len(self._wanted)) - 1
        #: What words of texts have been found to match, as bits: most words occur many times in a history.
        self._known: dict[str, int] = {}

    def finds(self, text: str) -> bool:
        """Return whether *text* has all the words."""
        found = 0
        for word in _WORD.findall(text):
            found |= self._matches(word)
            if found == self._all:
                return True
        return False

    def excerpt(self, text: str) -> list[tuple[str, bool]]:
        """Return a part of *text* in pieces, and of each whether it is a word that was looked for."""
        places, start = list[tuple[int, int]](), 0
        for word in _WORD.finditer(text):
            if places and word.start() >= start + EXCERPT:
                break
            if self._matches(word[0]):
                places.append((_INNER.search(text, *word.span()) or word).span())
                start = max(0, places[0][0] - _BEFORE)
        return [*self._pieces(text, places, start, min(len(text), start + EXCERPT))]

    def _pieces(
        self, text: str, places: list[tuple[int, int]], start: int, end: int
    ) -> Iterator[tuple[str, bool]]:
        at = start
        if start:
            yield "…", False
        for first, last in places:
            if first >= end:
                break
            yield text[at:first], False
            yield text[first : min(last, end)], True
            at = min(last, end)
        yield text[at:end], False
        if end < len(text):
            yield "…", False

    def _matches(self, word: str) -> int:
        found = self._known.get(word)
        if found is None:
            found = self._known[word] = self._compare(word)
        return found

    def _compare(self, word: str) -> int:
        if plain := _PLAIN.fullmatch(_MARKS.sub("", normalize("NFKD", word).casefold())):
            return _bits(plain[1].startswith(begun) for begun in self._begun)
        # A spelling has a limited length, so a longer word is compared in parts that overlap.
        parts = [spell(word[at : at + MAX_KEY]) for at in range(0, len(word), MAX_KEY // 2)]
        return _bits(any(_fits(part, wanted) for part in parts) for wanted in self._wanted)


def _bits(are_found: Iterable[bool]) -> int:
    return sum(1 << number for number, is_found in enumerate(are_found) if is_found)


def _fits(word: Spelling, wanted: Spelling) -> bool:
    if _UNSPACED.search(wanted.key) and wanted.key in word.key:
        return True
    return is_found(word, wanted)
