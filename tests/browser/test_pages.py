"""
What a browser sees of every page: what axe-core finds in light and in dark, on a phone and on a desktop; whether it
is wider than any of five screens; headings, names and ids; the content security policy, and complaints about it.

Pages come from the URL resolver: one that is added is looked at as well, or a test here asks for it. A page is loaded
once, and all sizes and colours are looked at then.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib import admin as admins
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from playwright.sync_api import Page, expect

from components.services.chat import Chat
from project.market import demo
from tests.browser.axe import Scheme, assert_accessible, find_violations
from tests.browser.conftest import LIVE
from tests.control_room.every_page import ASKED, PAGES, ROOTS, one_periodic_task, query  # noqa: F401
from tests.project.test_tour import toured  # noqa: F401

pytestmark = pytest.mark.slow

#: Sizes, and the colours in which axe looks at a page there: once where tables are cards, once where they are tables.
SIZES: tuple[tuple[int, int, Scheme | None], ...] = (
    *((320, 640, None), (390, 844, "dark"), (768, 1024, None), (1024, 768, None), (1440, 900, "light")),
)
#: Pages of the control room; the first word is the model.
ROOMS = sorted({page.split()[0] for page in PAGES})
#: Those that CI has time for; `make test-all` looks at all.
SHORT = {"queue", "overview", "lock"}
#: They are downloaded.
FILES = {page for page in PAGES if page.endswith("csv")}
#: The other pages by the names of their addresses, and what those are about.
OTHERS: dict[str, tuple[Any, ...]] = {
    "admin:index": (),
    "admin:login": (),
    "admin:password_change": (),
    "admin:password_change_done": (),
    "admin:app_list": ("market",),
    "market:browse": (),
    "market:offer": (),
    "market:mine": (),
    "market:preferences": (),
    "market:flash": (),
    "guilds:guild": (),
    "guilds:mail": (),
    "players:today": (),
    "tour:shows": (),
    "tour:mails": (),
}
CHATS = {"chats", "chat-create", "chat", "chat-members", "chat-search"}
#: Addresses that answer no page: what forms send to, fragments of pages, files, and programs' own.
NO_PAGES = {
    *(f"admin:{name}" for name in ("logout", "autocomplete", "jsi18n", "view_on_site")),
    *(f"market:{name}" for name in ("buy", "withdraw", "buy-flash", "flash-remaining", "logout")),
    *(f"guilds:{name}" for name in ("contacts", "read")),
    *(f"tour:{name}" for name in ("trace", "log-in", "start-again", "show")),
    *(f"components:{name}" for name in ("chat-read", "chat-badge", "jsi18n")),
    *(f"components-observing:{name}" for name in ("healthz", "readyz", "metrics")),
}
#: Models of the demo in Django's admin, and the pages of each that have something of ours, such as its fields; those
#: to delete a row and its history are Django's own.
STOCK = ("changelist", "add", "change")
MODELS = [model for model in admins.site._registry if model._meta.app_label != "components"]
#: How wide the page is, or on a small screen a table in it.
WIDE = """() => Math.max(document.documentElement.scrollWidth, ...(innerWidth > 768 ? [] : [
    ...document.querySelectorAll(".cards")].map((table) => table.scrollWidth)))"""
#: What a page is built of: of several that are built alike, axe looks at the first.
BUILT = """() => [...new Set([...document.querySelectorAll("body *")].map((node) =>
    [node.parentNode, node].map((each) => `${each.localName}.${each.getAttribute("class")}`) + node.ariaInvalid
))].sort().join()"""
#: What of the chat is too small for thumbs.
SMALL = """() => [...document.querySelectorAll("#chat :is(a, button, summary, input:not([type=hidden]), textarea)")]
    .filter((node) => node.checkVisibility() && !node.closest(".chat-text, .chat-picture, .chat-status"))
    .map((node) => [node.textContent.trim() || node.ariaLabel, node.getBoundingClientRect()])
    .filter(([, box]) => box.width < 43.9 || box.height < 43.9).map(([name]) => name)"""
#: Of the page: levels of its headings; what has no name; ids that are there twice.
STRUCTURE = """() => {
    const all = (selector) => [...document.querySelectorAll(selector)];
    const ids = all("[id]").map((node) => node.id);
    return [
        all("main :is(h1, h2, h3, h4)").map((node) => Number(node.tagName[1])),
        all("main :is(th:not([scope]), table:not(:has(> caption)))")
            .map((node) => node.outerHTML.slice(0, 200)),
        ids.filter((id, at) => ids.indexOf(id) !== at),
    ];
}"""


def walk(patterns: Iterable[Any], namespace: str = "") -> Iterator[str]:
    for each in patterns:
        if isinstance(each, URLResolver):
            yield from walk(each.url_patterns, namespace + (f"{each.namespace}:" if each.namespace else ""))
        elif isinstance(each, URLPattern) and each.name:
            yield namespace + each.name


def look_at(page: Page, *, closely: bool) -> Iterator[str]:
    """Yield what is wrong with the page that is open; what axe finds only if *closely*."""
    for width, height, scheme in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        wide = page.evaluate(WIDE)
        if wide > width:
            yield f"at {width} px it is {wide} px wide"
        if scheme and closely:
            yield from (f"at {width} px, {each}" for each in find_violations(page, scheme))


def structure(page: Page) -> Iterator[str]:
    levels, nameless, twice = page.evaluate(STRUCTURE)
    if (
        levels[:1] != [1]
        or levels.count(1) != 1
        or any(after > before + 1 for before, after in pairwise(levels))
    ):
        yield f"its headings are of the levels {levels}"
    yield from (f"it lacks a name or a scope: {each}" for each in nameless)
    yield from (f"the id {each} is there twice" for each in twice)


def assert_for_all(opened: Any, paths: Iterable[str], *, settled: str = "body", ours: bool = True) -> None:
    """Look at all these pages, each when it has an element *settled*. If *ours*, Django's are not among them."""
    wrong, built = [], set[str]()
    for path in paths:
        answer = opened.page.goto(opened.base + path)
        opened.page.locator(settled).first.wait_for()
        policy = answer.headers["content-security-policy"]
        if "default-src 'self'" not in policy or "unsafe" in policy:
            wrong.append(f"{path}: {policy}")
        kind = opened.page.evaluate(BUILT)
        wrong += [f"{path}: {each}" for each in look_at(opened.page, closely=kind not in built)]
        built.add(kind)
        if ours and "/history/" not in path:
            wrong += [f"{path}: {each}" for each in structure(opened.page)]
    wrong = [each[:600] for each in wrong]
    # While Redis is away, what scripts of the page ask for is away, too, and the browser says so.
    wrong += [each for each in opened.complaints if "status of 503" not in each]
    if wrong:
        raise AssertionError("\n".join(wrong))


def logged_in(name: str) -> Client:
    client = Client()
    client.force_login(User.objects.get(username=name))
    return client


@pytest.mark.parametrize(
    "room", [pytest.param(room, marks=[] if room in SHORT else [pytest.mark.long]) for room in ROOMS]
)
def test_pages_of_the_control_room_shut_nobody_out(window, admin, query, room):  # noqa: F811
    pages = [page for page in PAGES if page.split()[0] == room and page not in FILES]
    last = {(page, status): asked for page, asked, status in ASKED if page in pages}
    paths = [PAGES[page] + query(page) for page in pages]
    paths += [f"{PAGES[page]}?{urlencode(asked, doseq=True)}" for (page, _status), asked in last.items()]

    assert_for_all(window(admin), paths)


def test_pages_of_the_control_room_shut_nobody_out_while_redis_is_away_or_refused(window, admin):
    User.objects.create_user("staff", is_staff=True)

    assert_for_all(window(admin), [PAGES["queue changelist"], PAGES["overview changelist"]])
    assert_for_all(window(admin), ["/admin/"], ours=False)
    assert_for_all(window(logged_in("staff")), [PAGES["queue changelist"], "/admin/"], ours=False)


def test_pages_of_the_demo_shut_nobody_out(window, redis, transactional_db, toured):  # noqa: F811
    demo.load()
    User.objects.filter(username="jack").update(is_staff=True, is_superuser=True)
    addresses = [reverse(name, args=about) for name, about in OTHERS.items()]
    addresses += [reverse("admin:market_item_add"), reverse("admin:guilds_guild_changelist")]

    assert_for_all(window(logged_in("jack")), addresses, ours=False)
    assert_for_all(window(), [reverse("market:login")])


def test_pages_of_the_demo_shut_nobody_out_while_redis_is_away(window, transactional_db, toured):  # noqa: F811
    demo.load()
    names = ("market:browse", "market:flash", "guilds:guild", "guilds:mail", "players:today")

    assert_for_all(window(logged_in("jack")), [*map(reverse, names), reverse("components:chats")], ours=False)


def test_pages_of_chats_shut_nobody_out(enter, served):
    joe, jack = served.ids["joe"], served.ids["jack"]
    Chat.create(jack, members=[joe], title="x" * 200, text="y" * 500)
    chat = Chat.create(joe, members=[jack], title="Lantern Keepers", text="Who has the map?" + "z" * 300)
    chat.send(joe, "Not me.")
    sent = chat.send(jack, "*Not* me @joe, see https://fakegame.example/maps/", mentions=[joe])
    chat.send(jack, "", data={"url": "https://example.org/map.png"})
    chat.react(joe, sent.seq, "👍")
    opened = enter("joe")

    assert_for_all(opened, ["/chat/", f"/chat/{chat.id}/"], settled=LIVE)
    others = (f"/chat/{chat.id}/{page}" for page in ("members/", "search/?q=map"))
    assert_for_all(opened, ["/chat/-/new/", *others])
    for scripts in (True, False):
        phone = enter(
            "joe", viewport={"width": 320, "height": 640}, has_touch=True, java_script_enabled=scripts
        )
        for path in ("/chat/", f"/chat/{chat.id}/", f"/chat/{chat.id}/members/", "/chat/-/new/"):
            assert phone.open(path).evaluate(SMALL) == [], path
            assert phone.page.evaluate(FITS), path

    # Without the colours of the site it has its own.
    opened.page.route("**/market.css", lambda route: route.fulfill(body="", content_type="text/css"))
    assert_accessible(opened.chat(f"/chat/{chat.id}/"), within="#chat")


def test_each_address_is_a_page_that_is_looked_at_or_none(toured):  # noqa: F811
    names = set(walk(get_resolver().url_patterns))
    stock = {
        f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}" for model in MODELS for page in STOCK
    }
    rooms = {name for name in names if name.startswith("admin:components_")}
    programs = {name for name in names if name.startswith("components:api-")}
    known = {
        *OTHERS,
        "market:login",
        *NO_PAGES,
        *(f"components:{name}" for name in CHATS),
        *stock,
        *rooms,
        *programs,
    }
    djangos = {
        name for name in names - known if re.fullmatch(r"admin:\w+_(delete|history|password_change)", name)
    }

    assert names - known - djangos == set()
    assert known - names == set()


# Each room of the control room with the keyboard alone and without scripts, on a small screen

FOCUSED = """() => {
    const node = document.activeElement, style = getComputedStyle(node);
    const isOurs = Boolean(node.closest("#live, .live-control"));
    return [node.ariaLabel ?? node.value ?? node.textContent.trim(), !isOurs || style.outlineStyle !== "none"];
}"""
FITS = "() => document.documentElement.scrollWidth <= innerWidth"
#: Where it begins; what is pressed, one after the other; what is said then.
JOURNEYS = {
    "addressbook": ("", ["market.item", "Remove the book…", "Remove the book"], "market.item"),
    "cachedrow": ("row/?row=items:1", ["Remove from the cache…", "Remove from the cache"], "items:1"),
    "chat": ("", ["Lantern Keepers", "Remove from the chat: jack", "Remove from the chat"], "jack"),
    "lock": ("", ["item:42", "Release by force…", "Release by force"], "item:42"),
    "logjob": ("job/?job=default", ["Remove: places", "Remove"], "places"),
    "mailbox": ("", ["jack", "Empty the mailbox…", "Empty the mailbox"], "jack"),
    "queue": ("", ["Pause: mail", "Pause"], "mail"),
    "semaphore": ("", ["api", "Take away: jill", "Take away"], "jill"),
}


def press_tab_until(page, name):
    """Whatever has the focus meanwhile, it is seen that it has."""
    for _attempt in range(100):
        page.keyboard.press("Tab")
        label, is_seen = page.evaluate(FOCUSED)
        assert is_seen, label
        if label == name or label.startswith(f"{name}, "):
            return
    pytest.fail(f"{name} cannot be reached")


@pytest.mark.parametrize("room", JOURNEYS)
def test_the_keyboard_is_enough_and_no_script_is_needed(window, admin, query, room):  # noqa: F811
    path, names, said = JOURNEYS[room]
    opened = window(admin, java_script_enabled=False, viewport={"width": 360, "height": 640})
    page = opened.open(ROOTS[room] + path)
    expect(page.get_by_label("Refresh")).to_be_hidden()

    for name in names:
        press_tab_until(page, name)
        with page.expect_navigation():
            page.keyboard.press("Enter")
        assert page.evaluate(FITS)

    expect(page.locator(".messagelist .success")).to_contain_text(said)
