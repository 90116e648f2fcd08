"""The catalogues: complete, compiled, in step with the sources, and used in the language of the visitor."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from django.test import Client

from tests.support.catalogues import APP, LOCALES, Key, catalogue, compiled, marked, path
from tests.support.programs import NO_GETTEXT, find_gettext

DOMAINS = ["django", "djangojs"]
_PLACEHOLDER = re.compile(r"%\(\w+\)[a-z]|%[a-z%]")
_TAG = re.compile(r"</?\w+[^>]*>")


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("locale", LOCALES)
def test_a_catalogue_has_every_text_of_the_sources_and_no_other(locale: str, domain: str) -> None:
    known, wanted = set(catalogue(locale, domain)), marked(domain)

    assert wanted - known == set(), "run make messages, and translate these"
    assert known - wanted == set(), "run make messages"


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("locale", LOCALES)
def test_every_text_is_translated_with_its_placeholders_and_tags(locale: str, domain: str) -> None:
    forms = {"de": 2, "zh_Hans": 1}[locale]
    for entry in catalogue(locale, domain).values():
        assert "fuzzy" not in entry.flags, entry.text
        assert len(entry.translations) == (forms if entry.plural else 1), entry.text
        for translation in entry.translations:
            assert translation.strip(), entry.text
            for pattern in (_PLACEHOLDER, _TAG):
                assert sorted(pattern.findall(translation)) == sorted(pattern.findall(entry.text)), entry.text


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("locale", LOCALES)
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
    command = [
        sys.executable,
        "-m",
        "django",
        "makemessages",
        "--keep-pot",
        "-l",
        "de",
        "-d",
        domain,
        "-v",
        "0",
    ]
    environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    subprocess.run(command, cwd=copy, env=environment, check=True)

    template = (copy / "locale" / f"{domain}.pot").read_text(encoding="utf-8")
    assert (
        len(re.findall("^msgid ", template, re.MULTILINE)) == len(catalogue("de", domain)) + 1
    )  # the header


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


def test_the_folder_has_all_that_is_tested() -> None:
    files = {
        file.relative_to(APP / "locale").as_posix() for file in (APP / "locale").rglob("*") if file.is_file()
    }

    assert files == {
        path(locale, domain, ending).relative_to(APP / "locale").as_posix()
        for locale in LOCALES
        for domain in DOMAINS
        for ending in ("po", "mo")
    }
