"""Every page of the control room: its address, what it needs, and what it is about. Tests of all pages use these."""

from __future__ import annotations

from types import SimpleNamespace
from urllib.parse import urlencode

import pytest
from django.contrib import admin

from components import models
from components.admin import (
    AddressBookAdmin,
    CachedRowAdmin,
    ChatAdmin,
    CounterAdmin,
    LockAdmin,
    LogJobAdmin,
    MailboxAdmin,
    OverviewAdmin,
    QueueAdmin,
    SemaphoreAdmin,
)
from components.services.autocomplete import AddressBook
from components.services.autocomplete import models as books
from components.services.locks import LockReader
from components.services.locks.named import key_of
from components.services.mailboxes import Mailbox
from components.services.semaphores import SemaphoreControls
from project.market.models import Item
from tests.chat.admin.conversations import guild
from tests.locks.admin import holdings
from tests.logs.admin import traffic
from tests.queues.admin import scene
from tests.queues.admin.periodic import HOURLY, declare_only
from tests.support.logs import append, joined, stream
from tests.support.queues import ECHO
from tests.support.rows import cache, refresh

ADMINS = {
    "queue": QueueAdmin(models.Queue, admin.site),
    "addressbook": AddressBookAdmin(models.AddressBook, admin.site),
    "cachedrow": CachedRowAdmin(models.CachedRow, admin.site),
    "chat": ChatAdmin(models.Chat, admin.site),
    "counter": CounterAdmin(models.Counter, admin.site),
    "lock": LockAdmin(models.Lock, admin.site),
    "logjob": LogJobAdmin(models.LogJob, admin.site),
    "mailbox": MailboxAdmin(models.Mailbox, admin.site),
    "overview": OverviewAdmin(models.Overview, admin.site),
    "semaphore": SemaphoreAdmin(models.Semaphore, admin.site),
}
METHODS = ["get", "head", "post", "put", "patch", "delete", "options"]


def every_page():
    """The URL of each page; a page is called "lock release", and the first of its kind "lock changelist"."""
    return {
        f"{model} {pattern.name.removeprefix(f'components_{model}_')}": ROOTS[model]
        + str(pattern.pattern).replace("<path:object_id>", "default_2Fmail")
        for model, pages in ADMINS.items()
        for pattern in pages.get_urls()
        if not pattern.name.endswith("_jsi18n")  # it is about nothing
    }


ROOTS = {model: f"/admin/components/{model}/" for model in ADMINS}
ROOT = ROOTS["queue"]
PAGES = every_page()
#: The pages that change something, by the permission that they need.
NEEDS = {
    "queue pause": "change",
    "queue resume": "change",
    "queue resend": "change",
    "queue cancel": "change",
    "queue quiet": "change",
    "queue stop": "change",
    "queue run": "change",
    "queue pause-periodic": "change",
    "queue resume-periodic": "change",
    "queue rerun": "change",
    "queue delete": "delete",
    "addressbook rebuild": "change",
    "addressbook remove": "delete",
    "cachedrow refresh": "refresh",
    "cachedrow delay": "change",
    "cachedrow remove": "delete",
    "chat close": "change",
    "chat reopen": "change",
    "chat kick": "change",
    "chat block": "change",
    "chat unblock": "change",
    "chat mute": "change",
    "chat unmute": "change",
    "chat trim": "delete",
    "chat delete_message": "delete",
    "chat delete": "delete",
    "lock release": "change",
    "logjob resend": "resend",
    "logjob discard": "delete",
    "logjob leave": "delete",
    "mailbox unblock": "change",
    "mailbox clear": "delete",
    "semaphore limit": "change",
    "semaphore reset": "change",
    "semaphore evict": "change",
}
CHANGING = set(NEEDS)
LOOKING = {
    "queue": {"changelist", "tasks", "failures", "task", "periodic", "history", "change"},
    "addressbook": {"changelist", "book", "history", "change"},
    "cachedrow": {"changelist", "model", "failing", "row", "history", "change"},
    "chat": {"changelist", "chat", "messages", "history", "change"},
    "counter": {"changelist", "family", "chart", "csv", "times", "time", "times_csv", "history", "change"},
    "lock": {"changelist", "lock", "history", "change"},
    "logjob": {"changelist", "job", "dead", "traffic", "csv", "hours", "history", "change"},
    "mailbox": {"changelist", "mailbox", "messages", "history", "change"},
    "overview": {"changelist", "find", "history", "change"},
    "semaphore": {"changelist", "semaphore", "history", "change"},
}
#: A state in which each verb may be done to a task; all others do not care.
STATE = {"queue resend": "dead", "queue cancel": "ready", "queue delete": "dead"}
#: What a form sends; all others do not care.
FORM = {"limit": "7", "seconds": "600", "before": "6", "delay": "7", "args": "[7]"}
#: Whom or what in a chat a page is about; all others do not care.
IN_CHAT = {
    "chat reopen": {"chat": "closed"},
    "chat unblock": {"user": "jenny"},
    "chat unmute": {"user": "jill"},
}
#: To change an address book is to rebuild it, and logs are handed out again; counters can only be looked at. To read
#: what was written is a permission beyond these.
CHANGES = [
    "rebuild_addressbook",
    "refresh_cachedrow",
    "resend_logjob",
    *(f"change_{model}" for model in ADMINS.keys() - {"addressbook", "counter", "logjob", "overview"}),
]
DELETES = [
    "remove_addressbook",
    "remove_cachedrow",
    "delete_chat",
    "discard_logjob",
    "remove_logjob",
    "delete_mailbox",
    "delete_queue",
]
READS = [
    "view_arguments_queue",
    "view_counter",
    "view_overview",
    "view_messages_chat",
    "view_messages_mailbox",
]
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


def query_of(page, **names):
    return f"?{urlencode({**NAMES, 'state': STATE.get(page, 'dead'), **names})}"


@pytest.fixture
def one_periodic_task():
    with declare_only(HOURLY):
        yield


@pytest.fixture
def query(redis, monkeypatch, one_periodic_task):
    """of(page) names all that the page may want to know."""
    monkeypatch.setattr(books, "_fed", {"market.item": SimpleNamespace(model=Item)})
    AddressBook("market.item").add("lantern", id=1)
    can_be_imported = scene.dead("mail", name=ECHO)
    ids = scene.one_of_each("mail")
    a_row()
    holdings.held("item:42")
    permit = holdings.permit("api")
    SemaphoreControls("api").set_limit(5)
    letters()
    seq = chats()
    chunk = logs(redis)
    names = {
        "key": key_of("item:42"),
        "holder": token_of("item:42"),
        "permit": permit.id,
        "seq": seq,
        "chunk": chunk,
    }

    def of(page):
        task = ids[STATE.get(page, "dead")]
        if page == "queue rerun":
            task = can_be_imported
        return query_of(page, **names, **IN_CHAT.get(page, {}), id=task)

    return of


def a_row():
    """One that is stored, and due in a minute."""
    cache().schedule("1", 60)
    refresh({"1": ["sword", 3]})


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


def letters():
    """A mailbox with a message and a blocked sender."""
    mailbox = Mailbox("jack")
    mailbox.push("jill", "hello")
    mailbox.block("joe")


def token_of(name):
    info = LockReader().find(name)
    assert info
    return info.token
