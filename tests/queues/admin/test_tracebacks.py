"""Tracebacks on the page of a task: the message first, frames of libraries folded, all of it there to be copied."""

from __future__ import annotations

import traceback as python
from html import escape

import pytest

from components.services.queues.admin.tracebacks import parts_of
from components.services.queues.arguments import normalize
from tests.control_room.pages import text_of
from tests.queues.admin import scene

ROOT = "/admin/components/queue/"
OWN = '  File "/srv/shop/tasks.py", line 4, in charge\n    pay(9)\n    ~~~^^^\n'
LIBRARY = '  File "/venv/lib/python3.12/site-packages/pay/api.py", line 70, in pay\n    raise Refused\n'
HEAD, END = "Traceback (most recent call last):\n", "pay.Refused: no\n  second line\n"

pytestmark = pytest.mark.usefixtures("redis")


@pytest.mark.parametrize(
    ("traceback", "parts"),
    [
        (HEAD + OWN + LIBRARY + LIBRARY + END, [(HEAD + OWN, 0), (LIBRARY * 2, 2), (END, 0)]),
        (HEAD + LIBRARY + OWN + END, [(HEAD, 0), (LIBRARY, 1), (OWN + END, 0)]),
        (HEAD + LIBRARY + END, [(HEAD + LIBRARY + END, 0)]),
        (HEAD + OWN + END, [(HEAD + OWN + END, 0)]),
        ("The task was cancelled.", [("The task was cancelled.", 0)]),
        ("", [("", 0)]),
    ],
)
def test_frames_of_libraries_are_parts_of_their_own(traceback, parts):
    assert [(part.text, part.frames) for part in parts_of(traceback)] == parts


def test_no_line_of_a_real_traceback_is_lost():
    try:
        try:
            normalize(object(), "args")
        except TypeError as error:
            raise ExceptionGroup("two", [error, KeyError(1)]) from error
    except ExceptionGroup as caught:
        text = "".join(python.format_exception(caught))

    parts = parts_of(text)

    assert "".join(part.text for part in parts) == text
    assert any(part.frames for part in parts)


def test_the_page_of_a_task_begins_with_the_message_and_folds_libraries(viewer, onlooker, monkeypatch):
    monkeypatch.setattr(scene, "TRACEBACK", HEAD + OWN + LIBRARY + "OSError: no ink\n")
    query = {"alias": "default", "id": scene.dead()}

    html = viewer.get(f"{ROOT}task/", query).text

    assert text_of(viewer, ROOT, "task/", **query).startswith("OSError: no ink Task market.tasks.send")
    assert f"<code>{escape(LIBRARY)}</code></pre>" in html
    assert "1 frame of a library" in html
    assert "components/copy.js" in html
    assert text_of(onlooker, ROOT, "task/", **query).startswith("OSError Task market.tasks.send")


def test_the_durations_of_the_latest_runs_of_a_task_are_told(viewer):
    for _ in range(3):
        scene.successful()
    scene.successful(name="market.tasks.other")
    query = {"alias": "default", "queue": "mail", "state": "successful"}

    text = text_of(viewer, ROOT, "tasks/", **query, task="send")

    assert "Of these 3 runs, half took at most 0 ms, 95 % at most 0 ms, and the longest took 0 ms." in text
    assert "One run took 0 ms." in text_of(viewer, ROOT, "tasks/", **query, task="other")
    assert "runs" not in text_of(viewer, ROOT, "tasks/", **query)
