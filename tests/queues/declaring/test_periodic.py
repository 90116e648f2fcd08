"""Periodic tasks: what @periodic takes, how declarations are found, and schedules through every change of clocks."""

import logging
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.apps import AppConfig, apps
from django.test.utils import override_settings
from hypothesis import example, given, settings
from hypothesis import strategies as st

from components.exceptions import InvalidValue, NotSerializable
from components.kit import declarations
from components.kit.declarations import unknown
from components.services.queues import Schedule, cron, every, periodic
from components.services.queues.periodic_tasks import declared
from components.services.queues.report import examine
from tests import tasks
from tests.queues.worker import jobs

TASKS = {
    "default": {"BACKEND": "components.tasks.RedisBackend", "QUEUES": []},
    "other": {"BACKEND": "components.tasks.RedisBackend", "QUEUES": []},
}
NOTE, FIVE = r"tests\.tasks\.note cannot be called", every(minutes=5)
App = Callable[..., None]

pytestmark = pytest.mark.usefixtures("nothing_declared")


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[App]:
    """Make an installed app with that module "tasks"; no declarations were looked for yet."""
    declarations.import_tasks.cache_clear()
    declarations._sources.cache_clear()
    monkeypatch.syspath_prepend(tmp_path)
    configs = list(apps.get_app_configs())

    def make(name: str, source: str, **others: str) -> None:
        folder = tmp_path / name
        folder.mkdir()
        for each, text in {"__init__": "", "tasks": source, **others}.items():
            (folder / f"{each}.py").write_text(text)
        configs.append(AppConfig.create(name))
        monkeypatch.setattr(apps, "get_app_configs", lambda: configs)

    yield make
    declarations.import_tasks.cache_clear()
    declarations._sources.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] in ("broken", "whole")]:
        del sys.modules[name]


def names(alias: str = "default") -> list[str]:
    return [entry.name for entry in declared(alias)]


def test_a_task_may_have_several_schedules_and_arguments_and_stays_what_it_is() -> None:
    night = cron("0 3 * * *", tz="Europe/Berlin")
    assert periodic(FIVE)(tasks.echo) is tasks.echo
    [entry] = declared()
    assert (entry.task, entry.schedule, entry.missed) == (tasks.echo, FIVE, "once")
    periodic(every(seconds=300), missed="once")(tasks.echo)  # the same again
    periodic(night)(tasks.echo)
    periodic(night, args=["a"])(tasks.echo)
    periodic(night, args=["b"])(tasks.echo)
    periodic(FIVE, kwargs={"b": (1, 2), "a": None})(jobs.parameters)

    assert len(set(names())) == 5
    assert {
        "tests.tasks.echo 0 3 * * * (Europe/Berlin)",
        "tests.tasks.echo every 5 minutes",
        "tests.queues.worker.jobs.parameters every 5 minutes #e7aa373e",  # in every process
    } < set(names())
    with pytest.raises(ValueError, match="missed="):
        periodic(FIVE, missed="all")(tasks.echo)
    with pytest.raises(ValueError, match="queue_name="):
        periodic(FIVE)(tasks.echo.using(queue_name="other"))


@override_settings(TASKS=TASKS)
def test_a_backend_has_its_own_tasks_only() -> None:
    periodic(every(minutes=5))(tasks.attempt)  # needs no argument for its context
    periodic(every(minutes=5))(tasks.attempt.using(backend="other"))

    assert names() == names("other") == ["tests.tasks.attempt every 5 minutes"]
    assert names("third") == []


@pytest.mark.parametrize(
    ("schedule", "given", "task", "error", "said"),
    [
        (FIVE, {}, tasks.not_a_task, TypeError, "not_a_task"),
        (FIVE, {}, tasks.aecho.func, TypeError, "aecho"),
        (tasks.echo, {}, tasks.echo, TypeError, "schedule"),
        ("0 3 * * *", {}, tasks.echo, TypeError, "schedule"),
        (every, {}, tasks.echo, TypeError, "schedule"),
        (FIVE, {"missed": "twice"}, tasks.echo, ValueError, "once, skip, all"),
        (FIVE, {"args": "abc"}, tasks.echo, TypeError, "a list and a dict"),
        (FIVE, {"kwargs": ["a"]}, tasks.echo, TypeError, "a list and a dict"),
        (FIVE, {"args": [object()]}, tasks.echo, NotSerializable, "object"),
        (FIVE, {}, tasks.note, TypeError, NOTE),
        (FIVE, {"args": [1, 2]}, tasks.note, TypeError, NOTE),
        (FIVE, {"kwargs": {"other": 1}}, tasks.note, TypeError, NOTE),
    ],
)
def test_a_wrong_call_is_refused(
    schedule: Any, given: dict[str, Any], task: Any, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        periodic(schedule, **given)(task)

    assert declared() == []


WHOLE = """
from components.kit.compat import task
from components.services.queues import every, periodic

@periodic(every(minutes=5))
@task
def sweep():
    pass
"""


def test_an_app_that_cannot_be_imported_is_named_and_stops_no_other(
    app: App, caplog: pytest.LogCaptureFixture
) -> None:
    app("broken", "raise RuntimeError('no such thing')")
    app("whole", WHOLE)

    with caplog.at_level(logging.ERROR, "components.kit.declarations"):
        found = [names(), names()]

    assert found == [["whole.tasks.sweep every 5 minutes"]] * 2
    [record] = caplog.records
    assert "broken.tasks" in record.message
    assert record.exc_info is not None
    finding = next(iter(examine()))
    assert (finding.id, "broken.tasks" in finding.msg) == ("components.E120", True)


@pytest.mark.parametrize(
    ("source", "declares"),
    [
        (WHOLE, True),
        ("from components.services import queues\nqueues.periodic(queues.every(minutes=5))(f)", True),
        ("from components.services.rows.models import CachedRows\nrows = CachedRows(A)", True),
        ("from django.tasks.signals import task_finished\n@receiver([task_finished])\ndef f(): ...", True),
        ("from components.services.queues import periodic\ndef f():\n    periodic(every(hours=1))(g)", False),
        ("from other import app\n@app.periodic(cron='* * * * *')\ndef f(): ...", False),
    ],
)
def test_declarations_that_nothing_imports_are_found_in_their_source(
    app: App, caplog: pytest.LogCaptureFixture, source: str, declares: bool
) -> None:
    app("whole", WHOLE, jobs=source, test_jobs=source)

    found = [each for each in unknown() if "whole" in each]

    assert [Path(each).name for each in found] == ["jobs.py"] * declares
    assert [each in caplog.text for each in found] == [True] * declares


def test_what_this_process_has_imported_is_known_to_workers_if_they_import_it(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = "from tests.settings import *\nINSTALLED_APPS.append('whole')"
    app("whole", "from whole import jobs", jobs=WHOLE, views=WHOLE, settings=settings)
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "whole.settings")
    monkeypatch.setitem(sys.modules, "a.management.commands.check", sys)
    for each in ("jobs", "views"):
        import_module(f"whole.{each}")

    assert [Path(each).name for each in unknown() if "whole" in each] == ["views.py"]


MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
#: By an hour, by half an hour, at midnight, a whole day once (2011), and never.
ZONES = (
    "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "Pacific/Apia", "America/Sao_Paulo",
    "Asia/Kathmandu", "UTC",
)  # fmt: skip
#: Shortly before clocks were changed somewhere of these.
CHANGES = [
    *map(datetime.fromisoformat, ["2026-03-29T00:30", "2026-10-25T00:30", "2026-03-08T06:30", "2026-11-01T05:30"]),
    *map(datetime.fromisoformat, ["2026-04-04T14:40", "2026-10-03T15:10", "2026-04-23T21:30", "2026-10-29T20:30"]),
    *map(datetime.fromisoformat, ["2011-12-30T09:30", "2018-02-18T01:30", "2018-11-04T02:30"]),
]  # fmt: skip
some = settings(max_examples=40)
few = settings(max_examples=8)
zones = st.sampled_from(ZONES)
near_changes = st.builds(
    lambda change, minutes: change + timedelta(minutes=minutes),
    st.sampled_from(CHANGES),
    st.floats(-200, 200),
)
instants = (st.datetimes(datetime(1975, 1, 1), datetime(2150, 1, 1)) | near_changes).map(
    lambda naive: naive.replace(tzinfo=UTC)
)


@dataclass(frozen=True)
class Field:
    """A field of a cron expression, and what fits it."""

    text: str
    numbers: frozenset[int]


def fields(least: int, most: int) -> st.SearchStrategy[Field]:
    every_number = frozenset(range(least, most + 1))
    steps = st.integers(1, most).map(lambda step: Field(f"*/{step}", frozenset(range(least, most + 1, step))))
    lists = st.frozensets(st.integers(least, most), min_size=1, max_size=4).map(
        lambda numbers: Field(",".join(map(str, sorted(numbers))), numbers)
    )
    ranges = st.tuples(st.integers(least, most), st.integers(least, most)).map(
        lambda ends: Field(f"{min(ends)}-{max(ends)}", frozenset(range(min(ends), max(ends) + 1)))
    )
    return st.just(Field("*", every_number)) | steps | lists | ranges


minutes, hours, weekdays = fields(0, 59), fields(0, 23), fields(0, 6)
expressions = st.builds(
    lambda minute, hour, weekday: f"{minute.text} {hour.text} * * {weekday.text}", minutes, hours, weekdays
)
intervals = st.timedeltas(timedelta(seconds=1), timedelta(days=366)).map(
    lambda interval: every(seconds=interval.total_seconds())
)
schedules = st.builds(lambda expression, zone: cron(expression, tz=zone), expressions, zones) | intervals


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type, misc]


def walls(schedule: Schedule, after: datetime, count: int, zone: str = "Europe/Berlin") -> list[str]:
    """The next ticks, as a clock on the wall shows them, with their offsets from UTC."""
    ticks = islice(schedule.between(after, datetime.max.replace(tzinfo=UTC)), count)
    return [f"{tick.astimezone(ZoneInfo(zone)):%d %H:%M %z}" for tick in ticks]


@pytest.mark.parametrize(
    ("expression", "same"),
    [
        ("5-5/2 * * * *", "5 * * * *"),
        ("05-5/2 * * * *", "5 * * * *"),
        ("0 3-3/6 * * *", "0 3 * * *"),
        ("0 0 31-31/2 * *", "0 0 31 * *"),
        ("0 0 1 FEB-FEB/3 *", "0 0 1 2 *"),
        ("0 0 1 FEB-2/3 *", "0 0 1 2 *"),
        ("0 0 * * MON-MON/2", "0 0 * * 1"),
        ("0 0 * * 7-7/2", "0 0 * * 0"),
        ("1,5-5/2,10-14/2 * * * *", "1,5,10,12,14 * * * *"),
        ("50/4 * * * *", "50,54,58 * * * *"),
        ("0-59/30 * * * *", "0,30 * * * *"),
    ],
)
def test_a_step_does_not_leave_its_range(expression: str, same: str) -> None:
    stepped, plain = (walls(cron(text, tz="UTC"), utc(2026, 1, 1), 30) for text in (expression, same))

    assert stepped == plain


@pytest.mark.parametrize(
    ("days", "weekdays", "fits"),
    [
        ("13", "FRI", lambda day: day.day == 13 or day.weekday() == 4),
        ("1-7", "MON", lambda day: day.day <= 7 or day.weekday() == 0),
        ("L", "5L", lambda day: (day + DAY).day == 1 or (day.weekday() == 4 and (day + 7 * DAY).day <= 7)),
        ("*/2", "MON", lambda day: day.day % 2 == 1 and day.weekday() == 0),
        ("13", "*/2", lambda day: day.day == 13 and (day.weekday() + 1) % 7 % 2 == 0),
        ("*", "MON", lambda day: day.weekday() == 0),
        ("13", "*", lambda day: day.day == 13),
    ],
)
def test_one_day_field_is_enough_without_a_star(
    days: str, weekdays: str, fits: Callable[[datetime], bool]
) -> None:
    first, last = utc(2026, 1, 1), utc(2027, 12, 31)

    ticks = list(cron(f"0 0 {days} * {weekdays}", tz="UTC").between(first, last))

    assert ticks == [day for number in range(1, 730) if fits(day := first + number * DAY)]


@some
@given(schedules, instants, st.floats(0, 1, exclude_max=True), st.timedeltas(timedelta(), 3 * DAY))
def test_ticks_are_the_same_from_wherever_one_looks(
    schedule: Schedule, instant: datetime, part: float, span: timedelta
) -> None:
    first = schedule.next_after(instant)
    second = schedule.next_after(first)
    assert instant < first < second
    assert first.tzinfo is UTC

    between = min(instant + (first - instant) * part, first - timedelta(microseconds=1))
    assert schedule.next_after(between) == first

    until = instant + span
    after = max(instant, until - 300 * (second - instant))
    for count in (1, 7):
        assert schedule.latest(after, until, count) == list(schedule.between(after, until))[-count:]


def test_the_latest_tick_of_a_year_without_workers_is_found_at_once() -> None:
    until = utc(2026, 7, 1)

    assert every(seconds=1).latest(utc(2025, 1, 1), until) == [until]
    assert cron("* * * * *", tz="UTC").latest(utc(2025, 1, 1), until) == [until]
    assert cron("0 0 1 1 *", tz="UTC").latest(utc(2025, 6, 1), until) == [utc(2026, 1, 1)]


@some
@given(intervals, instants)
def test_intervals_are_counted_from_the_epoch(schedule: Any, instant: datetime) -> None:
    tick = schedule.next_after(instant)

    assert (tick - utc(1970, 1, 1)) % schedule.interval == timedelta()
    assert timedelta() < tick - instant <= schedule.interval


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        ({}, "from one second"),
        ({"seconds": 0.999999}, "from one second"),
        ({"days": 366, "seconds": 1}, "366 days"),
        ({"days": 1e300}, "366 days"),
        ({"minutes": -5, "hours": 1}, "minutes=-5"),
        ({"seconds": float("nan")}, "seconds=nan"),
        ({"minutes": "5"}, "minutes='5'"),
        ({"minutes": True}, "minutes=True"),
    ],
)
def test_an_invalid_interval_is_refused(given_: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidValue, match=said):
        every(**given_)


@few
@example(Field("30", frozenset({30})), Field("2", frozenset({2})), "Europe/Berlin", utc(2026, 3, 28, 22))
@example(Field("30", frozenset({30})), Field("2", frozenset({2})), "Europe/Berlin", utc(2026, 10, 25, 1, 10))
@example(
    Field("*/20", frozenset({0, 20, 40})), Field("1-3", frozenset({1, 2, 3})), ZONES[0], utc(2026, 10, 25)
)
@example(Field("30", frozenset({30})), Field("*", frozenset(range(24))), ZONES[0], utc(2026, 3, 29))
@example(Field("30", frozenset({30})), Field("*", frozenset(range(24))), ZONES[0], utc(2026, 10, 25))
@given(minutes, hours, zones, instants)
def test_ticks_are_those_found_by_trying_minute_by_minute(
    minute: Field, hour: Field, zone: str, instant: datetime
) -> None:
    instant = instant.replace(second=0, microsecond=0)
    schedule = cron(f"{minute.text} {hour.text} * * *", tz=zone)
    until = instant + 30 * 60 * MINUTE

    assert list(schedule.between(instant, until)) == list(_tried(minute, hour, zone, instant, until))


def _tried(minute: Field, hour: Field, zone: str, after: datetime, until: datetime) -> Iterator[datetime]:
    """By the book: each minute of the wall's clock is seen, first seen or leapt over at some minute of UTC."""
    is_fixed = not minute.text.startswith("*") and not hour.text.startswith("*")
    instant, shown = after - 2 * DAY, None
    seen: set[datetime] = set()
    while instant <= until:
        wall = instant.astimezone(ZoneInfo(zone)).replace(tzinfo=None, fold=0)
        leapt = []
        if is_fixed and shown is not None and wall > shown + MINUTE:
            leapt = [shown + number * MINUTE for number in range(1, (wall - shown) // MINUTE)]
        fits = [
            each
            for each in (*leapt, wall)
            if each.minute in minute.numbers and each.hour in hour.numbers and not (is_fixed and each in seen)
        ]
        if fits and instant > after:
            yield instant
        seen.add(wall)
        instant, shown = instant + MINUTE, max(wall, shown or wall)


@pytest.mark.parametrize(
    ("expression", "ticks"),
    [
        ("0 0 29 2 *", [utc(2028, 2, 29), utc(2032, 2, 29)]),
        ("59 23 31 12 *", [utc(2025, 12, 31, 23, 59), utc(2026, 12, 31, 23, 59)]),
        ("0 0 L * *", [utc(2026, 1, 31), utc(2026, 2, 28), utc(2026, 3, 31)]),
        ("15 10 * * MON-fri", [utc(2026, 1, 1, 10, 15), utc(2026, 1, 2, 10, 15), utc(2026, 1, 5, 10, 15)]),
        ("0 12 1 jan *", [utc(2026, 1, 1, 12), utc(2027, 1, 1, 12)]),
        (
            "0 22-1/2,12 * * ?",
            [utc(2026, 1, 1, 0), utc(2026, 1, 1, 12), utc(2026, 1, 1, 22), utc(2026, 1, 2, 0)],
        ),
        ("0 0 * * 7-1", [utc(2026, 1, 4), utc(2026, 1, 5), utc(2026, 1, 11)]),
        ("0 0 * * 7-0,Wednesday", [utc(2026, 1, 4), utc(2026, 1, 7), utc(2026, 1, 11)]),
        ("*/030 * 1 nov-jan *", [utc(2026, 1, 1), utc(2026, 1, 1, 0, 30)]),
        ("0 0 ? * fri-sun", [utc(2026, 1, 2), utc(2026, 1, 3), utc(2026, 1, 4), utc(2026, 1, 9)]),
        ("@Weekly", [utc(2026, 1, 4), utc(2026, 1, 11)]),
        ("*/60 * * * *", [utc(2026, 1, 1, 0), utc(2026, 1, 1, 1)]),
    ],
)
def test_days_and_names_mean_what_they_mean_to_cron(expression: str, ticks: list[datetime]) -> None:
    found = cron(expression, tz="UTC").between(utc(2025, 12, 31, 23), utc(2040, 1, 1))

    assert list(islice(found, len(ticks))) == ticks


def test_equal_schedules_are_equal_however_they_are_written() -> None:
    assert cron("0 3 * May,January Friday", tz="UTC") == cron("0 3 * MAY,JAN FRI", tz="UTC")
    assert cron(" 0  3 * * mon", tz="UTC") == cron("0 3 * * MON", tz=ZoneInfo("UTC"))
    assert str(cron("5-5/2 * * * *", tz="UTC")) == "5-5/2 * * * * (UTC)"
    assert hash(every(minutes=60)) == hash(every(hours=1))
    assert str(every(minutes=90)) == str(every(hours=1.5)) == "every 1 hour 30 minutes"
    assert str(every(days=7, seconds=1)) == "every 7 days 1 second"
    with override_settings(TIME_ZONE="Asia/Kathmandu"):
        schedule = cron("0 3 * * *")
    assert str(schedule) == "0 3 * * * (Asia/Kathmandu)"
    assert schedule.next_after(utc(2026, 1, 1)) == utc(2026, 1, 1, 21, 15)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        *(
            (f"{each} * * * *", "its minute is")
            for each in ("60", "60-1", "*/0", "9" * 5000, "5-4/X", "5-4/-1", "5-5/X", "?")
        ),
        ("5-5/0 * * * *", "its minute is '5-5/0'"),  # where a step would change nothing
        ("* 24 * * *", "its hour is '24'"),
        ("* * 0 * *", "its day of the month is '0'"),
        ("* * * 13 *", "its month is '13'"),
        ("* * * * 8", "its day of the week is '8'"),
        ("", "0 fields"),
        ("@reboot", "1 field"),
        ("0 * * * * *", r"every\(seconds"),
        ("0 3 * * * Europe/Berlin", "tz="),
        *(
            (each, "has the step")
            for each in ("*/90 * * * *", "0 */25 * * *", "0 0 */32 * *", "0 0 * * 1-5/8")
        ),
        ("0 0 31 2 *", "no such day"),
        ("0 0 30-31/1 2-2/3 *", "no such day"),
        ("* * */20 * 1L", "never ticks"),
        ("*/10 2 * 3 0L", "never ticks in Europe/Berlin"),  # the hour that is always leapt over
    ],
)
def test_an_expression_that_cannot_be_read_is_refused_with_the_field(expression: str, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        cron(expression, tz="Europe/Berlin")
    for zone in ("Europe/Nowhere", "Europe", "", "/etc/localtime", "../UTC", "\0"):
        with pytest.raises(InvalidValue, match="There is no time zone"):
            cron("0 3 * * *", tz=zone)
