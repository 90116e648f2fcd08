"""Numbers, instants, durations and tables as the control room writes them; its stylesheets; what live.js gets."""

import gzip
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.template import Context, Template
from django.test import override_settings
from django.utils import translation
from django.utils.crypto import get_random_string
from django.utils.html import format_html

import components
from components.control_room.live import Version
from components.control_room.pages import Paging
from components.formatting import duration, grouped, legible, pretty_json, since, took
from components.templatetags.control_room import moment
from tests.queues.admin import scene

DASH = "\N{EN DASH}"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "written"),
    [
        (None, DASH),
        (0, "0 s"),
        (0.004, "4 ms"),
        (0.25, "250 ms"),
        (2, "2 s"),
        (9.94, "9.9 s"),
        (10, "10 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (61, "1 min 1 s"),
        (3600, "1 h"),
        (3725, "1 h 2 min"),
        (86_399, "23 h 59 min"),
        (90_000, "1 d 1 h"),
        (400 * 86_400, "400 d"),
    ],
)
def test_a_duration_has_its_two_largest_units(seconds, written):
    assert duration(seconds) == written


@pytest.mark.parametrize(
    ("seconds", "written"),
    [(None, DASH), (0, "0 ms"), (0.000_314, "0.31 ms"), (0.009_9, "9.9 ms"), (0.01, "10 ms"), (2, "2 s")],
)
def test_search_times_below_a_millisecond_are_recorded(seconds, written):
    assert took(seconds) == written


@pytest.mark.parametrize(
    ("ago", "expected"),
    [
        (0, (True, True, "0 s")),
        (-1, (True, False, "1 s")),
        (43_200, (True, True, "12 h")),
        (43_201, (False, True, "12 h")),
        (-43_199, (True, False, "11 h 59 min")),
        (-43_200, (False, False, "12 h")),
    ],
)
def test_an_instant_is_of_today_and_past_until_now(monkeypatch, settings, ago, expected):
    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return NOON

    settings.TIME_ZONE = "UTC"
    monkeypatch.setattr("components.templatetags.control_room.datetime", Clock)

    found = moment(NOON - timedelta(seconds=ago))

    assert (found["is_today"], found["is_past"], found["distance"]) == expected


def test_what_cannot_be_is_a_dash_or_nothing_and_numbers_are_those_of_the_language():
    assert moment(None) == {"instant": None}
    assert since(None, NOON) == since(NOON, None) == DASH
    assert since(NOON, NOON + timedelta(seconds=1)) == "0 s"  # by clocks that disagree
    assert grouped(1_234_567) == "1,234,567"
    with translation.override("de"):
        assert grouped(1_234_567) == "1.234.567"
    with override_settings(USE_TZ=False):
        assert moment(datetime.now(UTC) - timedelta(hours=2, seconds=1))["distance"] == "2 h"
    assert pretty_json({"name": "Jürgen"}) == '{\n  "name": "Jürgen"\n}'


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("item 42", "item 42"),
        ("ü 日本 🙂", "ü 日本 🙂"),
        ("two\nlines", r"two\nlines"),
        ("a\x00b\x1b", r"a\x00b\x1b"),
        ("\u202eturned", r"\u202eturned"),
        ("\udcff", r"\udcff"),
        (" a  b  ", r"\x20a  b\x20\x20"),
        ("  ", r"\x20\x20"),
        ("", ""),
    ],
)
def test_invisible_characters_of_a_name_are_written_out(text, shown):
    assert legible(text) == shown


@pytest.mark.parametrize(
    ("paging", "previous", "first", "last", "next"),
    [
        (Paging(120, 0), None, 1, 50, 50),
        (Paging(120, 50), 0, 51, 100, 100),
        (Paging(120, 100), 50, 101, 120, None),
        (Paging(0), None, 0, 0, None),
    ],
)
def test_a_page_of_a_list_knows_its_neighbours(paging, previous, first, last, next):
    assert (paging.previous, paging.first, paging.last, paging.next) == (previous, first, last, next)


def test_the_columns_of_a_table_have_their_names_in_the_language_of_the_page():
    names = '_("Locks") _("Name") True|then:_("Time") "#" False|then:_("Date") '
    source = f"{{% load control_room %}}{{% table {names}%}}{{% endtable %}}"
    with translation.override("de"):
        html = Template(source).render(Context())

    assert re.findall(r"<th ([^>]*)>(.*?)</th>", html) == [
        ('scope="col" role="columnheader"', "Name"),
        ('scope="col" class="number" role="columnheader"', "Zeit"),
    ]


def test_each_cell_of_a_table_says_of_which_column_it_is():
    row = '<tr data-key="1"><th scope="row">7</th><td class="number">{{ text }}</td></tr>'
    names = "'Item' head '#'"
    source = f"{{% load control_room %}}{{% table 'Items' {names} %}}{row}{row}{{% endtable %}}"
    head = format_html('<a href="?sort=">{} "', "<Sold>")
    html = Template(source).render(Context({"head": head, "text": "<td>"}))

    assert html.count('<tr data-key="1" role="row">') == 2
    assert html.count('<th scope="row" role="rowheader" data-label="Item">7</th>') == 2
    cell = '<td class="number" role="cell" data-label="&lt;Sold&gt; &quot;">&lt;td&gt;</td>'
    assert html.count(cell) == 2


# Stylesheets depend on no admin's own variables, so they look right in any admin


STATIC = Path(components.__file__).parent / "static" / "components"
SHEETS = sorted(path.relative_to(STATIC).as_posix() for path in STATIC.rglob("*.css"))


def defined(css: str) -> set[str]:
    return {*re.findall(r"(--[\w-]+)\s*:", css)}


def used(css: str) -> set[str]:
    """The variables that are used without a fallback."""
    return {*re.findall(r"var\(\s*(--[\w-]+)\s*\)", css)}


@pytest.mark.parametrize("sheet", SHEETS)
def test_each_variable_has_a_value_where_the_admin_gives_none(sheet: str) -> None:
    path = STATIC / sheet
    beside = "".join(each.read_text(encoding="utf-8") for each in path.parent.glob("*.css"))

    assert used(path.read_text(encoding="utf-8")) - defined(beside) == set()


def test_no_class_is_one_that_the_scripts_of_unfold_look_for() -> None:
    """Unfold takes each element with this class for a canvas, and its script ends with an error."""
    templates = STATIC.parents[1] / "templates"

    found = [
        path.name
        for path in templates.rglob("*.html")
        if re.search(r'class="(?:[^"]* )?chart[" ]', path.read_text(encoding="utf-8"))
    ]

    assert found == []


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
    assert '<div id="live" data-live' in html(pieces)
    assert "<html" not in html(pieces)
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
