"""What the Address books page shows and does, with real books."""

import itertools
import re

import pytest
from django.contrib.admin.models import LogEntry

from components.formatting import grouped
from components.kit.client import get_client
from components.kit.compat import BaseTaskBackend
from components.services.autocomplete import AddressBook, AddressBookReader, keys
from components.services.autocomplete.models import ModelBook, ModelBooks
from components.services.queues import TaskQueue
from components.testing import run_tasks
from tests.control_room.pages import addresses, done, logged, rows_of, texts_below, words
from tests.db.models import Box, Shelf
from tests.fixtures.admin import allowed

ROOT = "/admin/components/addressbook/"
BACKENDS = BaseTaskBackend.__module__.rpartition(".")[0]

url = addresses(ROOT)
page = texts_below(ROOT)

pytestmark = pytest.mark.usefixtures("redis")
viewer = allowed("view_addressbook")
operator = allowed("rebuild_addressbook", "remove_addressbook")


@pytest.fixture
def fed(db):
    """Three rows, and their book, which is not loaded."""
    made = ModelBook(Shelf, "name")
    Shelf.objects.bulk_create(Shelf(name=name) for name in ("Maps", "Old Maps", "Charts"))
    return made


def fill(name="guild:7", *labels):
    """A book of these, of which the second was selected."""
    book = AddressBook(name)
    book.load(enumerate(labels or ("ann smith", "bob", "annabel"), start=1))
    book.select(2)
    return book


class Died(Exception):
    """What ends a process in the middle of a load."""


def half_loaded(book):
    """A load has begun that does not end; how many entries it has, in words."""
    reader = AddressBookReader()

    def entries():
        for number in itertools.count():
            if number % 100 == 0 and reader.loading(book.name):
                raise Died
            yield number, f"name {number}"

    with pytest.raises(Died):
        book.load(entries(), replace=True)
    return grouped(reader.loading(book.name))


def test_a_book_is_listed_and_shown_with_its_size_what_was_selected_and_the_progress_of_its_load(viewer):
    book = fill()
    text = page(viewer, "book/", book="guild:7")
    assert "Entries 3 Words in the index 4 Entries ever chosen 1 Size " in text
    assert "Last complete load never Being loaded no Loaded from code, not a model" in text
    assert rows_of(viewer, ROOT, "book/", book="guild:7") == ["bob 2 1"]

    loaded = half_loaded(book)

    [row] = rows_of(viewer, ROOT)
    assert re.fullmatch(rf"guild:7 3 4 1 [\d.]+\s(KB|bytes) [\d:]+ .* ago {loaded}", row)
    assert f"Being loaded {loaded} entries so far" in page(viewer, "book/", book="guild:7")


def test_a_book_is_found_by_its_name_or_by_how_that_begins(viewer):
    for name in ("guild:7", "guild:70", "tenant"):
        fill(name)

    assert viewer.get(ROOT, {"q": " guild:7 "}).url == url("book", book="guild:7")
    assert [row.split()[0] for row in rows_of(viewer, ROOT, q="guild")] == ["guild:7", "guild:70"]


def test_a_prefix_can_be_tried(viewer):
    fill("guild:7", *(f"ann {number:02}" for number in range(30)), "<script>alert(1)</script>", "zoë")
    AddressBook("guild:7").select(3)

    few, many = (viewer.get(url("book", book="guild:7", prefix=prefix)) for prefix in ("ZO", "an"))
    shown = rows_of(viewer, ROOT, "book/", book="guild:7", prefix="an")

    assert re.search(r"Matches: 1, found in [\d.]+ m?s\.", words(few))
    assert rows_of(viewer, ROOT, "book/", book="guild:7", prefix="ZO") == ["zoë 32"]
    assert re.search(r"The first 20 matches, found in [\d.]+ m?s\. There are more\.", words(many))
    assert (len(shown), shown[0]) == (20, "ann 02 3")  # it was selected before the other
    assert "components/live.js" not in many.text
    assert "<script>alert" not in viewer.get(url("book", book="guild:7", prefix="scr")).text


def test_a_book_that_a_model_feeds_is_listed_until_it_is_loaded(operator, fed):
    assert rows_of(operator, ROOT) == ["db.shelf db.shelf not loaded yet Rebuild…"]
    text = page(operator, "book/", book="db.shelf")
    assert "State Not loaded yet Being loaded no Loaded from db.shelf Rebuild…" in text
    assert "Remove…" not in text
    loaded = half_loaded(fed.book)
    assert f"Being loaded {loaded} entries so far" in page(operator, "book/", book="db.shelf")

    fed.rebuild()

    [row] = rows_of(operator, ROOT)
    assert row.startswith("db.shelf 3 4 0 ")
    assert "Loaded from db.shelf" in page(operator, "book/", book="db.shelf")


def test_a_worker_rebuilds_a_book_once_it_is_asked(operator, fed):
    AddressBook("db.shelf").add("Gone", id=0)
    address = url("rebuild", book="db.shelf")
    assert "It has 1 entry now." in words(operator.get(address))
    assert TaskQueue().stats("default").ready == 0

    said, again = done(operator, address), done(operator, address)

    [task] = TaskQueue().ids("default", "ready", limit=10)
    assert said == again == logged()[:1] == logged()[1:]
    assert f"db.shelf: the task {task}." in said[0]
    assert LogEntry.objects.earliest("pk").object_repr == "db.shelf"
    [info] = run_tasks()
    assert (info.state, info.return_value, info.args) == ("successful", 3, ["db.shelf"])
    assert [each.label for each in fed.book.complete("maps")] == ["Maps", "Old Maps"]
    assert fed.book.get(0) is None


def test_the_books_of_all_shelves_are_rebuilt_together_or_one_by_one(operator):
    fed = ModelBooks(Box, "name", by="shelf", name="shelf:{}")
    shelves = Shelf.objects.bulk_create(Shelf(name=name) for name in ("maps", "tools"))
    Box.objects.bulk_create(Box(name=f"box of {each.name}", shelf=each) for each in shelves)
    maps, tools = (fed.of(shelf.pk) for shelf in shelves)
    assert rows_of(operator, ROOT) == ["shelf:{} db.box one book for each shelf Rebuild…"]
    told = "State One book for each shelf Loaded from db.box Rebuild…"
    assert told in page(operator, "book/", book="shelf:{}")

    done(operator, url("rebuild", book="shelf:{}"))
    assert [info.return_value for info in run_tasks()] == [2]
    assert [book.count() for book in (maps, tools)] == [1, 1]
    maps.erase()
    assert "State Not loaded" in page(operator, "book/", book=maps.name)
    done(operator, url("rebuild", book=maps.name))
    assert [info.return_value for info in run_tasks()] == [1]

    assert [row.split()[0] for row in rows_of(operator, ROOT, table=1)] == sorted([maps.name, tools.name])


def test_a_book_that_no_model_feeds_cannot_be_rebuilt(operator):
    fill()
    address = url("rebuild", book="guild:7")

    assert address not in operator.get(url("book", book="guild:7")).text.replace("&amp;", "&")
    assert done(operator, address)[0].startswith("No model is the source")
    assert (TaskQueue().stats("default").ready, logged()) == (0, [])


def test_a_rebuild_in_the_request_is_done_unless_it_failed(operator, fed, settings, monkeypatch):
    settings.TASKS = {"default": {"BACKEND": f"{BACKENDS}.immediate.ImmediateBackend", "QUEUES": []}}

    def fails(progress):
        raise OSError

    [first] = done(operator, url("rebuild", book="db.shelf"))
    monkeypatch.setattr(fed, "rebuild", fails)
    [second] = done(operator, url("rebuild", book="db.shelf"))

    assert AddressBook("db.shelf").count() == 3
    assert "builtins.OSError" in second
    assert logged() == [first]


def test_settings_that_lead_to_no_queue_are_reported(operator, fed, settings):
    assert operator.get(url("rebuild", book="db.shelf")).status_code == 200
    settings.COMPONENTS = {**settings.COMPONENTS, "BOOK_QUEUE": "high"}
    settings.TASKS = {"default": {"BACKEND": "components.tasks.RedisBackend", "QUEUES": ["low"]}}

    [said] = done(operator, url("rebuild", book="db.shelf"))

    assert said.startswith("No task can rebuild it: ")
    assert logged() == []


def test_a_book_is_removed_once_and_logged(operator):
    fill()
    address = url("remove", book="guild:7")

    said = done(operator, address)

    assert said == logged() == ["Removed the address book guild:7. It had 3 entries."]
    assert AddressBookReader().count() == 0
    assert not get_client().exists(keys.BookKeys("guild:7").entries)
    assert operator.post(address).status_code == 404
    assert len(logged()) == 1
