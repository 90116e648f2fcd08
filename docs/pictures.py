"""
Take the pictures of README from a fresh demo that has run for ten minutes, in a real Chromium:

    make demo PORT=8000
    pip install pillow playwright
    python docs/pictures.py http://127.0.0.1:8000 [/usr/bin/chromium]

It takes three minutes. Each picture is taken in light and in dark colours. The animation shows what a visitor of the
demo does, and how the control room sees it; it is a WebP, which is a fifth of a GIF.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Literal

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

FOLDER = Path(__file__).parent / "images"
SIZE = {"width": 1280, "height": 800}
#: Milliseconds for which a frame is shown, and the last one.
FRAME, LAST = 900, 2_500
#: Of the pictures; texts stay sharp.
QUALITY = 82
COLOURS: tuple[Literal["light", "dark"], ...] = ("light", "dark")
SOLD = "project.market.tasks.send_sold_email"
#: How a picture is reached: who logs in, and what they press, one after the other.
PICTURES = {
    "overview": ("admin", ["Control room", "Overview"]),
    "task": ("admin", ["Control room", "Overview", "Counters", "Tasks by time", SOLD]),
    "traffic": ("admin", ["Control room", "Overview", "Logs", "Traffic"]),
    "chat": ("jack", ["Chat", "Lantern Keepers"]),
}


#: What is said in the guild's chat before its picture is taken. Jack, whose page it is, has not read the end.
TALK = [
    ("joe", "Who has the map to the lake that moved?"),
    ("jack", "I do. It shows where the lake was on Tuesday."),
    ("joe", "*Excellent.* Then we meet at the mill, at nine."),
    ("jack", "Nine it is. I bring the lantern."),
    ("joe", "And the oil: https://fakegame.example/oil/"),
    ("jack", "The treasure is said to be north of the mill."),
    ("joe", "@jack, it was south of it last week."),
    ("joe", "Or was the mill elsewhere, too?"),
]


def press(page: Page, name: str) -> None:
    """Press the first link or button whose name begins like this."""
    found = page.get_by_role("link", name=name).or_(page.get_by_role("button", name=name))
    found.filter(visible=True).first.click()
    page.wait_for_timeout(700)


def enter(browser: Browser, site: str, who: str, colours: Literal["light", "dark"] = "light") -> Page:
    page = browser.new_page(viewport=SIZE, color_scheme=colours, locale="en-GB")  # type: ignore[arg-type]
    page.goto(site)
    # The admin's list of models would take a quarter of each picture.
    page.evaluate("localStorage.setItem('django.admin.navSidebarIsOpen', 'false')")
    page.get_by_role("button", name=who, exact=True).click()
    return page


def take(page: Page) -> Image.Image:
    return Image.open(BytesIO(page.screenshot())).convert("RGB")


def talk(browser: Browser, site: str) -> None:
    """Say everything; each leaves after their last words."""
    pages = {}
    for number, (who, text) in enumerate(TALK, 1):
        if who not in pages:
            pages[who] = enter(browser, site, who)
            press(pages[who], "Chat")
            press(pages[who], "Lantern Keepers")
        message = pages[who].get_by_role("textbox", name="Message").last
        message.press_sequentially(text, delay=60)  # a name after "@" is looked up while it is typed
        message.press("Enter")
        pages[who].wait_for_timeout(700)
        if who not in dict(TALK[number:]):
            pages.pop(who).context.close()


def stage(page: Page) -> Iterator[Image.Image]:
    """Buy something, see what it did, and let a thousand buyers come at once."""
    yield take(page)
    button = page.get_by_role("button", name="Buy ").first
    button.hover()
    yield take(page)
    button.click()
    for _ in range(5):
        yield take(page)
        page.wait_for_timeout(600)
    crowd = page.get_by_role("button", name="A thousand buyers at once")
    crowd.scroll_into_view_if_needed()
    yield take(page)
    crowd.click()
    yield take(page)
    page.get_by_role("button", name="admin", exact=True).click()
    press(page, "Control room")
    press(page, "Overview")
    press(page, "Queues")
    page.get_by_label("Refresh").first.select_option(index=1)
    for _ in range(8):
        yield take(page)
        page.wait_for_timeout(1_000)


def main(site: str, chromium: str = "") -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium or None, args=["--no-sandbox"])
        first, *others = stage(enter(browser, site, "jack"))
        times = [FRAME] * len(others) + [LAST]
        path = FOLDER / "stage.webp"
        first.save(path, save_all=True, append_images=others, duration=times, loop=0, quality=65, method=2)
        for name, (who, steps) in PICTURES.items():
            for colours in COLOURS:
                if name == "chat":
                    talk(browser, site)
                page = enter(browser, site, who, colours)
                for step in steps:
                    press(page, step)
                page.wait_for_timeout(2_000)
                take(page).save(FOLDER / f"{name}-{colours}.webp", quality=QUALITY, method=6)
                page.context.close()
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
