"""What live.js gets when it asks for a page again: only what has changed, nothing if nothing has, and compressed."""

from __future__ import annotations

import gzip
import json

import pytest
from django.utils.crypto import get_random_string

from components.control_room.live import Version
from tests.queues.admin import scene

ROOT = "/admin/components/queue/"
TASKS = f"{ROOT}tasks/?alias=default&queue=mail"
#: What live.js sends before it has anything.
NEW = {"X-Live": "5", "X-Live-Parts": "-", "Accept": "application/json"}


def assembled(pairs, known=()):
    """What live.js makes of an answer: its pieces, each with its digest."""
    made = []
    for first, second in pairs:
        made += known[first : first + second] if isinstance(first, int) else [(first, second)]
    return made


def digests(pieces):
    return " ".join(digest for digest, _html in pieces)


def html(pieces):
    return "".join(text for _digest, text in pieces)


def ask(client, pieces=(), path=TASKS, **headers):
    given = {**NEW, **headers, **({"X-Live-Parts": digests(pieces)} if pieces else {})}
    return client.get(path, headers=given)


def test_first_all_of_the_part_comes_and_then_only_what_has_changed_or_nothing(viewer, redis):
    for number in range(20):
        scene.dead(f"queue {number}")
    first = ask(viewer, path=ROOT)
    pieces = assembled(first.json())
    scene.dead("another")

    second = ask(viewer, pieces, ROOT)
    renewed = assembled(second.json(), pieces)

    assert first["Content-Type"] == "application/json"
    assert html(pieces).startswith('<div id="live" data-live')
    assert html(renewed).count("<tr") == html(pieces).count("<tr") + 1
    assert html(renewed) == viewer.get(ROOT, headers={"X-Live": "5"}).text
    assert len(second.content) < len(first.content) / 2

    third = ask(viewer, renewed, ROOT, **{"If-None-Match": second["ETag"]})
    assert (third.status_code, third.content, third["ETag"]) == (304, b"", second["ETag"])
    assert "no-store" in third["Cache-Control"]


def test_an_answer_is_compressed_if_live_js_asked_for_it(viewer, redis):
    scene.ready("mail", count=30)

    plain = ask(viewer)
    packed = ask(viewer, **{"Accept-Encoding": "br, gzip"})

    assert packed["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.content)[:4] == plain.content[:4]
    assert len(packed.content) < len(plain.content) / 5
    known = assembled(ask(viewer, path=f"{ROOT}periodic/").json())
    few = ask(viewer, known, f"{ROOT}periodic/", **{"Accept-Encoding": "gzip"})
    assert not few.has_header("Content-Encoding")  # it is too small
    assert assembled(few.json(), known) == known
    # Others get pages as they are, so that nobody can measure what another site makes them say.
    assert not viewer.get(TASKS, headers={"Accept-Encoding": "gzip"}).has_header("Content-Encoding")


def test_permissions_and_other_answers_are_those_of_the_page(viewer, stranger, client):
    assert ask(stranger).status_code == 403
    assert ask(client).status_code == 302
    assert ask(viewer).status_code == 503  # there is no Redis


@pytest.mark.parametrize("parts", ["", "-", "x", "0 0 0", "'; <b>", "ab " * 10_000])
def test_whatever_is_named_as_known_the_page_is_whole(viewer, redis, parts):
    answer = ask(viewer, path=ROOT, **{"X-Live-Parts": parts})

    assert html(assembled(answer.json())) == viewer.get(ROOT, headers={"X-Live": "5"}).text


def test_a_page_of_any_size_has_as_many_pieces_as_a_header_can_name():
    rows = [f"<tr><td>{get_random_string(9)}</td></tr>" for _ in range(5_000)]

    version = Version.of("".join(rows))

    assert "".join(version.pieces) == "".join(rows)
    assert len(" ".join(version.digests)) < 4_096


def test_one_changed_row_of_many_is_all_that_travels():
    rows = [f"<tr data-key={number}><td>{number}</td></tr>" for number in range(100)]
    old = Version.of("".join(rows))
    rows[40] = "<tr><td>new</td></tr>"

    pairs = json.loads(Version.of("".join(rows)).since(old.digests))

    [before, (_digest, text), after] = pairs
    assert (text, before, after[1]) == (rows[40], [0, 41], 59)
