"""Sending again, searching, cancelling and deleting in a real browser: by mouse, by keyboard, without scripts."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import expect

from components.services.queues import TaskQueue
from tests.browser.clock import stop_clock
from tests.queues.admin import scene
from tests.support.queues import places

ROOT = "/admin/components/queue/"
MAIL = "?alias=default&queue=mail"


@pytest.fixture
def admin(transactional_db, redis):
    client = Client()
    client.force_login(User.objects.create_superuser("admin"))
    return client


def box(page, task_id):
    return page.locator(f'input[value="{task_id}"]')


def said(page):
    return page.locator(".messagelist")


@pytest.mark.parametrize("java_script_enabled", [True, False])
def test_selected_tasks_are_sent_again(window, admin, java_script_enabled):
    first, second, third = (scene.dead() for _ in range(3))
    opened = window(admin, java_script_enabled=java_script_enabled)
    page = opened.open(f"{ROOT}tasks/{MAIL}&state=dead")

    box(page, first).check()
    box(page, third).check()
    page.get_by_role("button", name="Send again…").click()
    expect(page.locator(".effects")).to_contain_text("Send 2 dead tasks of the queue mail again.")
    assert set(places("mail")) == {"dead"}
    page.get_by_role("button", name="Send again", exact=True).click()

    expect(said(page)).to_contain_text("Sent 2 tasks of the queue mail again.")
    assert places("mail") == {"dead": [second], "ready": [first, third]}
    assert opened.complaints == []


@pytest.mark.slow
def test_a_search_narrows_the_list_and_all_means_what_was_found(window, admin):
    kept = scene.ready(kwargs={"to": "Ann"})
    scene.ready(count=60, kwargs={"to": "Bob"})
    page = window(admin).open(f"{ROOT}tasks/{MAIL}")

    page.get_by_role("searchbox", name="Search").fill("bob")
    page.keyboard.press("Enter")
    expect(page.locator("#searched")).to_contain_text("60 of the next 61 ready tasks hold “bob”")
    page.get_by_label("All 60 that were found").check()
    page.get_by_role("button", name="Delete…").click()
    page.get_by_role("button", name="Delete", exact=True).click()

    expect(said(page)).to_contain_text("Deleted 60 tasks of the queue mail that contain “bob”.")
    expect(page.locator("#searched")).to_contain_text("0 of the next 1 ready tasks hold “bob”")
    assert places("mail") == {"ready": kept}


def test_a_running_task_is_cancelled_from_its_page(window, admin):
    task_id = scene.running()
    page = window(admin).open(f"{ROOT}task/?alias=default&id={task_id}")

    page.get_by_role("link", name="Cancel…").click()
    page.get_by_role("button", name="Cancel", exact=True).click()

    expect(said(page)).to_contain_text(f"Asked the task {task_id} of the queue mail to end.")
    expect(page.locator("dl.facts")).to_contain_text("Running, asked to end")


def test_a_person_who_goes_back_has_changed_nothing(window, admin):
    task_id = scene.dead()
    page = window(admin).open(f"{ROOT}task/?alias=default&id={task_id}")
    address = page.url

    page.get_by_role("link", name="Delete…").click()
    page.get_by_role("link", name="Back").click()

    expect(page).to_have_url(address)
    assert places("mail") == {"dead": [task_id]}


@pytest.mark.slow
def test_tasks_are_selected_and_sent_again_with_the_keyboard_alone(window, admin):
    first, second = scene.dead(), scene.dead()
    page = window(admin).open(f"{ROOT}tasks/{MAIL}&state=dead")

    focus(page, f"Select market.tasks.send {first}")
    page.keyboard.press("Space")
    focus(page, "Send again…", backwards=True)
    with page.expect_navigation():
        page.keyboard.press("Enter")
    focus(page, "Send again")
    with page.expect_navigation():
        page.keyboard.press("Enter")

    expect(said(page)).to_contain_text("Sent 1 task of the queue mail again.")
    assert places("mail") == {"dead": [second], "ready": [first]}


def focus(page, name, *, backwards=False):
    """Press Tab until what has the focus is called so; it has to be seen that it has."""
    describe = """() => {
        const node = document.activeElement, style = getComputedStyle(node);
        const box = node.getBoundingClientRect();
        const name = node.ariaLabel || node.labels?.[0]?.textContent || node.value || node.textContent;
        return [name.trim(), style.outlineStyle !== "none", box.width * box.height > 0];
    }"""
    for _attempt in range(100):
        page.keyboard.press("Shift+Tab" if backwards else "Tab")
        found, is_seen, is_there = page.evaluate(describe)
        if found == name:
            assert is_seen
            assert is_there
            return
    pytest.fail(f"{name} cannot be reached")


def test_a_refresh_keeps_what_is_selected_and_selects_nothing_that_is_new(window, admin):
    chosen, other = scene.dead(), scene.dead()
    opened = window(admin)
    stop_clock(opened.page)
    page = opened.open(f"{ROOT}tasks/{MAIL}&state=dead")
    box(page, chosen).check()
    page.get_by_role("searchbox", name="Search").fill("half a wo")
    TaskQueue().delete("mail", "dead", [other])
    new = scene.dead()

    page.clock.fast_forward(5_000)

    expect(box(page, new)).not_to_be_checked()
    expect(box(page, other)).to_have_count(0)
    expect(box(page, chosen)).to_be_checked()
    expect(page.get_by_role("searchbox", name="Search")).to_have_value("half a wo")


@pytest.mark.slow
def test_a_page_is_selected_as_a_whole_without_a_script(window, admin):
    scene.ready(count=51)
    page = window(admin, java_script_enabled=False).open(f"{ROOT}tasks/{MAIL}")

    page.get_by_role("link", name="Select the 50 on this page").click()
    page.get_by_role("button", name="Cancel…").click()
    page.get_by_role("button", name="Cancel", exact=True).click()

    expect(said(page)).to_contain_text("Cancelled 50 tasks of the queue mail.")
    stats = TaskQueue().stats("mail")
    assert (stats.ready, stats.dead) == (1, 50)


def test_a_search_text_is_not_taken_for_an_address(window, admin):
    scene.ready(kwargs={"to": "a&queue=b#c"})
    page = window(admin).open(f"{ROOT}tasks/{MAIL}")

    page.get_by_role("searchbox", name="Search").fill("a&queue=b#c")
    page.get_by_role("button", name="Search").click()

    expect(page.locator("#searched")).to_contain_text("1 of the next 1 ready tasks hold “a&queue=b#c”")


def test_boxes_and_buttons_are_large_enough_for_a_finger(window, admin):
    scene.dead()
    page = window(admin, viewport={"width": 360, "height": 640}).open(f"{ROOT}tasks/{MAIL}&state=dead")

    sizes = page.eval_on_selector_all(
        "#live :is(button, input:not([type=hidden], [type=radio]), .verbs label)",
        """nodes => nodes.map(n => {
            const margins = parseFloat(getComputedStyle(n).marginTop) * 2;
            return [n.outerHTML, n.getBoundingClientRect().height + margins];
        })""",
    )

    assert len(sizes) >= 6
    assert [(html, height) for html, height in sizes if height < 24] == []


def test_a_worker_is_asked_to_stop(window, admin):
    worker = scene.worker("mail")
    opened = window(admin)
    page = opened.open(ROOT)

    page.get_by_role("link", name=f"Stop: {worker.id}").click()
    page.get_by_role("button", name="Stop").click()

    expect(said(page)).to_contain_text(f"Asked the worker {worker.id} to stop.")
    expect(page.locator(f'tr[data-key="{worker.id}"]')).to_contain_text("Asked to stop")
    assert worker.renew(["mail"]).order == "stop"
    assert opened.complaints == []
