"""Who may see and do what on every page, and what all pages have in common: a later page is tested without a word."""

import re
from contextlib import suppress
from html import unescape
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import resolve

from components.formatting import legible
from components.services.autocomplete import AddressBook
from components.services.chat import Chat, ChatReader
from components.services.counters import Counter
from components.services.logs import look_at, note_job
from components.services.mailboxes import Mailbox
from components.services.queues import TaskQueue, Ticks
from components.services.rates import RateLimit
from components.services.rows import RowReader
from components.services.semaphores import SemaphoreControls
from tests.control_room.every_page import (
    ADMINS,
    FORM,
    NEEDS,
    PAGES,
    ROOTS,
    VIEWS,
    token_of,
)
from tests.control_room.pages import round_trips
from tests.locks.admin import holdings
from tests.queues.admin import scene
from tests.support.logs import append, stream
from tests.support.monitoring import sent_to
from tests.support.queues import places
from tests.support.rows import cache

SCRIPT = "<script>alert(1)</script>"
AWKWARD = [f"a/b ü%{{}}&?#'\"{SCRIPT}", "..", "two\nlines\x00 \u202e", "x" * 450]
#: To these lead forms, log entries, and links for states that nothing is in here.
NOT_LINKED = {
    *("cachedrow failing", "counter time", "counter times_csv", "logjob discard", "logjob resend"),
    *("queue resume", "queue resume-periodic"),
    *(f"{model} {page}" for model in ("counter", "overview", "ratelimit") for page in ("change", "history")),
}
#: Visited of each page with the same words in its query.
MOST_ALIKE = 6


def stand(name):
    """Return all that can be changed of a chat."""
    reader = ChatReader()
    info = reader.find(name)
    return info and (info, Chat(name).blocked(), Chat(name).members(), reader.messages(name))


def what_can_change():
    queue, api, jack = TaskQueue(), SemaphoreControls("api"), Mailbox("jack")
    row = RowReader().find("items", "1")
    return (
        places("mail"),
        places("default"),
        [(worker.id, worker.order) for worker in queue.workers()],
        [(stats.paused, stats.next_due_at) for stats in [queue.stats("mail")]],
        Ticks().paused(),
        AddressBook("market.item").count(),
        [stand(name) for name in ("guild:7", "closed")],
        jack.peek(),
        jack.blocked(),
        token_of("item:42"),
        row and (row.due_at, row.delay),
        api.info().override,
        [permit.id for permit in api.holders()],
        [(each.name, each.dead, each.waiting) for each in look_at("default").aggregations],
    )


def all_permissions():
    return set(
        Permission.objects.filter(content_type__app_label="components").values_list("codename", flat=True)
    )


def answers(client, query, pages, methods):
    return {
        (page, method): getattr(client, method)(PAGES[page] + query(page)).status_code
        for page in pages
        for method in methods
    }


def other_than(status, found):
    return {where: each for where, each in found.items() if each != status}


def test_those_who_may_not_see_a_page_are_refused(staff, query):
    before = what_can_change()

    assert other_than(403, answers(staff(), query, PAGES, ["get", "post", "put"])) == {}
    for model in ADMINS:
        others = {each for each in all_permissions() if not each.endswith(f"_{model}")}
        pages = [page for page in PAGES if page.split()[0] == model]
        assert other_than(403, answers(staff(*others), query, pages, ["get", "post"])) == {}
    queues = [page for page in PAGES if page.startswith("queue ")]
    assert other_than(403, answers(staff("delete_queue"), query, queues, ["get"])) == {}
    assert other_than(302, answers(Client(), query, PAGES, ["get", "post"])) == {}
    assert Client().get(PAGES["lock changelist"]).url.startswith("/admin/login/?next=")
    assert what_can_change() == before


def test_those_who_may_view_see_and_change_nothing(staff, query):
    viewer, before = staff(*VIEWS), what_can_change()
    # "change" leads to the page of what a log entry points to, which may be gone.
    looking = [page for page in PAGES if page not in NEEDS and not page.endswith(" change")]

    assert set(NEEDS) <= set(PAGES)
    assert other_than(405, answers(viewer, query, looking, ["post", "put"])) == {}
    assert other_than(403, answers(viewer, query, NEEDS, ["get", "post"])) == {}
    for page in looking:
        answer = viewer.get(PAGES[page] + query(page))
        assert answer.status_code == 200, page
        assert [verb for verb in NEEDS if f'="{PAGES[verb]}' in answer.text] == [], page
    assert what_can_change() == before


@pytest.mark.parametrize("page", set(NEEDS) - {"queue resume", "queue resume-periodic"})
def test_each_change_needs_its_permission_and_no_other(staff, query, page):
    model, address = page.split()[0], PAGES[page] + query(page)
    needed = f"{NEEDS[page]}_{model}"
    allowed = staff(*VIEWS, needed)
    before = what_can_change()
    assert staff(*(all_permissions() - {needed})).post(address, FORM).status_code == 403
    allowed.handler.enforce_csrf_checks = True
    assert allowed.post(address, FORM).status_code == 403
    allowed.handler.enforce_csrf_checks = False
    assert allowed.get(address).status_code == 200
    assert what_can_change() == before

    answer = allowed.post(address.replace("/admin/", "/operations/"), FORM)

    assert (answer.status_code, answer.url.startswith("/operations/components/")) == (302, True)
    assert what_can_change() != before


def test_the_menu_shows_a_page_to_those_who_may_view_it(staff):
    for model, its_admin in ADMINS.items():
        for look in {f"{look}_{model}" for look in its_admin.looks} & all_permissions():
            menu = staff(look).get("/admin/").text
            assert [other for other, root in ROOTS.items() if f'href="{root}"' in menu] == [model]
    assert "/admin/components/" not in staff("view_user").get("/admin/").text


@pytest.mark.parametrize("route", ["add/", "default_2Fmail/", "default_2Fmail/delete/"])
def test_stock_pages_that_would_need_a_table_do_not_exist(admin_client, route):
    assert {admin_client.get(root + route).status_code for root in ROOTS.values()} == {404}


def test_another_admin_site_has_the_pages_and_none_looks_through_all_keys(admin_client, query, redis_server):
    pages = [page for page in PAGES if not page.endswith(" change")]
    with sent_to(redis_server) as commands:
        for page in pages:
            answer = admin_client.get((PAGES[page] + query(page)).replace("/admin/", "/operations/"))
            assert answer.status_code == 200, page
            if answer["Content-Type"].startswith("text/html"):
                assert f'href="/operations/components/{page.split()[0]}/' in answer.text, page
                assert '="/admin/' not in answer.text, page

    assert len(commands) > len(pages)
    assert {"KEYS", "SCAN"}.isdisjoint(commands)


def make_awkward(name):
    """Make something of each kind that may be called *name*."""
    holdings.held(name)
    holdings.permit(name)
    Counter(name).update(7)
    Counter(f"{name}:of a family").update(7)
    mailbox = Mailbox(name)
    mailbox.push(name, "hello")
    mailbox.block(name)
    AddressBook(name).add("lantern", id=1)
    for make in (
        lambda: Chat.create("joe", members=[name], title=legible(name)[:60], text="hello"),
        lambda: (scene.delayed(name), scene.dead(name, kwargs={name: name})),
        lambda: note_job(name),
        lambda: cache().schedule(name[:290], 60),
    ):
        with suppress(ValueError):  # of those that have fewer letters
            make()


@pytest.mark.slow
def test_every_link_of_every_page_leads_somewhere_whatever_things_are_called(admin_client, query):
    for name in AWKWARD:
        make_awkward(name)
    todo, seen, alike, pages, shown = [*ROOTS.values()], set(), {}, set(), set()
    while todo:
        address = todo.pop(0)
        at, asked = urlsplit(address).path, urlsplit(address).query
        kind = (resolve(at).url_name, *sorted(name for name, _value in parse_qsl(asked)))
        if address in seen or alike.setdefault(kind, 0) >= MOST_ALIKE:
            continue
        seen.add(address)
        alike[kind] += 1
        answer = admin_client.get(address)
        assert answer.status_code in (200, 302), address
        html = answer.text if answer.headers["Content-Type"].startswith("text/html") else ""
        assert SCRIPT not in html, address
        page = kind[0].removeprefix("components_").replace("_", " ", 1)
        pages.add(page)
        shown |= {(page, name) for name in AWKWARD if legible(name)[:200] in unescape(html)}
        links = (unescape(each) for each in re.findall(r'href="(/admin/components/[^"]+)"', html))
        todo += [link.partition("#")[0] for link in links]

    assert set(PAGES) - pages - NOT_LINKED == set()
    for room in ("addressbook book", "lock lock", "mailbox mailbox", "semaphore semaphore"):
        assert {name for page, name in shown if page == room} == set(AWKWARD), room


#: Round trips of the pages that show things, and of some that ask before they act. Those of queues are counted there.
TRIPS = {
    "addressbook": {"changelist": 5, "book": 3, "rebuild": 2, "remove": 2},
    "cachedrow": {"changelist": 8, "model": 9, "failing": 2, "row": 3, "refresh": 3},
    "chat": {"changelist": 5, "chat": 4, "messages": 3, "close": 2, "kick": 3, "mute": 3, "delete": 2},
    "counter": {"changelist": 7},
    "ratelimit": {"changelist": 6},
    "lock": {"changelist": 7, "lock": 6, "release": 4},
    "logjob": {"job": 6},
    "mailbox": {"changelist": 5, "mailbox": 3, "messages": 3, "unblock": 3, "clear": 2},
    "semaphore": {"changelist": 6, "semaphore": 6, "limit": 3, "reset": 3, "evict": 5},
}


def add_more():
    for number in range(60):
        AddressBook(f"guild:{number}").add("ann", id=1)
        Chat.create("joe", id=f"other:{number}", text="hello")
        Counter(f"sales:{number}").update()
        Mailbox(f"person {number}").push("joe", "hello")
        cache().schedule(str(number + 100), 60)
        holdings.held(f"item:{number + 100}")
        holdings.permit(f"api {number}")
        RateLimit(f"api {number}", "5/h").acquire()
    for number in range(1, 7):
        append(stream(), number)


def test_a_page_takes_so_many_round_trips_however_much_there_is(admin_client, query):
    def trips():
        return {
            model: {
                page: round_trips(admin_client, PAGES[f"{model} {page}"] + query(f"{model} {page}"))
                for page in pages
            }
            for model, pages in TRIPS.items()
        }

    Counter("hits").update()
    RateLimit("api", "5/h").acquire()
    trips()
    assert trips() == TRIPS
    add_more()
    assert trips() == TRIPS
