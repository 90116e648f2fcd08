"""The control room in a real browser: live refresh, in which nothing jumps; its search; its charts."""

import re
from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from components.embedded import EmbeddedServer
from components.services.mailboxes import Mailbox
from components.services.queues import TaskQueue
from components.testing import redis_at
from tests.browser.axe import assert_accessible
from tests.browser.conftest import stop_clock
from tests.queues.admin import scene
from tests.support.counters import count_at, counted

ROOT = "/admin/components/queue/"
HIDE = """(hidden) => {
    Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
}"""
PLACES = """nodes => nodes.map((node) => {
    const { x, y, width, height } = node.getBoundingClientRect();
    return [x, y, width, height];
})"""
#: What a reader has done to the page of a task.
STATE = """() => [scrollY, document.querySelector("pre").scrollTop, getSelection().toString().length > 200,
    ...Array.from(document.querySelectorAll("details"), (node) => node.open)]"""


def refreshed(page, seconds=5, says="Updated"):
    """Let *seconds* pass for the page, and wait until it *says* what came of it."""
    page.get_by_role("status").evaluate("node => { node.textContent = ''; }")
    page.clock.fast_forward(seconds * 1000)
    expect(page.get_by_role("status")).to_contain_text(says)


def ready_of(page, queue="mail"):
    return page.locator(f'tr[data-key="{queue}"] td').first


def fetches(page):
    seen = []
    page.on("request", lambda request: seen.append(request) if request.headers.get("x-live") else None)
    return seen


@pytest.fixture
def opened(window, admin):
    """A window whose clock the test puts forward."""
    opened = window(admin, viewport={"width": 1_280, "height": 400})
    stop_clock(opened.page)
    return opened


def test_figures_are_renewed_and_what_the_reader_has_done_stays(opened, redis):
    scene.ready("mail")
    page = opened.open(ROOT)
    seen = fetches(page)
    link = page.get_by_role("link", name="Pause: mail")
    link.focus()
    scene.ready("mail", count=1_233)
    scene.ready("a queue that comes before")

    refreshed(page)
    refreshed(page)

    expect(ready_of(page)).to_have_text("1,234")
    expect(ready_of(page, "a queue that comes before")).to_have_text("1")
    expect(link).to_be_focused()
    assert [bool(each.headers.get("if-none-match")) for each in seen] == [False, True]

    page.context.clear_cookies()
    page.clock.fast_forward(5_000)
    expect(page.get_by_role("status")).to_contain_text("Refresh has stopped")  # of somebody who is logged out
    expect(ready_of(page)).to_have_text("1,234")
    assert opened.complaints == []


def test_scrolling_open_details_and_a_selection_stay(opened, redis):
    task_id = scene.dead("mail", failures=3, args=list(range(200)))
    opened.page.set_viewport_size({"width": 360, "height": 400})
    page = opened.open(f"{ROOT}task/?alias=default&id={task_id}")
    page.locator("details").first.locator("summary").click()
    page.locator("details").last.locator("summary").click()
    page.locator("pre").first.evaluate(
        "node => { node.scrollTop = 321; getSelection().selectAllChildren(node); }"
    )
    page.evaluate("scrollTo(0, 500)")
    before = page.evaluate(STATE)
    refreshed(page)

    assert before[1:] == [321, True, True, False, False]
    assert page.evaluate(STATE) == before
    assert opened.complaints == []


def test_rows_that_go_take_no_others_with_them_and_nothing_new_is_selected(opened, redis):
    gone, other, chosen = (scene.dead() for _ in range(3))
    page = opened.open(f"{ROOT}tasks/?alias=default&queue=mail&state=dead")
    kept = page.locator(f'tr[data-key="{chosen}"]').element_handle()
    page.locator(f'input[value="{chosen}"]').check()
    page.get_by_role("searchbox", name="Search").fill("half a wo")
    TaskQueue().delete("mail", "dead", [gone])
    new = scene.dead()

    refreshed(page)

    expect(page.locator(f'input[value="{new}"]')).not_to_be_checked()
    expect(page.locator(f'input[value="{other}"]')).not_to_be_checked()
    expect(page.locator(f'input[value="{gone}"]')).to_have_count(0)
    expect(page.locator(f'input[value="{chosen}"]')).to_be_checked()
    assert kept.evaluate("node => node.isConnected")
    expect(page.get_by_role("searchbox", name="Search")).to_have_value("half a wo")


def test_page_scripts_and_numbers_are_in_the_language_of_the_browser(window, admin, redis):
    opened = window(admin, locale="de-DE")
    stop_clock(opened.page)
    page = opened.open(ROOT)
    scene.ready("mail", count=1234)

    refreshed(page, says="Aktualisiert um")

    expect(page.locator("html")).to_have_attribute("lang", "de")
    expect(page.get_by_role("heading", name="Warteschlangen")).to_be_visible()
    expect(ready_of(page)).to_have_text("1.234")
    page.get_by_label("Aktualisieren").select_option("0")
    expect(page.get_by_role("status")).to_have_text("Die Aktualisierung ist ausgeschaltet.")
    assert opened.complaints == []


def test_a_hidden_page_rests_and_a_reader_chooses_how_often_and_is_remembered(opened, redis):
    scene.ready("mail")
    page = opened.open(ROOT)
    seen = fetches(page)
    page.evaluate(HIDE, True)
    page.clock.fast_forward("10:00")
    assert seen == []
    page.evaluate(HIDE, False)
    expect(page.get_by_role("status")).to_have_text(re.compile(r"^Updated \d\d:\d\d:\d\d UTC$"))
    assert len(seen) == 1
    seen.clear()

    page.get_by_label("Refresh").select_option("every 15 s")
    page.reload()
    page.clock.run_for(14_000)
    assert seen == []
    page.clock.run_for(2_000)
    expect(page.get_by_role("status")).to_contain_text("Updated")
    assert len(seen) == 1

    page.get_by_label("Refresh").select_option("off")
    expect(page.get_by_role("status")).to_have_text("Refresh is off.")
    page.clock.fast_forward("10:00")
    page.reload()
    page.clock.fast_forward("10:00")
    expect(page.get_by_label("Refresh")).to_have_value("0")
    assert len(seen) == 1


def test_requests_never_overlap_and_another_interval_ends_one(opened, redis):
    page, held = opened.open(ROOT), []
    seen = fetches(page)
    page.route(f"**{ROOT}", lambda route: held.append(route))

    page.get_by_label("Refresh").select_option("every 2 s")
    with page.expect_request(f"**{ROOT}"):
        page.clock.run_for(2_000)
    page.clock.run_for(7_000)
    assert len(seen) == len(held) == 1

    with page.expect_event("requestfailed"):
        page.get_by_label("Refresh").select_option("off")
    expect(page.get_by_role("status")).to_have_text("Refresh is off.")


def test_figures_fade_while_redis_is_away_and_say_since_when(opened, tmp_path):
    server = EmbeddedServer(tmp_path / "redis")
    with redis_at(server.url):
        page = opened.open(ROOT)
        expect(page.get_by_role("alert")).to_contain_text("Redis does not answer")

        with server:
            scene.dead("mail")
            page.clock.fast_forward(5_000)
            expect(page.locator('tr[data-key="mail"]')).to_be_visible()  # the page was loaded anew
            expect(page.get_by_label("Refresh")).to_be_visible()  # and its script waits for the clock
            before = page.locator("#live :is(h2, tr, th, td)").evaluate_all(PLACES)
            colour = ready_of(page).evaluate("node => getComputedStyle(node).color")

            server.stop()
            page.clock.fast_forward(5_000)
            expect(page.get_by_role("status")).to_contain_text("Redis has not answered since")

            assert page.locator("#live :is(h2, tr, th, td)").evaluate_all(PLACES) == before
            assert ready_of(page).evaluate("node => getComputedStyle(node).color") != colour
            page.clock.resume()  # axe waits
            assert_accessible(page, within="#live")

            server.start()
            page.clock.fast_forward(10_000)
            expect(page.get_by_role("status")).to_contain_text("Updated")
            expect(page.locator("[data-live-old]")).to_have_count(0)
        assert opened.complaints == []


def test_after_some_failures_refresh_stops_and_when_seen_again_it_goes_on(opened, redis):
    page = opened.open(ROOT)
    seen = fetches(page)
    page.route(f"**{ROOT}", lambda route: route.abort())

    for _attempt in range(5):
        refreshed(page, seconds=60, says="The server does not answer. Trying again.")
    refreshed(page, seconds=60, says="Refresh has stopped: the server does not answer.")
    page.clock.fast_forward("10:00")
    assert len(seen) == 6

    page.unroute(f"**{ROOT}")
    scene.ready("mail")
    page.evaluate(HIDE, False)
    expect(ready_of(page)).to_have_text("1")


@pytest.fixture
def things(redis):
    scene.ready("mail")
    scene.ready("mailing lists")
    Mailbox("mailer").push("joe", "hello")


def test_ctrl_k_finds_and_enter_opens(window, admin, things):
    opened = window(admin)
    page = opened.open(ROOT)

    page.keyboard.press("Control+k")
    box = page.get_by_role("combobox", name=re.compile("Name or id of a queue"))
    expect(box).to_be_focused()
    expect(page.get_by_role("option", name="Locks Page")).to_be_visible()
    box.press_sequentially("mail")
    expect(page.get_by_role("option", name="mailing lists Queue")).to_be_visible()
    first = page.get_by_role("dialog").get_by_role("option").first
    expect(first).to_have_attribute("aria-selected", "true")
    expect(box).to_have_attribute("aria-expanded", "true")

    wanted = page.get_by_role("option", name="mailing lists Queue")
    while wanted.get_attribute("aria-selected") != "true":
        box.press("ArrowDown")
    expect(box).to_have_attribute("aria-activedescendant", wanted.get_attribute("id"))
    box.press("Enter")

    expect(page.get_by_role("heading", level=1)).to_have_text("Queue mailing lists")
    assert opened.complaints == []


@pytest.mark.slow
def test_the_dialog_says_what_it_finds_shuts_nobody_out_fits_and_gives_the_focus_back(window, admin, things):
    opened = window(admin)
    page = opened.open(ROOT)
    link = page.get_by_role("link", name="Find…")
    link.click()
    dialog = page.get_by_role("dialog", name="Find")
    expect(dialog.get_by_role("option").first).to_be_visible()
    before = dialog.bounding_box()

    dialog.get_by_role("combobox").fill("nowhere")
    expect(dialog.get_by_role("status")).to_have_text("Nothing that you may view contains this text.")
    expect(dialog.get_by_role("option")).to_have_count(0)
    assert dialog.bounding_box()["y"] == before["y"]  # nothing has moved

    dialog.get_by_role("combobox").fill("mail")
    expect(page.get_by_role("option", name="mailer Mailbox")).to_be_visible()
    for width in (390, 1440):
        page.set_viewport_size({"width": width, "height": 800})
        assert_accessible(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(link).to_be_focused()
    assert opened.complaints == []


def test_without_scripts_the_link_leads_to_a_page_that_finds(window, admin, things):
    page = window(admin, java_script_enabled=False).open(ROOT)

    page.get_by_role("link", name="Find…").click()
    page.get_by_role("searchbox", name="Name or id").fill("mailer")
    page.get_by_role("button", name="Find").click()
    page.get_by_role("link", name="mailer").click()

    expect(page.get_by_role("heading", level=1)).to_contain_text("mailer")


# Charts

CHART = "/admin/components/counter/chart/"
SERIES = "&".join(f"counter=sales:{number}" for number in range(8))
PAGES = {"one": f"{CHART}?counter=hits", "eight": f"{CHART}?{SERIES}"}
#: Of lines and words of a drawing against what is behind them.
DRAWN = """() => {
    const rgb = (text) => text.match(/[\\d.]+/g).map((part) => part * (text.startsWith("color(") ? 255 : 1));
    const luminance = ([r, g, b]) => {
        const [x, y, z] = [r, g, b].map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
        return 0.2126 * x + 0.7152 * y + 0.0722 * z;
    };
    const behind = luminance(rgb(getComputedStyle(document.body).backgroundColor));
    const against = (colour) => {
        const it = luminance(rgb(colour));
        return (Math.max(it, behind) + 0.05) / (Math.min(it, behind) + 0.05);
    };
    const of = (selector, what) => [...document.querySelectorAll(selector)].map((node, at) =>
        [`${selector} ${at}`, against(getComputedStyle(node)[what])]);
    return Object.fromEntries([...of(".chart-line:not(.open)", "stroke"), ...of(".chart-figure text", "fill")]);
}"""


@pytest.fixture
def minute(redis):
    """When this minute began. In the one before it, 7 hits were counted."""
    return counted(redis, "hits", 7, 0, 1_200, now=3)


@pytest.fixture
def pages(redis, minute):
    """The address of a chart of one counter, and of eight."""
    for number in range(8):
        counted(redis, f"sales:{number}", *range(number, 60), minute=minute)
    return PAGES


def chart(page):
    return page.get_by_role("img").and_(page.locator(".chart-canvas"))  # the admin's icons are images too


def point(page, part, *, down=False):
    """Put the pointer on a chart, at this part of its width."""
    box = page.locator("[data-chart-surface]").bounding_box()
    page.mouse.move(box["x"] + box["width"] * part, box["y"] + box["height"] / 2, steps=4)
    if down:
        page.mouse.down()


def part_of(page, second):
    """At which part of the width of a chart that second is."""
    data = page.locator("[data-chart]").evaluate("node => ({ ...node.dataset })")
    return (second - int(data["since"])) / int(data["precision"]) / int(data["slices"])


def tip(page):
    return page.locator(".chart-tip")


@pytest.mark.slow
def test_the_pointer_shows_what_was_counted_under_it_also_after_a_refresh(
    window, admin, pages, minute, redis
):
    opened = window(admin)
    stop_clock(opened.page)
    page = opened.open(pages["one"])
    expect(tip(page)).to_be_hidden()
    page.get_by_text("The same as a table").click()
    row = page.locator(f'.chart-table tr[data-key="{minute - 60}"] td')
    expect(row).to_have_text("7")

    for ago, said in ((0, "3 hits"), (60, "7 hits"), (180, "1,200 hits")):
        point(page, part_of(page, minute - ago + 30))
        expect(tip(page)).to_contain_text(said)
    point(page, 0.0001)
    expect(tip(page)).to_contain_text("\N{EN DASH} hits")
    page.mouse.move(1, 1)
    expect(page.locator(".chart-tip, .chart-cursor").filter(visible=True)).to_have_count(0)

    count_at(redis, "hits", minute - 60, 5_000)
    refreshed(page)
    expect(row).to_have_text("5,007")  # the table is open
    expect(page.locator(".chart-numbers text").last).to_have_text("6,000")
    point(page, part_of(page, minute - 30))
    expect(tip(page)).to_contain_text("5,007 hits")


def test_dragging_over_a_time_shows_that_time_in_finer_slices(window, admin, pages):
    page = window(admin).open(f"{CHART}?counter=hits&span=432000")
    before = page.locator("[data-chart]").evaluate("node => ({ ...node.dataset })")

    point(page, 0.985, down=True)
    point(page, 0.9999)
    with page.expect_navigation():
        page.mouse.up()

    query = parse_qs(urlsplit(page.url).query)
    after = page.locator("[data-chart]").evaluate("node => ({ ...node.dataset })")
    assert query["counter"] == ["hits"]
    assert (before["precision"], after["precision"]) == ("3600", "60")
    assert int(after["since"]) == int(before["since"]) + 118 * 3_600
    expect(chart(page)).to_have_accessible_description(re.compile("hits: 1,210 in all"))
    page.go_back()
    expect(page.locator("[data-chart]")).to_have_attribute("data-precision", "3600")


@pytest.mark.slow
def test_lines_and_their_numbers_can_be_seen_in_light_and_in_dark_also_where_dark_was_chosen(
    window, admin, pages, minute
):
    since, until = (datetime.fromtimestamp(minute - ago, UTC) for ago in (7_200, 0))  # whenever it is loaded
    path = f"{pages['eight']}&from={since:%Y-%m-%dT%H:%M:%SZ}&until={until:%Y-%m-%dT%H:%M:%SZ}"
    opened = window(admin)
    page, drawn = opened.open(path), {}
    for theme in ("dark", "light"):
        page.emulate_media(color_scheme=theme)
        page.evaluate("document.getAnimations().forEach(each => each.finish())")  # colours that change slowly
        drawn[theme] = page.evaluate(DRAWN)
    page.add_init_script("localStorage.setItem('theme', 'dark')")
    chosen = opened.open(path).evaluate(DRAWN)

    assert len(drawn["light"]) > 16
    assert min(*drawn["light"].values(), *drawn["dark"].values()) >= 4.5
    assert chosen == drawn["dark"]
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 18, 18)"
    assert_accessible(page)
