"""
Every text of every page can be translated, and what machines read of a page is the same in all languages.

A room is a model of the admin. Add to ROOMS a pattern of the names in its pages that are no texts, and to ASKED of
every_page.py what its pages show only if they are asked for it.

In the language of these tests each text is ⟦text⟧, so that a page shows which of its texts no catalogue could
translate. Numbers are as in German, in groups of three: "1.234,5". What machines read must not be.
"""

import gettext
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from socket import gethostname

import pytest
from django.conf import settings
from django.test import override_settings
from django.utils import translation
from django.utils.formats import reset_format_cache
from django.utils.translation import trans_real

from components.services.counters import flush, measure
from components.services.counters.buffer import DROPPED, OUTAGES
from tests.control_room.every_page import ASKED, FORM, NEEDS, PAGES, VIEWS
from tests.queues.admin import scene
from tests.support.counters import counted

#: Names of any page.
NAMES = rf"staff \(.*\)|\b[0-9a-f]{{32}}\b|\bdefault\b|\bmail\b|\b{re.escape(gethostname())}\b(-\w+)*"
ROOMS = {
    "queue": r"market\.tasks\.\w+|^(send|echo)$|tests\.queues[.\w]+( every 1 hour)?|UTC|builtins\.\w+"
    r"|(OSError: )?<b>no route</b>|tests\.tasks\.echo|OSError|components\.exceptions\.\w+|^The task .* had ended\.$",
    "counter": (
        r"\b(runs|runs-waited|requests|locks-held)-us\b|\btests\.tasks\.note\b|"
        r"\bhits\b|\brequests:(a|\*)|\brequests\b|\bcounters(-us)?:\w+|^counters(-us)?$"
    ),
    "addressbook": r"\bmarket\.item\b|\blantern\b",
    "cachedrow": r"\bitems(:1)?\b|\bdb\.\w+|\b(tokens|stamps)\b|\bmarket\.\w+",
    "chat": r"\bLantern Keepers\b|\bj(oe|ack|ill|enny)\b|\b(welcome|look|one more)\b|\bthe treasure .* mill\b",
    "lock": r"\bitem:42\b|\bjill\b|\bMainThread\b",
    "logjob": r"\bplaces\b|\baccess\.log\b|\b[A-Z]{2}\b|\b[1-5]xx\b",
    "mailbox": r"\bjack\b|\bjill\b|\bjoe\b|\bhello\b",
    "overview": r"\bRedis\b:?|Valkey .*|\bredis\.sock\b|/\S+\.sock:?|\bhits\b",
    "semaphore": r"\bapi\b|\bjill\b|\bMainThread\b",
}


@pytest.fixture
def everyone(staff):
    """Staff that may do everything in Redis, and see nothing of other apps."""
    return staff(*VIEWS, *(f"{verb}_{page.split()[0]}" for page, verb in NEEDS.items()))


@pytest.fixture
def things(redis, query):
    """What every_page.py puts into Redis, and more."""
    scene.worker("mail")
    scene.ready("mail", 2)
    counted(redis, "hits", 1, 2345)
    counted(redis, "requests:a", 7)
    for name in ("runs-us", "runs-waited-us", "requests-us", "locks-held-us"):
        measure(f"{name}:tests.tasks.note", 5_000)
    flush()
    counted(redis, DROPPED, 1)
    counted(redis, OUTAGES, 1)
    return query


@pytest.mark.slow
@pytest.mark.parametrize("room", ROOMS)
def test_each_text_of_a_room_is_marked(everyone, things, room):
    names, wrong = f"{NAMES}|{ROOMS[room]}", []
    pages = [page for page in PAGES if page.split()[0] == room and not page.endswith(("csv", " change"))]
    with brackets():
        for page, asked, status in ASKED:
            if page in pages:
                answer = everyone.get(PAGES[page], asked)
                assert answer.status_code == status, (page, asked)
                wrong += [
                    (page, asked, each) for each in untranslated(answer.text, names) + misread(answer.text)
                ]
        for page in sorted(pages, key=lambda page: (page in NEEDS, NEEDS.get(page) != "change")):
            address = PAGES[page] + things(page)
            answers = [everyone.get(address)]
            if page in NEEDS:
                answers.append(everyone.post(address, FORM, follow=True))
            for answer in answers:
                wrong += [(page, each) for each in untranslated(answer.text, names) + misread(answer.text)]

    assert wrong == []


def test_each_text_is_marked_while_redis_is_away(everyone, one_periodic_task):
    with brackets():
        answer = everyone.get(PAGES["queue changelist"])

    assert answer.status_code == 503
    assert untranslated(answer.text, rf"{NAMES}|Redis does not answer: .*") == []


def test_a_download_is_the_same_in_all_languages(everyone, things):
    asked = {"counter": "hits", "span": "600", "precision": "60"}
    with brackets():
        lines = everyone.get(PAGES["counter csv"], asked).text.splitlines()

    assert lines[0] == "from,hits"
    assert any(line.endswith(",2345") for line in lines)


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
