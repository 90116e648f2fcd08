"""Who may see and do what, on every URL that the Queues page has: a later one is tested without being named."""

from __future__ import annotations

from types import SimpleNamespace
from urllib.parse import urlencode

import pytest
from django.contrib import admin
from django.test import Client

from components import models
from components.admin import (
    AddressBookAdmin,
    CachedRowAdmin,
    ChatAdmin,
    CounterAdmin,
    LockAdmin,
    LogJobAdmin,
    MailboxAdmin,
    QueueAdmin,
    SemaphoreAdmin,
)
from components.services.autocomplete import AddressBook
from components.services.autocomplete import models as books
from components.services.chat import Chat, ChatReader
from components.services.locks import LockReader
from components.services.locks.named import key_of
from components.services.logs import look_at
from components.services.mailboxes import Mailbox
from components.services.queues import TaskQueue
from components.services.rows import RowReader
from components.services.semaphores import SemaphoreControls
from project.market.models import Item
from tests.chat.admin.conversations import guild
from tests.locks.admin import holdings
from tests.logs.admin import traffic
from tests.queues.admin import scene
from tests.queues.admin.periodic import HOURLY, declare_only
from tests.support.logs import append, joined, stream
from tests.support.queues import places
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
    "queue": {"changelist", "tasks", "task", "periodic", "history", "change"},
    "addressbook": {"changelist", "book", "history", "change"},
    "cachedrow": {"changelist", "model", "failing", "row", "history", "change"},
    "chat": {"changelist", "chat", "messages", "history", "change"},
    "counter": {"changelist", "family", "chart", "csv", "history", "change"},
    "lock": {"changelist", "lock", "history", "change"},
    "logjob": {"changelist", "job", "dead", "traffic", "csv", "history", "change"},
    "mailbox": {"changelist", "mailbox", "messages", "history", "change"},
    "semaphore": {"changelist", "semaphore", "history", "change"},
}
#: A state in which each verb may be done to a task; all others do not care.
STATE = {"queue resend": "dead", "queue cancel": "ready", "queue delete": "dead"}
#: What a form sends; all others do not care.
FORM = {"limit": "7", "seconds": "600", "before": "6", "delay": "7"}
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
    *(f"change_{model}" for model in ADMINS.keys() - {"addressbook", "counter", "logjob"}),
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
READS = ["view_counter", "view_messages_chat", "view_messages_mailbox"]


@pytest.fixture(autouse=True)
def one_periodic_task():
    with declare_only(HOURLY):
        yield


@pytest.fixture
def viewer(staff):
    return staff(*(f"view_{model}" for model in ADMINS), *READS)


@pytest.fixture
def operator(staff):
    return staff(*CHANGES)


@pytest.fixture
def remover(staff):
    return staff(*(f"view_{model}" for model in ADMINS), *DELETES)


@pytest.fixture
def query(redis, monkeypatch):
    """of(page) names all that the page may want to know."""
    monkeypatch.setattr(books, "_fed", {"market.item": SimpleNamespace(model=Item)})
    AddressBook("market.item").add("lantern", id=1)
    ids = scene.one_of_each("mail")
    a_row()
    holdings.held("item:42")
    permit = holdings.permit("api")
    SemaphoreControls("api").set_limit(5)
    letters()
    seq = chats()
    chunk = logs(redis)
    names = {
        "book": "market.item",
        "alias": "default",
        "queue": "mail",
        "periodic": HOURLY.name,
        "key": key_of("item:42"),
        "holder": token_of("item:42"),
        "semaphore": "api",
        "permit": permit.id,
        "chat": "guild:7",
        "user": "jack",
        "seq": seq,
        "counter": "hits",
        "family": "hits",
        "mailbox": "jack",
        "sender": "joe",
        "row": "items:1",
        "model": "items",
        "job": "default",
        "aggregation": "places",
        "chunk": chunk,
    }

    def of(page):
        state = STATE.get(page, "dead")
        return f"?{urlencode({**names, **IN_CHAT.get(page, {}), 'state': state, 'id': ids[state]})}"

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


def stand(name):
    """All that can be changed of a chat."""
    reader = ChatReader()
    info = reader.find(name)
    return info and (info, Chat(name).blocked(), Chat(name).members(), reader.messages(name))


def stored(key):
    """When it is due, and how often."""
    info = RowReader().find("items", key)
    return info and (info.due_at, info.delay)


def what_can_change():
    queue, api = TaskQueue(), SemaphoreControls("api")
    orders = [(worker.id, worker.order) for worker in queue.workers()]
    tasks = (places("mail"), places("default"), orders, queue.stats("mail").paused)
    chats = [stand(name) for name in ("guild:7", "closed")]
    jack = Mailbox("jack")
    return (
        tasks,
        AddressBook("market.item").count(),
        chats,
        jack.peek(),
        jack.blocked(),
        token_of("item:42"),
        stored("1"),
        api.info().override,
        [permit.id for permit in api.holders()],
        [(each.name, each.dead, each.waiting) for each in look_at("default").aggregations],
    )


def test_the_pages_are_the_ones_that_this_test_knows_to_be_looking_or_changing():
    looking = {f"{model} {page}" for model, pages in LOOKING.items() for page in pages}

    assert set(PAGES) == looking | CHANGING


@pytest.mark.parametrize("route", ["add/", "default_2Fmail/", "default_2Fmail/delete/"])
@pytest.mark.parametrize("model", ADMINS)
def test_stock_pages_that_would_need_a_table_do_not_exist(operator, model, route):
    assert operator.get(ROOTS[model] + route).status_code == 404


@pytest.mark.parametrize("page", PAGES)
def test_staff_without_permission_get_403(stranger, query, page):
    answers = {method: getattr(stranger, method)(PAGES[page] + query(page)).status_code for method in METHODS}

    assert answers == dict.fromkeys(METHODS, 403)


@pytest.mark.parametrize("page", PAGES)
def test_permission_for_other_pages_is_none_for_this_one(staff, query, page):
    others = ADMINS.keys() - {page.split()[0]}
    verbs = ("view", "change", "delete", "rebuild", "refresh", "remove", "resend", "discard")
    client = staff(*(f"{verb}_{model}" for model in others for verb in verbs))

    for method in (client.get, client.post):
        assert method(PAGES[page] + query(page)).status_code == 403


@pytest.mark.parametrize("page", PAGES)
def test_the_anonymous_are_sent_to_the_log_in(db, query, page):
    for ask in (Client().get, Client().post):
        response = ask(PAGES[page] + query(page))

        assert response.status_code == 302
        assert response.url.startswith("/admin/login/?next=")


@pytest.mark.parametrize("page", set(PAGES) - CHANGING)
def test_who_may_view_can_look_and_not_post(viewer, query, page):
    # "change" leads to the page of what the log points to, which may be gone.
    gone = {
        f"{model} change"
        for model in ("addressbook", "cachedrow", "chat", "lock", "logjob", "mailbox", "semaphore")
    }
    answers = {404} if page in gone else {200}

    assert viewer.get(PAGES[page] + query(page), follow=True).status_code in answers
    assert viewer.post(PAGES[page] + query(page)).status_code == 405


@pytest.mark.parametrize("page", CHANGING)
def test_who_may_only_view_can_change_nothing(viewer, query, page):
    before = what_can_change()

    answers = {method: getattr(viewer, method)(PAGES[page] + query(page)).status_code for method in METHODS}

    assert answers == dict.fromkeys(METHODS, 403)
    assert what_can_change() == before


@pytest.mark.parametrize("page", CHANGING - {"queue resume"})
def test_each_change_needs_its_permission_and_no_other(operator, remover, query, page):
    allowed, refused = (remover, operator) if NEEDS[page] == "delete" else (operator, remover)
    before, address = what_can_change(), PAGES[page] + query(page)
    assert refused.post(address, FORM).status_code == 403
    assert what_can_change() == before

    assert allowed.get(address).status_code == 200
    assert what_can_change() == before
    assert allowed.post(address, FORM).status_code == 302

    assert what_can_change() != before


def test_who_may_delete_and_not_look_can_do_neither(staff, query):
    client = staff("delete_queue")

    for page in PAGES:
        assert client.get(PAGES[page] + query(page)).status_code == 403


def test_buttons_are_only_shown_to_those_who_may_press_them(viewer, operator, remover, query):
    scene.worker("mail")
    shown = {
        "addressbook book": {"addressbook rebuild"},
        "cachedrow row": {"cachedrow refresh", "cachedrow delay"},
        "cachedrow model": {"cachedrow refresh", "cachedrow delay"},
        "queue changelist": {"queue pause", "queue quiet", "queue stop"},
        "queue tasks": {"queue pause", "queue resend"},
        "queue task": {"queue resend"},
        "chat chat": {f"chat {verb}" for verb in ("close", "kick", "block", "unblock", "mute", "unmute")},
        "lock lock": {"lock release"},
        "logjob dead": {"logjob resend"},
        "mailbox mailbox": {"mailbox unblock"},
        "semaphore semaphore": {"semaphore limit", "semaphore reset", "semaphore evict"},
    }
    for page, verbs in shown.items():
        for client, expected in ((operator, verbs), (viewer, set())):
            html = client.get(PAGES[page] + query(page)).text
            assert {
                verb for verb in CHANGING if f"{PAGES[verb]}?" in html or f'{PAGES[verb]}"' in html
            } == expected
    for page in ("queue tasks", "queue task"):
        html = remover.get(PAGES[page] + query(page)).text
        assert f"{ROOT}delete/" in html
        assert f"{ROOT}resend/" not in html


@pytest.mark.parametrize("model", ADMINS)
def test_the_menu_shows_a_page_to_those_who_may_view_it(staff, model):
    changes = [codename for codename in CHANGES if codename.endswith(f"_{model}")]
    for permission, is_shown in (
        (f"view_{model}", True),
        *((change, True) for change in changes),
        ("view_user", False),
    ):
        menu = staff(permission).get("/admin/").text
        assert {other for other, root in ROOTS.items() if f'href="{root}"' in menu} == (
            {model} if is_shown else set()
        )


@pytest.mark.parametrize("page", CHANGING)
def test_a_change_without_csrf_token_is_refused(staff, query, page):
    client = staff(*CHANGES, *DELETES)
    client.handler.enforce_csrf_checks = True
    before = what_can_change()

    response = client.post(PAGES[page] + query(page), FORM)

    assert response.status_code == 403
    assert what_can_change() == before
