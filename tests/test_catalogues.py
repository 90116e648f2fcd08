"""The catalogues of the app, and the texts in its sources, both read without GNU gettext."""

import ast
import gettext
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import TypeAlias

import pytest
from django.test import Client
from django.utils.translation.template import templatize

from tests.support.programs import NO_GETTEXT, find_gettext

APP = Path(__file__).resolve().parents[1] / "components"
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


DOMAINS = ["django", "djangojs"]
EACH = pytest.mark.parametrize(("locale", "domain"), list(product(LOCALES, DOMAINS)))
_PLACEHOLDER = re.compile(r"%\(\w+\)[a-z]|%[a-z%]")
_TAG = re.compile(r"</?\w+[^>]*>")


@EACH
def test_a_catalogue_has_every_text_of_the_sources_and_no_other(locale: str, domain: str) -> None:
    known, wanted = set(catalogue(locale, domain)), marked(domain)

    assert wanted - known == set(), "run make messages, and translate these"
    assert known - wanted == set(), "run make messages"


@EACH
def test_every_text_is_translated_with_its_placeholders_and_tags(locale: str, domain: str) -> None:
    forms = {"de": 2, "zh_Hans": 1}[locale]
    for entry in catalogue(locale, domain).values():
        assert "fuzzy" not in entry.flags, entry.text
        assert len(entry.translations) == (forms if entry.plural else 1), entry.text
        for translation in entry.translations:
            assert translation.strip(), entry.text
            for pattern in (_PLACEHOLDER, _TAG):
                assert sorted(pattern.findall(translation)) == sorted(pattern.findall(entry.text)), entry.text


@EACH
def test_what_is_compiled_is_what_is_written(locale: str, domain: str) -> None:
    def full(context_and_text: Key) -> str:
        return "\x04".join(filter(None, context_and_text))

    written = {full(key): entry.translations for key, entry in catalogue(locale, domain).items()}

    assert compiled(locale, domain) == written


@pytest.mark.slow
@pytest.mark.parametrize("domain", DOMAINS)
def test_gnu_gettext_finds_the_same_texts(tmp_path: Path, domain: str) -> None:
    """`make messages` uses it, and what it overlooks would be lost."""
    if not find_gettext():
        pytest.skip(NO_GETTEXT)
    copy = tmp_path / "components"
    shutil.copytree(APP, copy, ignore=shutil.ignore_patterns("__pycache__"))
    command = f"-m django makemessages --keep-pot -l de -d {domain} -v 0".split()
    environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    subprocess.run([sys.executable, *command], cwd=copy, env=environment, check=True)

    found = re.findall(
        "^msgid ", (copy / "locale" / f"{domain}.pot").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(found) == len(catalogue("de", domain)) + 1  # the header


@pytest.mark.parametrize(
    ("asked", "language", "text"),
    [
        ("de-AT,en;q=0.5", "de", "Warteschlangen"),
        ("zh-CN", "zh-hans", "队列"),
        ("en-GB", "en", "Queues"),
        ("fr", "en", "Queues"),
    ],
)
def test_a_page_speaks_the_language_of_its_visitor(
    redis, admin_client: Client, asked, language, text
) -> None:
    answer = admin_client.get("/admin/components/queue/", headers={"Accept-Language": asked})

    assert f'<html lang="{language}"' in answer.text
    assert f"<h1>{text}</h1>" in answer.text
    assert answer["Content-Language"] == language
    assert "Accept-Language" in answer["Vary"]


@pytest.mark.parametrize("address", ["/admin/components/queue/jsi18n/", "/components/jsi18n/"])
def test_scripts_get_the_language_of_the_visitor(admin_client: Client, address: str) -> None:
    german, english = (admin_client.get(address, headers={"Accept-Language": each}) for each in ("de", "en"))

    assert german["Content-Type"].startswith("text/javascript")
    assert '"Refresh is off.": "Die Aktualisierung ist ausgeschaltet."' in german.text
    assert "Refresh is off." not in english.text
