"""
Every text of every page can be translated, and what machines read of a page is the same in all languages.

A room is a model of the admin. Add to ROOMS a pattern of the names in its pages that are no texts, and to ASKED of
every_page.py what its pages show only if they are asked for it.
"""

from __future__ import annotations

import re
from socket import gethostname

import pytest

from components.services.counters import flush, measure
from components.services.counters.buffer import DROPPED, OUTAGES
from tests.control_room.every_page import ASKED, FORM, NEEDS, PAGES, VIEWS
from tests.counters.admin.counting import counted
from tests.queues.admin import scene
from tests.support.texts import brackets, misread, untranslated

#: Names of any page.
NAMES = rf"staff \(.*\)|\b[0-9a-f]{{32}}\b|\bdefault\b|\bmail\b|\b{re.escape(gethostname())}\b(-\w+)*"
ROOMS = {
    "queue": r"market\.tasks\.\w+|tests\.queues[.\w]+( every 1 hour)?|UTC|Valkey .*|Redis .*|builtins\.\w+"
    r"|(OSError: )?<b>no route</b>|tests\.tasks\.echo|OSError|components\.exceptions\.\w+|^The task .* had ended\.$",
    "counter": (
        r"\b(runs|runs-waited|requests|locks-held)-us\b|\btests\.tasks\.note\b|"
        r"\bhits\b|\brequests:(a|\*)|\brequests\b|\bcounters(-us)?:\w+|^counters(-us)?$"
    ),
    "addressbook": r"\bmarket\.item\b|\blantern\b",
    "cachedrow": r"\bitems(:1)?\b|\bdb\.\w+|\btokens\b|\bmarket\.\w+",
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
