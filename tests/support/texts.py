"""
A language in which each text is ⟦text⟧, so that a page shows which of its texts no catalogue could translate; and the
texts of a page that people read.

Numbers are as in German, in groups of three: "1.234,5". What machines read must not be.
"""

from __future__ import annotations

import gettext
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser

import pytest
from django.conf import settings
from django.test import override_settings
from django.utils import translation
from django.utils.formats import reset_format_cache
from django.utils.translation import trans_real

_CONTEXT = "\x04"
_READ = {"alt", "aria-description", "aria-label", "aria-placeholder", "label", "placeholder", "title"}
_BUTTONS = {"button", "reset", "submit"}
#: What these hold is not text, or is a name, an instant, a number (of a drawing) or code.
_OPAQUE = {"code", "pre", "script", "style", "text", "time"}
_VOID = {"br", "hr", "img", "input", "link", "meta", "path", "line", "use", "col", "wbr", "source"}
# Not 1.234%, which has three digits behind the point.
_GERMAN = re.compile(r"\d,\d|(?<![\d.])\d{1,3}\.\d{3}(?![\d.%])")
_WORD = re.compile(r"[^\W\d_]{2,}")


class Brackets(gettext.NullTranslations):
    """All catalogues in one: it translates every text into ⟦text⟧."""

    def gettext(self, message: str) -> str:
        return f"⟦{message.rpartition(_CONTEXT)[2]}⟧"

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        return self.gettext(msgid1 if n == 1 else msgid2)

    def to_language(self) -> str:
        return "de"

    def language(self) -> str:
        return "de"


@contextmanager
def brackets() -> Iterator[None]:
    """Let every language be that of the brackets."""
    with pytest.MonkeyPatch.context() as patch, override_settings(USE_THOUSAND_SEPARATOR=True):
        patch.setattr(trans_real, "translation", lambda _language: Brackets())
        patch.setattr(trans_real, "_default", Brackets())
        reset_format_cache()
        with translation.override(settings.LANGUAGE_CODE):
            yield
    reset_format_cache()


class _Texts(HTMLParser):
    """Collects what people read of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = [""]
        self.machines: list[str] = []
        self._inside: list[str] = []
        self._depth = 0  # of brackets, which may have tags inside

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag not in _VOID:
            self._inside.append(tag)
        if tag == "input" and given.get("type") in _BUTTONS:
            self.found.append(self._outside(given.get("value") or ""))
        self.found += [self._outside(value or "") for name, value in attrs if name in _READ]
        if "symbol" not in self._inside:  # those are Django's icons
            self.machines += [f"{name}={value}" for name, value in attrs if name not in _READ]
        self.found.append("")

    def handle_endtag(self, tag: str) -> None:
        while tag in self._inside and self._inside.pop() != tag:
            pass
        self.found.append("")

    def handle_data(self, data: str) -> None:
        outside = self._outside(data)
        if _OPAQUE.isdisjoint(self._inside):
            self.found[-1] += outside

    def _outside(self, text: str) -> str:
        """Return what is not inside of brackets."""
        found = ""
        for char in text:
            self._depth += (char == "⟦") - (char == "⟧")
            found += char if not self._depth and char != "⟧" else ""
        return found


def untranslated(html: str, data: str) -> list[str]:
    """Return the texts of a page that contain words outside of ⟦⟧, besides those that *data*, a pattern, matches."""
    return [text.strip() for text in _texts(html).found if _WORD.search(re.sub(data, " ", text))]


def misread(html: str) -> list[str]:
    """Return the attributes of a page that machines read, and that have a number as people write it: 1.234 or 0,5."""
    return [each for each in _texts(html).machines if _GERMAN.search(each)]


def _texts(html: str) -> _Texts:
    parser = _Texts()
    parser.feed(html)
    parser.close()
    return parser
