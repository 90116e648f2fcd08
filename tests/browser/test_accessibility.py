"""
What axe-core finds on every page, in light and in dark, on a phone and on a desktop; whether it is wider than any of
five screens; and what the browser complains about, such as the content security policy.

Pages come from the URL resolver: one that is added is looked at as well, or a test here asks for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from django.contrib import admin as admins
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from playwright.sync_api import Page

from components.services.chat import Chat
from components.services.counters import Counter
from project.market import demo
from tests.browser.axe import assert_accessible, find_violations
from tests.browser.conftest import LIVE
from tests.control_room.every_page import PAGES, one_periodic_task, query, query_of  # noqa: F401
from tests.project.tour.conftest import toured  # noqa: F401

pytestmark = pytest.mark.slow

#: Where tables are cards, and where they are tables: axe looks at both.
PHONE, DESKTOP = (390, 844), (1440, 900)
SIZES = ((320, 640), PHONE, (768, 1024), (1024, 768), DESKTOP)
#: Pages of the control room; the first word is the model.
ROOMS = sorted({page.split()[0] for page in PAGES})
#: They are downloaded.
FILES = {page for page in PAGES if page.endswith(("csv", " complete"))}
#: What else pages of the control room are asked for: other contents, and what there is not.
ALSO: dict[str, list[dict[str, Any]]] = {
    "queue tasks": [
        *({"state": state} for state in ("ready", "delayed", "running", "successful")),
        {"q": "nothing is found"},
        {"queue": "a\nb"},
    ],
    "queue task": [{"id": "gone"}],
    "queue delete": [{"scope": "all"}],
    "counter chart": [{"counter": "tasks:successful"}, {"from": "yesterday"}, {"counter": ""}],
    "addressbook book": [{"prefix": "lan"}],
    "chat chat": [{"chat": "gone"}],
    "chat messages": [{"q": "look"}, {"q": "nothing is found"}],
    "logjob traffic": [{"level": "city", "within": "US"}],
    "lock lock": [{"key": "gone"}],
}
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
    "market:login": (),
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
    *(
        f"components:{name}"
        for name in ("chat-read", "chat-delete-message", "chat-react", "chat-badge", "jsi18n")
    ),
    *(f"components-observing:{name}" for name in ("healthz", "readyz", "metrics")),
}
#: Models of the demo in Django's admin, and the pages of each that have something of ours, such as its fields; those
#: to delete a row and its history are Django's own.
STOCK = ("changelist", "add", "change")
MODELS = [model for model in admins.site._registry if model._meta.app_label != "components"]


def walk(patterns: Iterable[Any], namespace: str = "") -> Iterator[str]:
    """Yield the names of all addresses."""
    for each in patterns:
        if isinstance(each, URLResolver):
            yield from walk(each.url_patterns, namespace + (f"{each.namespace}:" if each.namespace else ""))
        elif isinstance(each, URLPattern) and each.name:
            yield namespace + each.name


def look_at(page: Page) -> Iterator[str]:
    """Yield what is wrong with the page that is open."""
    for size in SIZES:
        width, height = size
        page.set_viewport_size({"width": width, "height": height})
        wide = page.evaluate("document.documentElement.scrollWidth")
        if wide > width:
            yield f"at {width} px it is {wide} px wide"
        if size in (PHONE, DESKTOP):
            yield from (f"at {width} px, {each}" for each in find_violations(page))


def assert_for_all(opened: Any, paths: Iterable[str], *, settled: str = "body") -> None:
    """Look at all these pages, each when it has an element *settled*."""
    wrong = []
    for path in paths:
        page = opened.open(path)
        page.locator(settled).first.wait_for()
        wrong += [f"{path}: {each}" for each in look_at(page)]
    # While Redis is away, what scripts of the page ask for is away, too, and the browser says so.
    wrong += [each for each in opened.complaints if "status of 503" not in each]
    if wrong:
        raise AssertionError("\n".join(wrong))


def logged_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.mark.parametrize("room", ROOMS)
def test_pages_of_the_control_room_shut_nobody_out(window, admin, redis, query, settings, room):  # noqa: F811
    settings.COMPONENTS = {**settings.COMPONENTS, "COUNT_SERVICES": True}
    Counter("tasks:successful").update(3)
    pages = [page for page in PAGES if page.split()[0] == room and page not in FILES]
    paths = [PAGES[page] + query(page) for page in pages]
    paths += [PAGES[page] + query_of(page, **also) for page in pages for also in ALSO.get(page, [])]

    assert_for_all(window(admin), paths)


def test_pages_of_the_control_room_shut_nobody_out_while_redis_is_away(window, admin):
    assert_for_all(window(admin), [PAGES["queue changelist"], PAGES["overview changelist"], "/admin/"])


def test_a_refusal_shuts_nobody_out(window, transactional_db):
    user = User.objects.create_user("staff", is_staff=True)

    assert_for_all(window(logged_in(user)), [PAGES["queue changelist"], "/admin/"])


def test_pages_of_the_demo_shut_nobody_out(window, redis, transactional_db, toured):  # noqa: F811
    demo.load()
    user = User.objects.get(username="jack")
    user.is_staff = user.is_superuser = True
    user.save()
    addresses = [reverse(name, args=about) for name, about in OTHERS.items()]

    assert_for_all(window(logged_in(user)), addresses)
    assert_for_all(window(), [reverse(name) for name in ("market:browse", "market:login", "admin:login")])


def test_pages_of_the_demo_shut_nobody_out_while_redis_is_away(window, transactional_db, toured):  # noqa: F811
    demo.load()
    user = User.objects.get(username="jack")
    names = ("market:browse", "market:flash", "guilds:guild", "guilds:mail", "players:today")

    assert_for_all(window(logged_in(user)), [*map(reverse, names), reverse("components:chats")])


def test_lists_of_the_demos_tables_shut_nobody_out(window, admin, redis):
    """Their forms are Django's own."""
    demo.load()
    tables = [model._meta for model in MODELS if model._meta.app_label != "auth"]

    assert_for_all(
        window(admin), [reverse(f"admin:{each.app_label}_{each.model_name}_changelist") for each in tables]
    )


def test_pages_of_chats_shut_nobody_out(enter, served):
    joe, jack = served.ids["joe"], served.ids["jack"]
    chat = Chat.create(joe, members=[jack], title="Lantern Keepers", text="Who has the map?")
    sent = chat.send(jack, "*Not* me, see https://fakegame.example/maps/")
    chat.react(joe, sent.seq, "👍")
    opened = enter("joe")

    assert_for_all(opened, ["/chat/", f"/chat/{chat.id}/"], settled=LIVE)
    assert_for_all(
        opened, ["/chat/-/new/", *(f"/chat/{chat.id}/{page}" for page in ("members/", "search/?q=map"))]
    )


def test_each_address_is_a_page_that_is_looked_at_or_none(toured):  # noqa: F811
    names = set(walk(get_resolver().url_patterns))
    stock = {
        f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}" for model in MODELS for page in STOCK
    }
    rooms = {name for name in names if name.startswith("admin:components_")}
    programs = {name for name in names if name.startswith("components:api-")}
    known = {*OTHERS, *NO_PAGES, *(f"components:{name}" for name in CHATS), *stock, *rooms, *programs}
    djangos = {
        name for name in names - known if re.fullmatch(r"admin:\w+_(delete|history|password_change)", name)
    }

    assert names - known - djangos == set()
    assert known - names == set()


def test_a_page_that_shuts_somebody_out_is_noticed(window):
    page = window().page
    page.set_content("""<html lang="en"><title>x</title><meta name="color-scheme" content="light dark">
        <style>@media (prefers-color-scheme: dark) { p { color: #333; background: #222; } }</style>
        <main><h1>x</h1><p>dark</p><img src="data:,"></main></html>""")

    with pytest.raises(AssertionError, match=r"(?s)light: image-alt.*dark: color-contrast"):
        assert_accessible(page)
