"""Live refresh in a real browser: figures that are old, streams of an ASGI server, and nothing that jumps."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from components.embedded import EmbeddedServer
from components.testing import redis_at
from tests.browser.clock import stop_clock
from tests.browser.looks import CONTRASTS
from tests.browser.themes import measured
from tests.queues.admin import scene

ROOT = "/admin/components/queue/"
HIDE = """(hidden) => {
    Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
}"""
PLACES = """nodes => nodes.map((node) => {
    const { x, y, width, height } = node.getBoundingClientRect();
    return [x, y, width, height];
})"""


def ready_of(page, queue="mail"):
    return page.locator(f'tr[data-key="{queue}"] td').first


def places(page):
    return page.locator("#live h2, #live tr, #live th, #live td").evaluate_all(PLACES)


def test_figures_fade_while_redis_is_away_and_say_since_when(window, admin, tmp_path):
    with EmbeddedServer(tmp_path / "redis") as server, redis_at(server.url):
        scene.dead("mail")
        opened = window(admin)
        stop_clock(opened.page)
        page = opened.open(ROOT)
        before = places(page)
        colour = ready_of(page).evaluate("node => getComputedStyle(node).color")

        server.stop()
        page.clock.fast_forward(5_000)
        expect(page.get_by_role("status")).to_contain_text("Redis has not answered since")

        assert places(page) == before
        assert ready_of(page).evaluate("node => getComputedStyle(node).color") != colour
        contrasts = measured(page, CONTRASTS.replace("#content", "#live"))
        assert len(contrasts) > 20
        assert {text: ratio for text, ratio in contrasts.items() if ratio < 4.5} == {}

        server.start()
        page.clock.fast_forward(10_000)
        expect(page.get_by_role("status")).to_contain_text("Updated")
        expect(page.locator("[data-live-old]")).to_have_count(0)
        assert opened.complaints == []


@pytest.fixture
def streamed(enter):
    """The first page of queues, of an ASGI server; and the answers to its refresh, as they begin."""
    scene.ready("mail")
    opened = enter("admin")
    answers = []

    def note(response):
        if response.request.headers.get("x-live"):
            answers.append(response.headers["content-type"])

    opened.page.on("response", note)
    opened.open(ROOT).get_by_label("Refresh").select_option("every 2 s")
    return opened, answers


def test_one_stream_brings_all_changes(streamed):
    opened, answers = streamed
    for number in range(2, 5):
        scene.ready("mail")
        expect(ready_of(opened.page)).to_have_text(str(number))

    assert answers == ["text/event-stream"]
    assert opened.complaints == []


def test_a_stream_ends_when_the_page_is_hidden_and_begins_again_when_it_is_seen(streamed):
    opened, answers = streamed
    expect(opened.page.get_by_role("status")).to_contain_text("Updated")

    with opened.page.expect_event("requestfailed"):  # the reader has left
        opened.page.evaluate(HIDE, True)
    scene.ready("mail")
    opened.page.evaluate(HIDE, False)

    expect(ready_of(opened.page)).to_have_text("2")
    assert answers == ["text/event-stream"] * 2


def test_a_page_goes_on_when_its_server_was_killed_and_is_back(streamed, served):
    opened, _answers = streamed
    expect(opened.page.get_by_role("status")).to_contain_text("Updated")

    served.stop()
    expect(opened.page.get_by_role("status")).to_contain_text("The server does not answer. Trying again.")
    scene.ready("mail")
    served.start()

    expect(ready_of(opened.page)).to_have_text("2")
    expect(opened.page.get_by_role("status")).to_contain_text("Updated")
