"""A fenced write is accepted if no newer one was before it; else it is refused, and nothing of it happens."""

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import DatabaseError, connections, models, transaction
from django.db.models import Case, Count, Exists, F, OuterRef, Q, Value, When
from django.db.models.signals import post_save
from django.test.utils import isolate_apps, override_settings
from django.utils.module_loading import import_string
from hypothesis import given, settings
from hypothesis import strategies as st

from components.exceptions import InvalidValue, StaleFence
from components.services.locks.models import FencedModel, FencedQuerySet, FenceField
from tests.db.models import Box, Crate, Parcel, Shelf
from tests.fixtures.databases import alone
from tests.support.waiting import eventually

MAX = 2**63 - 1


@pytest.fixture
def box(db: None) -> Box:
    """A box that the holder of fence 5 has written."""
    return Box.objects.create(name="box", content=1, fence=5)


def facts(arena: str = "default") -> list[tuple[str, int, int]]:
    return list(Box.objects.using(arena).order_by("name").values_list("name", "content", "fence"))


# --- update


@pytest.mark.parametrize("verb", ["update", "delete"])
def test_one_newer_row_refuses_the_whole_write(box: Box, verb: str) -> None:
    Box.objects.create(name="another", content=1, fence=3)
    rows = Box.objects.fenced(4)

    with pytest.raises(StaleFence):
        rows.update(content=2) if verb == "update" else rows.delete()

    assert facts() == [("another", 1, 3), ("box", 1, 5)]


CONDITIONS: dict[str, Callable[[Any], Any]] = {
    "before": lambda rows: rows.filter(name="box").fenced,
    "after": lambda rows: lambda fence: rows.fenced(fence).filter(name="box"),
    "Q": lambda rows: lambda fence: rows.fenced(fence).filter(Q(name="box") | Q(name="no such")),
    "combined": lambda rows: (
        lambda fence: rows.fenced(fence).filter(name="box") | rows.fenced(fence).filter(name="none")
    ),
    "another table": lambda rows: rows.filter(shelf__name="top").fenced,
    "not in another table": lambda rows: rows.exclude(shelf__name="low").filter(name="box").fenced,
    "order of another table": lambda rows: rows.filter(name="box").order_by("shelf__name").fenced,
    "subquery": lambda rows: rows.filter(shelf__in=Shelf.objects.filter(name="top")).fenced,
    "exists": lambda rows: rows.filter(Exists(Shelf.objects.filter(pk=OuterRef("shelf"), name="top"))).fenced,
    "annotation": lambda rows: rows.annotate(twice=F("content") * 2).filter(twice=2, name="box").fenced,
    "aggregate": lambda rows: rows.annotate(n=Count("shelf")).filter(n=1, shelf__name="top").fenced,
    "distinct": lambda rows: rows.filter(shelf__name="top").distinct().fenced,
    "another name": lambda rows: Parcel.objects.filter(name="box").fenced,
    "of the shelf": lambda rows: Shelf.objects.get(name="top").boxes.fenced,  # type: ignore[attr-defined]
    "pickled": lambda rows: lambda fence: pickle.loads(pickle.dumps(rows.fenced(fence).filter(name="box"))),
}


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("verb", ["update", "delete"])
def test_any_condition_may_choose_the_rows(box: Box, condition: str, verb: str) -> None:
    """The other box is newer: it must neither be touched nor count."""
    box.shelf, low = (Shelf.objects.create(name=name) for name in ("top", "low"))
    box.save()
    Box.objects.create(name="other", content=1, shelf=low, fence=9)
    fenced = CONDITIONS[condition](Box.objects.all())

    with pytest.raises(StaleFence):
        fenced(4).update(content=2) if verb == "update" else fenced(4).delete()
    assert facts() == [("box", 1, 5), ("other", 1, 9)]

    if verb == "update":
        assert fenced(6).update(content=2) == 1
        assert facts() == [("box", 2, 6), ("other", 1, 9)]
    elif condition != "distinct":
        assert fenced(6).delete()[0] == 1
        assert facts() == [("other", 1, 9)]


def test_a_queryset_of_the_models_own_is_chained_as_usual(db: None) -> None:
    Crate.objects.bulk_create([Crate(content=1), Crate()])

    assert Crate.objects.fenced(3).full().update(content=7) == 1
    assert Crate.objects.full().fenced(4).update(content=8) == 1

    assert sorted(Crate.objects.values_list("content", "fence")) == [(0, 0), (8, 4)]


@pytest.mark.parametrize("fence", [0, -1, MAX + 1, True, 5.0, "5", None, float("nan")])
def test_an_invalid_fence_is_refused(box: Box, fence: Any) -> None:
    with pytest.raises(InvalidValue):
        Box.objects.fenced(fence)
    if fence is not None:
        with pytest.raises(InvalidValue):
            box.save(fence=fence)

    assert facts() == [("box", 1, 5)]


class ReadingElsewhere:
    """A router with a replica, which nothing that decides on a write may ask."""

    def db_for_read(self, model: type[models.Model], **hints: object) -> str:
        return "a replica that lags behind"

    def db_for_write(self, model: type[models.Model], **hints: object) -> str:
        return "default"


def test_a_replica_is_never_asked(box: Box) -> None:
    with override_settings(DATABASE_ROUTERS=[ReadingElsewhere()]):
        rows = Box.objects.fenced(4)
        for write in (
            lambda: rows.update(content=2),
            lambda: rows.filter(shelf=None).delete(),
            lambda: rows.bulk_update([box], ["content"]),
            lambda: box.save(fence=4),
        ):
            with pytest.raises(StaleFence):
                write()
        assert Box.objects.fenced(6).exclude(shelf__name="top").update(content=2) == 1

    assert facts() == [("box", 2, 6)]


# --- what cannot be fenced

REFUSED: dict[str, Callable[[], object]] = {
    "a fence of its own": lambda: Box.objects.fenced(6).update(fence=7),
    "a new row's": lambda: Box.objects.fenced(6).create(name="new", fence=7),
    "two fences, or": lambda: Box.objects.fenced(6) | Box.objects.fenced(7),
    "two fences, and": lambda: Box.objects.all() & Box.objects.fenced(7),
    "delete of values": lambda: Box.objects.values("pk").fenced(6).delete(),
    "delete of distinct": lambda: Box.objects.distinct("name").fenced(6).delete(),
    "delete of a slice": lambda: Box.objects.all()[:1].fenced(6).delete(),
    "update or create": lambda: Box.objects.fenced(6).update_or_create(name="box", defaults={"content": 2}),
    "conflicts": lambda: Box.objects.fenced(6).bulk_create(
        [Box(name="box")], update_conflicts=True, update_fields=["content"], unique_fields=["name"]
    ),
    "raw delete": lambda: Box.objects.fenced(6).all()._raw_delete("default"),
    "a model without a fence": lambda: FencedQuerySet(Shelf).fenced(6),
}


@pytest.mark.parametrize("refused", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_fenced_is_refused_and_changes_nothing(
    box: Box, refused: Callable[[], object]
) -> None:
    with pytest.raises(TypeError):
        refused()

    assert facts() == [("box", 1, 5)]


# --- many, and new ones


def test_bulk_update_is_all_or_nothing(box: Box) -> None:
    boxes = [box, *Box.objects.bulk_create(Box(name=f"{number}", fence=3) for number in range(4))]
    for each in boxes:
        each.content = 7

    with transaction.atomic():
        with pytest.raises(StaleFence):
            Box.objects.fenced(4).bulk_update(boxes[::-1], ["content"], batch_size=2)
        assert set(Box.objects.values_list("content", flat=True)) == {0, 1}

    assert Box.objects.fenced(6).bulk_update(boxes, ["content"], batch_size=2) == 5
    assert set(Box.objects.values_list("content", "fence")) == {(7, 6)}
    assert {each.fence for each in boxes} == {6}


def test_new_rows_begin_with_the_fence(box: Box) -> None:
    rows = Box.objects.fenced(6)

    assert rows.create(name="a").fence == 6
    assert [each.fence for each in rows.bulk_create([Box(name="b"), Box(name="c")])] == [6, 6]
    made, is_new = rows.get_or_create(name="d", defaults={"content": 4})
    assert (made.fence, is_new) == (6, True)
    found, is_new = rows.get_or_create(name="box")
    assert (found.fence, is_new) == (5, False)

    assert facts() == [("a", 0, 6), ("b", 0, 6), ("box", 1, 5), ("c", 0, 6), ("d", 4, 6)]


def test_without_a_fence_everything_is_as_django_does_it(db: None) -> None:
    rows = Box.objects.all()
    a, b = rows.bulk_create([Box(name="a"), Box(name="b")])
    rows.bulk_update([a], ["content"])
    rows.update_or_create(name="b", defaults={"content": 2})
    rows.get_or_create(name="c", defaults={"fence": 3})
    rows.filter(pk=a.pk)._raw_delete("default")

    assert facts() == [("b", 2, 0), ("c", 0, 3)]
    assert rows.filter(pk=b.pk).delete()[0] == 1


# --- save


def test_saving_some_fields_with_a_fence(box: Box) -> None:
    box.content, box.name = 2, "never written"
    box.save(fence=6, update_fields=["content"])
    assert facts() == [("box", 2, 6)]

    box.save(fence=7, update_fields=[])
    assert facts() == [("box", 2, 7)]
    with pytest.raises(StaleFence):
        async_to_sync(box.asave)(fence=6)


def test_saving_what_was_loaded_in_part_with_a_fence(box: Box) -> None:
    part = Box.objects.only("content").get()
    part.content = 2
    part.save(fence=6)
    assert facts() == [("box", 2, 6)]

    part = Box.objects.only("content").get()
    with pytest.raises(StaleFence):
        part.save(fence=4)
    assert part.get_deferred_fields() >= {"fence"}


def test_saving_without_a_fence_leaves_the_rows_fence_even_if_the_instance_is_old(box: Box) -> None:
    older = Box.objects.get()
    Box.objects.fenced(8).update()
    older.content = 9

    older.save()
    older.save(update_fields=["fence", "content"])

    assert facts() == [("box", 9, 8)]
    with pytest.raises(StaleFence):
        Box.objects.fenced(7).update()


def test_a_new_instance_is_saved_with_its_fence(db: None) -> None:
    Box(name="new").save(fence=3)
    Box(name="newer").save(fence=3, force_insert=True)

    assert facts() == [("new", 0, 3), ("newer", 0, 3)]


def test_a_row_deleted_by_a_newer_holder_is_not_saved_again(box: Box) -> None:
    older = Box.objects.get()
    box.delete()

    with transaction.atomic(), pytest.raises(DatabaseError):
        older.save(fence=6)

    assert facts() == []


def test_receivers_of_signals_save_without_the_fence_of_the_save_that_sent_them(box: Box) -> None:
    def again(instance: Box, **kwargs: object) -> None:
        post_save.disconnect(again, sender=Box)
        instance.save()
        instance.save(fence=7)

    post_save.connect(again, sender=Box)
    box.save(fence=6)

    assert facts() == [("box", 1, 7)]
    assert "_saving" not in vars(box)


@isolate_apps("tests.db")
def test_rows_in_two_tables_are_refused(box: Box) -> None:
    class Chest(Box):
        key = models.CharField(max_length=9)

        class Meta:
            app_label = "db"

    class Trunk(Shelf, FencedModel):
        class Meta:
            app_label = "db"

    for model in (Chest, Trunk):
        assert [found.id for found in model.check() if found.id == "components.E005"]
        with pytest.raises(TypeError):
            FencedQuerySet(model).fenced(6)
        with pytest.raises(TypeError):
            model().save(fence=6)


# --- any history


@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["update", "joined", "save", "bulk", "mark"]),
            st.integers(1, 9),
            st.integers(0, 9),
        ),
        max_size=12,
    )
)
def test_no_accepted_write_has_a_lower_fence_than_one_before(
    db: None, history: list[tuple[str, int, int]]
) -> None:
    with transaction.atomic():
        try:
            _live(history)
        finally:
            transaction.set_rollback(True)


def _live(history: list[tuple[str, int, int]]) -> None:
    box = Box.objects.create(name="box", shelf=Shelf.objects.create(name="top"))
    fence, content = 0, 0
    for how, own, new in history:
        try:
            _write(how, box.pk, own, new)
        except StaleFence:
            assert own < fence
        else:
            assert own >= fence
            fence, content = own, content if how == "mark" else new
        assert facts() == [("box", content, fence)]


def _write(how: str, pk: int, fence: int, content: int) -> None:
    rows = Box.objects.fenced(fence).filter(pk=pk)
    if how == "update":
        rows.update(content=Case(When(content=content, then=F("content")), default=Value(content)))
    elif how == "joined":
        rows.filter(shelf__name="top").update(content=content)
    elif how == "mark":
        rows.update()
    else:
        box = Box.objects.get(pk=pk)
        box.content = content
        box.save(fence=fence) if how == "save" else rows.bulk_update([box], ["content"])


def rows(arena: str) -> Any:
    return Box.objects.using(arena)


def put(arena: str, *names: str) -> None:
    shelf = Shelf.objects.using(arena).create(name="top")
    for name in names:
        rows(arena).create(name=name, shelf=shelf)


def bulk_update(boxes: Any) -> None:
    changed = Box.objects.using(boxes.db).get(name="a")
    changed.content = 1
    boxes.bulk_update([changed], ["content"])


def save(boxes: Any) -> None:
    instance = Box.objects.using(boxes.db).get(name="a")
    instance.content = 1
    instance.save(fence=1)


WRITE: dict[str, Callable[[Any], object]] = {
    "update": lambda boxes: boxes.filter(name="a").update(content=1),
    "update by another table": lambda boxes: boxes.filter(shelf__name="top").update(content=1),
    "update by a subquery": lambda boxes: boxes.filter(pk__in=Box.objects.using(boxes.db)).update(content=1),
    "update of all": lambda boxes: boxes.update(content=1),
    "bulk_update": bulk_update,
    "delete": lambda boxes: boxes.filter(name="a").delete(),
    "delete by another table": lambda boxes: boxes.filter(shelf__name="top").delete(),
    "save": save,
}


def somebody_waits(arena: str) -> bool:
    with connections[arena].cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])


def held_up(
    arena: str, older: Callable[[], Any], newer: Callable[[], object], *, gives_up: bool = False
) -> Any:
    """What *older* comes to, which runs into the transaction of *newer* before that is committed, or given up."""
    begun = Event()

    def begin() -> Any:
        begun.set()
        return older()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic(using=arena):
            newer()
            result = pool.submit(alone(begin))
            assert begun.wait(20)
            if connections[arena].vendor == "postgresql":
                assert eventually(lambda: somebody_waits(arena))
            transaction.set_rollback(gives_up, using=arena)
        return result.result(60)


@pytest.mark.parametrize("how", WRITE)
def test_an_older_writer_that_waited_for_a_newer_one_is_refused(arena: str, how: str) -> None:
    put(arena, "a", "b")

    def newer() -> None:
        rows(arena).fenced(2).filter(name="a").update(content=2)

    with pytest.raises(StaleFence):
        held_up(arena, lambda: WRITE[how](rows(arena).fenced(1)), newer)

    assert facts(arena) == [("a", 2, 2), ("b", 0, 0)]


@pytest.mark.parametrize(
    ("waits", "first", "gives_up", "written"),
    [
        (2, lambda rows: rows.fenced(1).update(content=1), False, [("a", 2, 2)]),
        (1, lambda rows: rows.fenced(2).update(content=2), True, [("a", 1, 1)]),
        (1, lambda rows: rows.fenced(2).delete(), False, []),
    ],
    ids=["newer", "older, and the newer gave up", "older, and the newer deleted"],
)
def test_a_writer_that_waited_for_another_is_accepted(
    arena: str, waits: int, first: Callable[[Any], Any], gives_up: bool, written: list[tuple[str, int, int]]
) -> None:
    put(arena, "a")

    count = held_up(
        arena,
        lambda: rows(arena).fenced(waits).update(content=waits),
        lambda: first(rows(arena)),
        gives_up=gives_up,
    )

    assert count == len(written)
    assert facts(arena) == written


@pytest.mark.parametrize("module", ["components.services.locks.models", "components.db.fences.fields"])
def test_what_migrations_of_projects_import_stays_importable(module: str) -> None:
    """A project keeps its migrations; the first is what makemigrations writes now."""
    assert FenceField().deconstruct()[1] == "components.services.locks.models.FenceField"
    assert import_string(f"{module}.FenceField") is FenceField
