"""Who may see and do what on every page, and what all pages have in common: a later page is tested without a word."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import get_resolver

from components.services.autocomplete import AddressBook
from components.services.chat import Chat, ChatReader
from components.services.logs import look_at
from components.services.mailboxes import Mailbox
from components.services.queues import TaskQueue, Ticks
from components.services.rows import RowReader
from components.services.semaphores import SemaphoreControls
from tests.control_room.every_page import (
    ADMINS,
    CHANGES,
    CHANGING,
    DELETES,
    FORM,
    LOOKING,
    NEEDS,
    PAGES,
    READS,
    ROOT,
    ROOTS,
    token_of,
)
from tests.control_room.pages import words
from tests.queues.admin import scene
from tests.support.monitoring import sent_to
from tests.support.queues import places

METHODS = ["get", "head", "post", "put", "patch", "delete", "options"]


@pytest.fixture
def viewer(staff):
    return staff(*(f"view_{model}" for model in ADMINS), *READS)


@pytest.fixture
def operator(staff):
    return staff(*CHANGES, "view_arguments_queue")


@pytest.fixture
def remover(staff):
    return staff(*(f"view_{model}" for model in ADMINS), *DELETES)


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
    tasks = (places("mail"), places("default"), orders, queue.stats("mail").paused, Ticks().paused())
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


def test_the_pages_are_all_that_the_admin_has_of_this_app():
    app = {
        each.name
        for resolver in get_resolver().url_patterns
        if getattr(resolver, "namespace", "") == "admin"
        for model in resolver.url_patterns
        for each in getattr(model, "url_patterns", [])
        if each.name and each.name.startswith("components_") and not each.name.endswith("_jsi18n")
    }

    assert app == {f"components_{page.replace(' ', '_', 1)}" for page in PAGES}


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
def test_permission_to_view_shows_and_does_not_post(viewer, query, page):
    # "change" leads to the page of what the log points to, which may be gone.
    gone = {
        f"{model} change"
        for model in ("addressbook", "cachedrow", "chat", "lock", "logjob", "mailbox", "semaphore")
    }
    answers = {404} if page in gone else {200}

    assert viewer.get(PAGES[page] + query(page), follow=True).status_code in answers
    assert viewer.post(PAGES[page] + query(page)).status_code == 405


@pytest.mark.parametrize("page", CHANGING)
def test_permission_to_view_changes_nothing(viewer, query, page):
    before = what_can_change()

    answers = {method: getattr(viewer, method)(PAGES[page] + query(page)).status_code for method in METHODS}

    assert answers == dict.fromkeys(METHODS, 403)
    assert what_can_change() == before


@pytest.mark.parametrize("page", CHANGING - {"queue resume", "queue resume-periodic"})
def test_each_change_needs_its_permission_and_no_other(operator, remover, query, page):
    allowed, refused = (remover, operator) if NEEDS[page] == "delete" else (operator, remover)
    before, address = what_can_change(), PAGES[page] + query(page)
    assert refused.post(address, FORM).status_code == 403
    assert what_can_change() == before

    assert allowed.get(address).status_code == 200
    assert what_can_change() == before
    assert allowed.post(address, FORM).status_code == 302

    assert what_can_change() != before


def test_permission_to_delete_without_view_allows_neither(staff, query):
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
        "queue task": {"queue resend", "queue rerun"},
        "queue periodic": {"queue run", "queue pause-periodic"},
        "queue failures": {"queue pause", "queue resend"},
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


@pytest.mark.parametrize("page", sorted(set(PAGES) - {f"{model} change" for model in ADMINS}))
def test_another_admin_site_has_the_pages_under_its_own_urls(staff, query, page):
    client = staff(*CHANGES, *DELETES, *READS)
    address = (PAGES[page] + query(page)).replace("/admin/", "/operations/")

    answer = client.get(address)
    if answer["Content-Type"].startswith("text/html"):
        assert f'href="/operations/components/{page.split()[0]}/' in answer.text
        assert '="/admin/' not in answer.text
    if page in CHANGING:
        assert client.post(address, FORM).url.startswith("/operations/components/")


def test_no_page_looks_through_all_keys(staff, query, redis_server):
    client = staff(*CHANGES, *DELETES, *READS, *(f"view_{model}" for model in ADMINS))

    with sent_to(redis_server) as commands:
        statuses = {client.get(PAGES[page] + query(page), follow=True).status_code for page in PAGES}

    assert 200 in statuses
    assert len(commands) > len(PAGES)
    assert {"KEYS", "SCAN"}.isdisjoint(commands)


#: What a page is asked for that there is not, and what it says then.
NOT_THERE = [
    *(
        (f"addressbook {page}", {"book": book}, f"There is no address book {book!r}.")
        for page in ("book", "rebuild", "remove")
        for book in ("all", "")
    ),
    *(
        (f"chat {page}", {"chat": chat}, f"There is no chat {chat!r}")
        for page in ("chat", "messages", "mute", "trim", "close", "reopen", "kick", "block", "delete")
        for chat in ("gone", "", "a\x00b", "x" * 600)
    ),
    *(
        (f"lock {page}", {"key": key}, reason)
        for page in ("lock", "release")
        for key, reason in (
            ("gone", "There is no lock with the key 'gone', or nobody has used it for a day."),
            ("", "No lock can have the key ''"),
            ("x" * 501, "a name is text of 1 to 500 characters"),
        )
    ),
    *(
        (f"logjob {page}", {"job": job}, "")
        for page in ("job", "dead", "traffic", "csv", "hours", "resend", "leave")
        for job in ("", "nowhere", "x" * 501)
    ),
    *(
        (f"mailbox {page}", {"mailbox": name}, f"There is no mailbox {name!r}")
        for page in ("mailbox", "messages", "unblock", "clear")
        for name in ("gone", "")
    ),
    ("queue task", {"alias": "default", "id": "gone"}, "There is no task 'gone'."),
    ("queue task", {"alias": "default"}, "There is no task ''."),
    ("queue task", {"alias": "other", "id": "1"}, "No TASKS alias 'other' is served by Redis."),
    ("queue tasks", {"queue": "mail"}, "No TASKS alias '' is served by Redis."),
    ("queue tasks", {"alias": "default", "queue": "a\nb"}, "A queue cannot be called"),
    ("queue tasks", {"alias": "default", "queue": "mail", "state": "odd"}, "Tasks have no state 'odd'."),
    ("queue pause", {"alias": "default"}, "A queue cannot be called ''"),
    ("queue resume", {"alias": "no", "queue": "mail"}, "No TASKS alias 'no'"),
    *(("cachedrow row", {"row": row}, "") for row in ("none:1", "a", "")),
    *(
        (f"cachedrow {page}", {"model": model}, "")
        for page in ("model", "refresh", "delay")
        for model in ("none", "a:b", "")
    ),
    *(
        (f"semaphore {page}", {"semaphore": name}, f"There is no semaphore {name!r}")
        for page in ("semaphore", "limit", "reset", "evict")
        for name in ("gone", "")
    ),
]


@pytest.mark.parametrize(("page", "asked", "reason"), NOT_THERE)
def test_a_missing_object_is_a_404_page(redis, staff, page, asked, reason):
    response = staff(*CHANGES, *DELETES, *READS).get(PAGES[page], asked)

    assert response.status_code == 404
    assert reason in words(response)
    plural = ADMINS[page.split()[0]].opts.verbose_name_plural
    assert f"All {plural}" in words(response)
