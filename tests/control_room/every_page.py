"""
Every page of the control room, as the admin site has it: its address, what it needs, and what it is about. Tests of
all pages use these. A page is called "lock release", and the first of its kind "lock changelist".
"""

from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib import admin

from components.services.autocomplete import AddressBook
from components.services.autocomplete import models as books
from components.services.locks import LockReader
from components.services.locks.named import key_of
from components.services.mailboxes import Mailbox
from components.services.semaphores import SemaphoreControls
from project.market.models import Item
from tests.locks.admin import holdings
from tests.logs.admin import traffic
from tests.queues.admin import scene
from tests.queues.admin.scene import HOURLY, declare_only
from tests.support.chats import guild
from tests.support.logs import append, joined, stream
from tests.support.queues import ECHO
from tests.support.rows import cache, let_whole_delays_pass, refresh

ADMINS: dict[str, Any] = {
    model._meta.model_name: each
    for model, each in admin.site._registry.items()
    if model._meta.app_label == "components"
}
ROOTS = {model: f"/admin/components/{model}/" for model in ADMINS}
PAGES = {
    f"{model} {pattern.name.removeprefix(f'components_{model}_')}": ROOTS[model]
    + str(pattern.pattern).replace("<path:object_id>", "default_2Fmail")
    for model, each in ADMINS.items()
    for pattern in each.get_urls()
    if not pattern.name.endswith("_jsi18n")  # it is about nothing
}
#: The pages that change something, by the permission that they need. It is written here once more, for tests.
NEEDS = {
    f"{model} {page}": verb
    for verb, pages in {
        "change": {
            "queue": "pause resume promote resend cancel quiet stop run pause-periodic resume-periodic rerun",
            "cachedrow": "delay",
            "chat": "close reopen kick block unblock mute unmute",
            "lock": "release",
            "mailbox": "unblock",
            "semaphore": "limit reset evict",
        },
        "delete": {"queue": "delete", "chat": "trim delete_message delete", "mailbox": "clear"},
        "remove": {"addressbook": "remove", "cachedrow": "remove", "logjob": "leave"},
        "rebuild": {"addressbook": "rebuild"},
        "refresh": {"cachedrow": "refresh"},
        "resend": {"logjob": "resend"},
        "discard": {"logjob": "discard"},
    }.items()
    for model, names in pages.items()
    for page in names.split()
}
#: What may be looked at; to read what was written is a permission beyond "view".
VIEWS = [*(f"view_{model}" for model in ADMINS), "view_arguments_queue", "view_messages_chat"]
VIEWS.append("view_messages_mailbox")
#: Without Redis there is the history, the search finds pages and people, and to run a task asks nothing at first.
WITHOUT_REDIS = ["history", "log", "change", "run", "find"]
ASKING_REDIS = [page for page in PAGES if page.split()[1] not in WITHOUT_REDIS]
#: A state in which each verb may be done to a task; all others do not care.
STATE = {"queue promote": "delayed", "queue resend": "dead", "queue cancel": "ready", "queue delete": "dead"}
#: What a form sends; all others do not care.
FORM = {"limit": "7", "seconds": "600", "before": "6", "delay": "7", "args": "[7]"}
#: Whom or what in a chat a page is about; all others do not care.
IN_CHAT = {
    "chat reopen": {"chat": "closed"},
    "chat unblock": {"user": "jenny"},
    "chat unmute": {"user": "jill"},
}
#: What the pages are about; each looks for what it needs.
NAMES = {
    "book": "market.item",
    "alias": "default",
    "queue": "mail",
    "id": "1",
    "periodic": HOURLY.name,
    "key": "item:42",
    "holder": "h",
    "semaphore": "api",
    "permit": "p",
    "chat": "guild:7",
    "user": "jack",
    "counter": "hits",
    "family": "hits",
    "mailbox": "jack",
    "sender": "joe",
    "row": "items:1",
    "model": "items",
    "job": "default",
    "name": "tests.tasks.note",
    "aggregation": "places",
}
MAIL = {"alias": "default", "queue": "mail"}
DEAD = {**MAIL, "state": "dead"}
STATES = ("ready", "delayed", "running", "dead", "successful")
TOO_LONG = "x" * 600
#: What else pages are asked: other contents, what there is not, and what cannot be. A page, its query, the status.
ASKED: list[tuple[str, dict[str, Any], int]] = [
    *((f"{model} changelist", {"q": "nothing"}, 200) for model in ADMINS),
    *(("queue tasks", {**MAIL, "state": state, "q": "send"}, 200) for state in STATES),
    *(("queue tasks", {**MAIL, "state": state, "task": "send"}, 200) for state in STATES),
    ("queue tasks", {**MAIL, "since": "yesterday"}, 200),
    ("queue tasks", {**DEAD, "group": "none"}, 200),
    ("queue tasks", {**MAIL, "state": "ready", "group": "none"}, 404),
    ("queue tasks", {**MAIL, "state": "odd"}, 404),
    *(("queue tasks", each, 404) for each in ({"queue": "mail"}, {"alias": "default"})),
    ("queue tasks", {"alias": "default", "queue": "a\nb"}, 404),
    ("queue failures", {"alias": "default"}, 200),
    *(("queue task", {"alias": "default", "id": each}, 404) for each in ("gone", "")),
    ("queue task", {"alias": "other", "id": "gone"}, 404),
    ("queue stop", {"alias": "default"}, 200),
    ("queue quiet", {"alias": "default", "worker": "gone"}, 404),
    ("queue pause", {"alias": "default"}, 404),
    ("queue resume", {"alias": "no", "queue": "mail"}, 404),
    ("queue resend", {**MAIL, "state": "ready"}, 404),
    *(("queue delete", {**DEAD, "scope": "all", "q": each}, 200) for each in ("", "send", "nothing")),
    ("queue delete", {**DEAD, "scope": "selected"}, 200),
    ("queue cancel", {**MAIL, "state": "ready", "id": ["1", "2"]}, 200),
    ("counter changelist", {"q": "hi"}, 200),
    ("counter chart", {}, 200),
    ("counter chart", {"counter": ["hits", "requests:a"], "family": ["requests"], "span": "600"}, 200),
    *(
        ("counter chart", {"counter": "hits", **each}, 400)
        for each in (
            {"from": "yesterday"},
            {"from": "2026-01-01T00:00", "until": "2026-01-01T00:00"},
            {"until": "2026-01-01T00:00"},
            {"from": "2222-01-01T00:00"},
            {"span": "0"},
            {"span": "long"},
            {"precision": "7"},
            {"precision": "1", "span": "99999"},
        )
    ),
    *(("counter times", {"of": each}, 200) for each in ("tasks", "views", "locks")),
    ("counter times", {"of": "people"}, 404),
    ("counter time", {"of": "locks", "name": "requests"}, 200),
    ("counter time", {"name": ""}, 404),
    *(("counter family", {"family": each}, 200) for each in ("requests", "none")),
    ("counter family", {"family": "requests", "top": "99"}, 400),
    *(
        ("addressbook book", {"book": "market.item", "prefix": each}, 200)
        for each in ("lan", "x", "", "x" * 201)
    ),
    *((f"addressbook {page}", {"book": book}, 404) for page in ("book", "remove") for book in ("none", "")),
    *(("cachedrow model", {"model": each}, 404) for each in ("none", "a:b", "")),
    ("cachedrow failing", {}, 200),
    *(("cachedrow row", {"row": each}, 404) for each in ("items:9", "none:1", "a", "")),
    *((f"cachedrow {each}", {"row": ""}, 404) for each in ("refresh", "delay", "remove")),
    ("cachedrow delay", {"row": "items:9"}, 404),
    *((f"cachedrow {each}", {"model": "items"}, 200) for each in ("refresh", "delay", "remove")),
    ("cachedrow refresh", {"model": "items", "bucket": "9"}, 200),
    *(
        (f"chat {page}", {"chat": chat}, 404)
        for page in ("chat", "messages", "close")
        for chat in ("gone", "", "a\x00b", TOO_LONG)
    ),
    *(
        (f"chat {each}", {"chat": "closed"}, 200)
        for each in ("close", "kick", "mute", "unmute", "delete_message")
    ),
    *((f"lock {page}", {"key": key}, 404) for page in ("lock", "release") for key in ("gone", "", TOO_LONG)),
    ("lock release", {"key": key_of("item:42"), "holder": "gone"}, 200),
    *((f"logjob {page}", {"job": job}, 404) for page in ("job", "leave") for job in ("", "gone", TOO_LONG)),
    ("logjob hours", {"job": "default", "hour": "25"}, 400),
    *((f"mailbox {page}", {"mailbox": each}, 404) for page in ("mailbox", "clear") for each in ("gone", "")),
    ("mailbox messages", {"mailbox": "jack", "first": "9" * 16}, 200),
    ("mailbox unblock", {"mailbox": "jack", "sender": "jill"}, 200),
    *((f"semaphore {page}", {"semaphore": "gone"}, 404) for page in ("semaphore", "limit")),
    ("semaphore evict", {"semaphore": "api", "permit": "gone"}, 404),
]


def query_of(page: str, **names: object) -> str:
    return f"?{urlencode({**NAMES, 'state': STATE.get(page, 'dead'), **names})}"


@pytest.fixture
def one_periodic_task():
    with declare_only(HOURLY):
        yield


@pytest.fixture
def query(redis, monkeypatch, one_periodic_task):
    """query(page) names all that the page may want to know."""
    monkeypatch.setattr(books, "_fed", {"market.item": SimpleNamespace(model=Item)})
    AddressBook("market.item").add("lantern", id=1)
    can_be_imported = scene.dead("mail", name=ECHO)
    ids = scene.one_of_each("mail")
    cache().schedule("1", 60)
    refresh({"1": ["sword", 3]})
    let_whole_delays_pass()  # else the first may be so short that the row is due during a test
    holdings.held("item:42", timeout=3_600)
    permit = holdings.semaphore("api", lease=3_600).try_acquire(owner="jill")
    assert permit
    SemaphoreControls("api").set_limit(5)
    mailbox = Mailbox("jack")
    mailbox.push("jill", "hello")
    mailbox.block("joe")
    names = {
        "key": key_of("item:42"),
        "holder": token_of("item:42"),
        "permit": permit.id,
        "seq": chats(),
        "chunk": logs(redis),
    }

    def of(page):
        task = can_be_imported if page == "queue rerun" else ids[STATE.get(page, "dead")]
        return query_of(page, **names, **IN_CHAT.get(page, {}), id=task)

    return of


def logs(redis):
    """An aggregation that has given up a chunk, whose id it is, and what it has counted."""
    append(stream(), 0)
    aggregation = joined("places", tries=1)
    traffic.give_up(redis, aggregation, 1)
    traffic.count(1)
    traffic.count_hours()
    [(chunk, _at)] = aggregation.dead()
    return chunk


def chats():
    """One open and one closed; the number of a message."""
    chat = guild("guild:7")
    chat.mute("jill")
    chat.block("jenny")
    guild("closed").close()
    return chat.send("jack", "one more").seq


def token_of(name):
    info = LockReader().find(name)
    assert info
    return info.token
