"""
A real Chromium, the system's own, and pages that keep what it complained about.

Where there is none, browser tests are skipped with the reason.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import get_ident
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.signals import request_finished, request_started
from django.test import Client
from playwright.sync_api import Browser, ConsoleMessage, Error, Page, expect, sync_playwright

from components.embedded import EmbeddedServer
from components.testing import empty
from tests.browser.payloads import HOSTILE_NAMES
from tests.browser.served import Served
from tests.support.programs import NO_CHROMIUM, find_chromium
from tests.support.waiting import eventually

expect.set_options(timeout=20_000)  # ms: on a busy machine a server takes long to start

#: The chats once their scripts have taken over, and have the messages.
LIVE = "#chat[data-live]:not(:has([aria-busy=true]))"


def stop_clock(page: Page) -> None:
    """From now on, time passes for the page, and for those that it goes to, only by page.clock."""
    page.clock.install(time=0)
    page.clock.pause_at(1_000)


@dataclass
class Window:
    """One browser page, and the errors of its console: scripts, policy violations, missing files."""

    page: Page
    base: str
    complaints: list[str] = field(default_factory=list)
    #: Those of scripts.
    failures: list[str] = field(default_factory=list)

    def open(self, path: str) -> Page:
        self.page.goto(self.base + path)
        return self.page

    def chat(self, path: str) -> Page:
        """The same for a page of chats, once its scripts have taken over and have the messages."""
        self.open(path).locator(LIVE).wait_for()
        return self.page

    def fail(self, error: Error) -> None:
        self.failures.append(str(error))
        self.complaints.append(str(error))

    def note(self, message: ConsoleMessage) -> None:
        is_about_the_page = message.location.get("url") == self.page.url  # its own status, 404 or 503
        if message.type == "error" and not (is_about_the_page and "Failed to load" in message.text):
            self.complaints.append(message.text)


def chromium() -> str:
    """Return the browser's path. Skip the test if there is none."""
    return find_chromium() or pytest.skip(NO_CHROMIUM)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Per module, not per session: Playwright's event loop runs in the thread of the tests, and those of
    other modules are not to meet it. Django is told that it may be used beside it."""
    args = ["--disable-gpu", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    path = chromium()
    with (
        pytest.MonkeyPatch.context() as patch,
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=path, args=args) as browser,
    ):
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        yield browser


@contextmanager
def _windows(browser: Browser, base: str) -> Iterator[Callable[..., Window]]:
    """Yield opened(session, **options of a browser context), and close in the end what it has opened."""
    windows: list[Window] = []

    def opened(session: str, **options: Any) -> Window:
        context = browser.new_context(**options)
        context.route("**/favicon.ico", lambda route: route.fulfill(status=204))
        if session:
            context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": base}])
        window = Window(context.new_page(), base)
        window.page.on("console", window.note)
        window.page.on("pageerror", window.fail)
        windows.append(window)
        return window

    yield opened
    for window in windows:
        window.page.context.close()
    assert [each for window in windows for each in window.failures] == []


@pytest.fixture
def window(browser: Browser, live_server: Any) -> Iterator[Callable[..., Window]]:
    """window(client, **options of a browser context): a window in which the user of *client* is logged in."""
    with _requests_under_way() as requests:
        with _windows(browser, live_server.url) as opened:
            yield lambda client=None, **options: opened(
                client.cookies[settings.SESSION_COOKIE_NAME].value if client else "", **options
            )
        # The tables are emptied next, which one who still reads them would not let happen.
        assert eventually(lambda: not requests), f"{len(requests)} requests have not ended"


@contextmanager
def _requests_under_way() -> Iterator[set[int]]:
    """The threads of this process that answer a request, as of any moment."""
    threads = set[int]()

    def begin(**kwargs: Any) -> None:
        threads.add(get_ident())

    def end(**kwargs: Any) -> None:
        threads.discard(get_ident())

    request_started.connect(begin)
    request_finished.connect(end)
    try:
        yield threads
    finally:
        request_started.disconnect(begin)
        request_finished.disconnect(end)


@pytest.fixture(scope="session")
def served_redis(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EmbeddedServer]:
    """A server of its own: the site goes on running beside tests that do not ask for it."""
    program = request.config.getoption("--redis-server")
    folder = tmp_path_factory.mktemp("served-redis")
    with EmbeddedServer(folder, server=program, appendonly=False) as server:
        yield server


@pytest.fixture(scope="session")
def served_site(served_redis: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    chromium()  # without a browser there is nobody to serve
    site = Served(
        tmp_path_factory.mktemp("served"), served_redis.url, ("admin", "joe", "jack", "jill", *HOSTILE_NAMES)
    )
    yield site
    site.close()


@pytest.fixture
def served(served_site: Served, served_redis: EmbeddedServer) -> Iterator[Served]:
    """The demo site in a process of its own, running, on a Redis that is empty and the test's too."""
    with empty(served_redis):
        served_site.start()
        yield served_site


@pytest.fixture
def enter(browser: Browser, served: Served) -> Iterator[Callable[..., Window]]:
    """enter(name, **options of a browser context): a window of the served site in which that user is logged in."""
    with _windows(browser, served.url) as opened:
        yield lambda name, **options: opened(served.sessions[name], locale="en-GB", **options)


@pytest.fixture
def admin(transactional_db: None) -> Client:
    """A browser's session of somebody who may do everything."""
    client = Client()
    client.force_login(User.objects.create_superuser("admin"))
    return client
