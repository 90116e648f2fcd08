"""
Every text of every page can be translated, and what machines read of a page is the same in all languages.

A room is a model of the admin. Add yours to ROOMS when its texts are marked, with a pattern of the names in its pages
that are no texts, and to ASKED what its pages show only if they are asked for it.
"""

from __future__ import annotations

import re
from socket import gethostname

import pytest
from django.test import Client

from components.services.counters import flush, measure
from components.services.counters.buffer import DROPPED, OUTAGES
from components.services.locks.named import key_of
from components.services.queues.admin.lookups import STATES
from tests.control_room.every_page import ADMINS, CHANGES, CHANGING, DELETES, FORM, PAGES, READS
from tests.counters.admin.counting import counted
from tests.queues.admin import scene
from tests.support.texts import brackets, misread, untranslated

#: Names of any page.
NAMES = rf"staff \(.*\)|\b[0-9a-f]{{32}}\b|\bdefault\b|\bmail\b|\b{re.escape(gethostname())}\b(-\w+)*"
ROOMS = {
    "queue": r"market\.tasks\.\w+|tests\.queues[.\w]+( every 1 hour)?|UTC|Valkey .*|Redis .*|builtins\.\w+"
    r"|(OSError: )?<b>no route</b>|tests\.tasks\.echo|OSError",
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
MAIL = {"alias": "default", "queue": "mail"}
OLD = "2026-01-01T00:00"
#: What else the pages are asked: of a page, its query, and the expected status.
ASKED = [
    *(("queue tasks", {**MAIL, "state": state}, 200) for state in STATES),
    *(("queue tasks", {**MAIL, "state": state, "q": "send"}, 200) for state in STATES),
    *(("queue tasks", {"alias": "default", "state": state}, 200) for state in STATES),
    ("queue tasks", {"alias": "default", "state": "dead", "q": "send"}, 200),
    ("queue tasks", {"alias": "default", "state": "dead", "after": "9e99:x y"}, 200),
    *(
        ("queue delete", {"alias": "default", "state": "dead", "scope": "all", **asked}, 200)
        for asked in ({}, {"q": "send"}, {"task": "send"})
    ),
    ("queue tasks", {**MAIL, "q": "nothing"}, 200),
    *(("queue tasks", {**MAIL, "state": state, "task": "send"}, 200) for state in STATES),
    ("queue tasks", {**MAIL, "since": "yesterday"}, 200),
    ("queue tasks", {**MAIL, "state": "dead", "group": "none"}, 200),
    ("queue tasks", {**MAIL, "state": "ready", "group": "none"}, 404),
    ("queue failures", {"alias": "default", "queue": "default"}, 200),
    ("queue failures", {"alias": "default"}, 200),
    ("queue resend", {**MAIL, "state": "dead", "scope": "all", "group": "none"}, 200),
    ("queue delete", {**MAIL, "state": "dead", "scope": "all", "task": "send"}, 200),
    ("queue tasks", {**MAIL, "state": "odd"}, 404),
    ("queue task", {"alias": "default", "id": "gone"}, 404),
    ("queue task", {"alias": "other", "id": "gone"}, 404),
    ("queue stop", {"alias": "default"}, 200),
    ("queue quiet", {"alias": "default", "worker": "gone"}, 404),
    ("queue resend", {**MAIL, "state": "ready"}, 404),
    ("queue delete", {**MAIL, "state": "dead", "scope": "all"}, 200),
    ("queue delete", {**MAIL, "state": "dead", "scope": "all", "q": "send"}, 200),
    ("queue delete", {**MAIL, "state": "dead", "scope": "all", "q": "nothing"}, 200),
    ("queue delete", {**MAIL, "state": "dead", "scope": "selected"}, 200),
    ("queue delete", {**MAIL, "state": "dead", "id": "1"}, 200),
    ("queue cancel", {**MAIL, "state": "ready", "id": ["1", "2"]}, 200),
    ("counter changelist", {"q": "hi"}, 200),
    ("counter changelist", {"q": "nothing"}, 200),
    ("counter chart", {}, 200),
    ("counter chart", {"counter": ["hits", "requests:a"], "family": ["requests"], "span": "600"}, 200),
    ("counter chart", {"counter": "hits", "from": "yesterday"}, 400),
    ("counter chart", {"counter": "hits", "from": OLD, "until": OLD}, 400),
    ("counter chart", {"counter": "hits", "until": OLD}, 400),
    ("counter chart", {"counter": "hits", "from": OLD, "precision": "1"}, 400),
    ("counter chart", {"counter": "hits", "from": "2222-01-01T00:00"}, 400),
    *(("counter chart", {"counter": "hits", "span": span}, 400) for span in ("0", "long")),
    *(("counter chart", {"counter": "hits", "precision": each}, 400) for each in ("7", "x")),
    ("counter chart", {"counter": "hits", "precision": "1", "span": "99999"}, 400),
    *(("counter times", {"of": each}, 200) for each in ("tasks", "views", "locks")),
    ("counter times", {"of": "people"}, 404),
    ("counter time", {"of": "locks", "name": "requests"}, 200),
    ("counter time", {"name": ""}, 404),
    ("counter family", {"family": "requests"}, 200),
    ("counter family", {"family": "none"}, 200),
    ("counter family", {"family": "requests", "top": "99"}, 400),
    ("addressbook changelist", {"q": "mar"}, 200),
    ("addressbook changelist", {"q": "nothing"}, 200),
    *(
        ("addressbook book", {"book": "market.item", "prefix": each}, 200)
        for each in ("lan", "x", "", "x" * 201)
    ),
    *((f"addressbook {each}", {"book": "none"}, 404) for each in ("book", "rebuild", "remove")),
    ("cachedrow changelist", {"q": "ite"}, 200),
    ("cachedrow changelist", {"q": "nothing"}, 200),
    ("cachedrow model", {"model": "none"}, 404),
    ("cachedrow failing", {}, 200),
    ("cachedrow failing", {"model": "a:b"}, 404),
    ("cachedrow row", {"row": "items:9"}, 404),
    *((f"cachedrow {each}", {"row": ""}, 404) for each in ("refresh", "delay", "remove")),
    ("cachedrow delay", {"row": "items:9"}, 404),
    *((f"cachedrow {each}", {"row": "items:9"}, 200) for each in ("refresh", "remove")),
    *((f"cachedrow {each}", {"model": "items"}, 200) for each in ("refresh", "delay", "remove")),
    *(
        (f"cachedrow {each}", {"model": "items", "bucket": "9"}, 200)
        for each in ("refresh", "delay", "remove")
    ),
    ("chat changelist", {"q": "nothing"}, 200),
    ("chat chat", {"chat": "gone"}, 404),
    ("chat mute", {"chat": "guild:7", "user": "gone"}, 404),
    *((f"chat {each}", {"chat": "closed"}, 200) for each in ("close", "kick", "unmute", "delete_message")),
    ("lock changelist", {"q": "nothing"}, 200),
    *(("lock lock", {"key": key}, 404) for key in ("gone", "")),
    ("lock release", {"key": key_of("item:42"), "holder": "gone"}, 200),
    *((f"logjob {each}", {"job": "gone"}, 404) for each in ("job", "dead", "leave")),
    ("logjob hours", {"job": "default", "hour": "25"}, 400),
    ("mailbox changelist", {"q": "nothing"}, 200),
    ("mailbox mailbox", {"mailbox": "gone"}, 404),
    ("mailbox messages", {"mailbox": "jack", "first": "9" * 16}, 200),
    ("mailbox unblock", {"mailbox": "jack", "sender": "jill"}, 200),
    ("semaphore changelist", {"q": "nothing"}, 200),
    ("semaphore semaphore", {"semaphore": "gone"}, 404),
    ("semaphore evict", {"semaphore": "api", "permit": "gone"}, 404),
]


@pytest.fixture
def everyone(staff) -> Client:
    """Staff that may do everything in Redis."""
    return staff(*(f"view_{model}" for model in ADMINS), *CHANGES, *DELETES, *READS, "view_arguments_queue")


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


def check(page: str, html: str) -> None:
    assert untranslated(html, f"{NAMES}|{ROOMS[page.split()[0]]}") == []
    assert misread(html) == []


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.split()[0] in ROOMS and not page.endswith(("csv", " change"))],
)
def test_each_text_of_a_page_is_marked(everyone, things, page):
    address = PAGES[page] + things(page)
    with brackets():
        answers = [everyone.get(address)]
        if page in CHANGING:
            answers.append(everyone.post(address, FORM, follow=True))

    for answer in answers:
        assert answer.status_code == 200
        check(page, answer.text)


def test_each_text_is_marked_while_redis_is_away(everyone):
    with brackets():
        answer = everyone.get(PAGES["queue changelist"])

    assert answer.status_code == 503
    assert untranslated(answer.text, rf"{NAMES}|Redis does not answer: .*") == []


@pytest.mark.parametrize(("page", "asked", "status"), ASKED)
def test_each_text_of_an_answer_is_marked(everyone, things, page, asked, status):
    with brackets():
        answer = everyone.get(PAGES[page], asked)

    assert answer.status_code == status
    check(page, answer.text)


def test_a_download_is_the_same_in_all_languages(everyone, things):
    address = PAGES["counter csv"]
    asked = {"counter": "hits", "span": "600", "precision": "60"}
    with brackets():
        lines = everyone.get(address, asked).text.splitlines()

    assert lines[0] == "from,hits"
    assert any(line.endswith(",2345") for line in lines)
