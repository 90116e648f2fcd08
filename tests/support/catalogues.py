"""The catalogues of the app, and the texts in its sources, both read without GNU gettext."""

from __future__ import annotations

import ast
import gettext
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from django.utils.translation.template import templatize

APP = Path(__file__).resolve().parents[2] / "components"
LOCALES = ["de", "zh_Hans"]
#: The context of a text, or None, and the text in the singular.
Key: TypeAlias = tuple[str | None, str]

_FUNCTIONS = {
    "_",
    "gettext",
    "gettext_lazy",
    "gettext_noop",
    "ngettext",
    "pgettext",
    "npgettext",
    "ngettext_lazy",
    "pgettext_lazy",
}
_STRING = r"""[urb]*(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
#: A call in a script, or in what templatize() makes of a template.
_CALL = re.compile(rf"(?<![\w.])(n?p?gettext|gettext_noop|_)\(\s*({_STRING})(?:\s*,\s*({_STRING}))?")


@dataclass
class Entry:
    """A text of a .po file and its translations, of which one that has plural forms has several."""

    context: str | None = None
    text: str = ""
    plural: str = ""
    translations: list[str] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)


def catalogue(locale: str, domain: str) -> dict[Key, Entry]:
    """Return the texts of a .po file, without its header."""
    found = [_entry(block) for block in path(locale, domain, "po").read_text(encoding="utf-8").split("\n\n")]
    return {(entry.context, entry.text): entry for entry in found if entry.text}


def compiled(locale: str, domain: str) -> dict[str, list[str]]:
    """Return the texts of a .mo file."""
    with path(locale, domain, "mo").open("rb") as file:
        known: dict[str | tuple[str, int], str] = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
    found: dict[str, list[str]] = {}
    for key, translation in sorted(known.items(), key=str):
        text = key if isinstance(key, str) else key[0]
        if text:
            found.setdefault(text, []).append(translation)
    return found


def path(locale: str, domain: str, ending: str) -> Path:
    return APP / "locale" / locale / "LC_MESSAGES" / f"{domain}.{ending}"


def _entry(block: str) -> Entry:
    entry = Entry()
    name = ""
    for line in block.splitlines():
        if line.startswith("#,"):
            entry.flags += line[2:].replace(" ", "").split(",")
        if line.startswith("#"):
            continue
        word, _, rest = line.partition(" ") if line[:1] != '"' else (name, "", line)
        if word.startswith("msgstr"):
            if word != name:
                entry.translations.append("")
            entry.translations[-1] += ast.literal_eval(rest)
        elif word == "msgctxt":
            entry.context = (entry.context or "") + ast.literal_eval(rest)
        elif word == "msgid":
            entry.text += ast.literal_eval(rest)
        elif word == "msgid_plural":
            entry.plural += ast.literal_eval(rest)
        name = word
    return entry


def marked(domain: str) -> set[Key]:
    """Return the texts that are marked in the sources."""
    if domain == "djangojs":
        return {
            key
            for file in (APP / "static").rglob("*.js")
            for key in _called(file.read_text(encoding="utf-8"))
        }
    templates = (
        file for kind in ("html", "txt") for file in APP.rglob(f"*.{kind}") if "templates" in file.parts
    )
    found = {key for file in templates for key in _called(templatize(file.read_text(encoding="utf-8")))}
    return found | {key for file in APP.rglob("*.py") for key in _of_python(file.read_text(encoding="utf-8"))}


def _called(source: str) -> Iterator[Key]:
    for name, first, second in _CALL.findall(source):
        has_context = "pgettext" in name
        texts = [ast.literal_eval(each.replace("\n", "\\n")) for each in (first, second) if each]
        yield (texts[0], texts[1]) if has_context else (None, texts[0])


def _of_python(source: str) -> Iterator[Key]:
    for node in ast.walk(ast.parse(source)):
        if (
            not isinstance(node, ast.Call)
            or not isinstance(node.func, ast.Name)
            or node.func.id not in _FUNCTIONS
        ):
            continue
        texts = [
            each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)
        ]
        if texts and "pgettext" in node.func.id:
            yield texts[0], texts[1]
        elif texts:
            yield None, texts[0]
