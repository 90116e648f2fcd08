"""Lines by hour, country and status, in any combination: against plain sums."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import date, timedelta
from functools import partial
from http import HTTPStatus
from itertools import product

import pytest

from components.exceptions import InvalidValue
from components.services.logs import PLACES, Aggregation
from components.services.logs.lines import Combined, LineReader
from components.services.logs.traffic import HOURS, Traffic
from components.services.logs.traffic.place_counter import PlaceCounter
from components.services.logs.traffic.slices import STATUSES
from components.services.logs.worker.log_worker import LogWorker
from tests.support.counting_logs import hand_out, import_places_into, worker
from tests.support.traffic import add

DAY = date(2011, 10, 10)
COUNTRIES = {"1.0.0.1": "US", "2.0.0.1": "US", "3.0.0.1": "DE", "9.9.9.9": "unknown"}
#: Hours and what follows the request, with the status that it means.
CLOCKS = ("00:00", "00:59", "13:30", "23:59")
ENDS = {" 200 5": "200", " 404 -": "404", " 418 1": "418", " 499 1": "499", " 433 1": "4xx", " x": ""}

pytestmark = pytest.mark.usefixtures("redis")


def web(address: str, clock: str, end: str, day: date = DAY) -> str:
    return f'{address} - - [{day:%d/%b/%Y}:{clock}:36 +0200] "GET / HTTP/1.1"{end}\n'


def count(text: str) -> None:
    """Count lines as aggregatelogs does."""
    hand_out(text.encode())
    counter = partial(PlaceCounter, kernel="naive")
    LogWorker(Aggregation(PLACES), LineReader(Combined(), kernel="naive"), [counter], drains=True).run()


def test_lines_are_counted_by_hour_country_and_status(tmp_path):
    import_places_into(tmp_path)
    Aggregation(PLACES).join()
    cases = [*product(COUNTRIES, CLOCKS, ENDS), ("1.0.0.1", "13:30", " 404 -")]

    count("".join(web(*case) for case in cases))

    expected = Counter(f"{clock[:2]}/{COUNTRIES[address]}/{ENDS[end]}" for address, clock, end in cases)
    assert Aggregation(PLACES).table("hourly:2011-10-10") == expected
    assert Traffic().days()[0].lines == expected.total() == len(cases)
    answers = Counter(f"{clock[:2]}/{ENDS[end]}" for _address, clock, end in cases)
    assert Aggregation(PLACES).table("answers:2011-10-10") == answers
    assert Traffic().slices(DAY, DAY).by_country == Counter(COUNTRIES[each[0]] for each in cases)


@pytest.mark.parametrize(
    ("by_day_only", "asked"),
    [
        (0, {}),
        (7, {}),
        (0, {"hour": "00"}),
        (0, {"country": "US"}),
        (7, {"country": "US"}),
        (0, {"status": "404"}),
        (7, {"status": "4xx"}),
        (0, {"hour": "13", "country": "US", "status": "404"}),
        (7, {"hour": "13", "country": "US", "status": "404"}),
        (0, {"hour": "05"}),
        (0, {"country": "DE", "status": "2xx"}),
    ],
)
def test_hour_country_and_status_can_be_combined(asked, by_day_only):
    days = [DAY - timedelta(1), DAY]
    members = [*product(["", "00", "13"], ["US", "DE", "unknown"], ["", "200", "404", "418", "4xx"])]
    tables = {
        f"hourly:{day}": {"/".join(each): number * factor for number, each in enumerate(members, 1)}
        for factor, day in enumerate(days, 1)
    }
    in_all = {str(day): sum(tables[f"hourly:{day}"].values()) for day in days}
    sums = defaultdict(Counter)
    for day in days:
        for member, lines in tables[f"hourly:{day}"].items():
            hour, country, status = member.split("/")
            sums[f"answers:{day}"][f"{hour}/{status}"] += lines
            sums[f"daily:country:{day}"][country] += lines
    sums[f"daily:country:{DAY}"]["US"] += by_day_only
    add({**tables, **sums, "days": {**in_all, str(DAY): in_all[str(DAY)] + by_day_only}})

    found = Traffic().slices(days[0], days[1], **asked)

    def fits(hour, country, status):
        wanted = asked.get("status", "")
        is_status = status.startswith("4") if wanted == "4xx" else wanted in ("", status)
        is_status = is_status if wanted != "2xx" else status.startswith("2")
        return asked.get("hour", "") in ("", hour) and asked.get("country", "") in ("", country) and is_status

    sums = [Counter(), Counter(), Counter()]
    for day in days:
        for member, lines in tables[f"hourly:{day}"].items():
            if fits(*(parts := member.split("/"))):
                for counter, part in zip(sums, parts, strict=True):
                    counter[part] += lines
    assert [found.by_hour, found.by_country, found.by_status] == sums
    assert {found.total, sum(found.by_day)} == {each.total() for each in sums}
    assert found.without_hours == by_day_only


def test_a_time_that_is_missing_or_no_time_has_no_hour(tmp_path):
    import_places_into(tmp_path)
    Aggregation(PLACES).join()
    hand_out(b"1.0.0.1 2011-10-10\n1.0.0.1 2011-10-10 soon\n1.0.0.1 2011-10-10 07:00:00 x\n")
    worker().run()

    assert Traffic().slices(DAY, DAY).by_hour == {"": 2, "07": 1}


def test_members_of_another_form_are_left_out():
    add({f"hourly:{DAY}": {"00/US/200": 1, "00/US": 5, "x": 5, "a/b/c/d": 5}, "days": {str(DAY): 1}})

    assert Traffic().slices(DAY, DAY).total == 1


@pytest.mark.parametrize(
    ("asked", "of"),
    [
        ({"hour": "24"}, "'24'"),
        ({"hour": "7"}, "'7'"),
        ({"status": "4"}, "'4'"),
        ({"status": "600"}, "'600'"),
        ({"first": DAY - timedelta(92)}, "93 days"),
        ({"first": DAY + timedelta(1)}, "2011-10-11 to 2011-10-10"),
    ],
)
def test_an_invalid_question_is_refused(asked, of):
    with pytest.raises(InvalidValue, match=of):
        Traffic().slices(**{"first": DAY, "last": DAY, **asked})


def test_forgotten_days_take_their_hours_with_them():
    add({"days": {str(DAY): 1, "2011-10-11": 1}})
    add({f"hourly:{day}": {"00/US/200": 1} for day in (DAY, "2011-10-11")})
    add({f"answers:{day}": {"00/200": 1} for day in (DAY, "2011-10-11")})

    Traffic().forget(before=DAY + timedelta(1))

    assert Aggregation(PLACES).table(f"answers:{DAY}") == {}
    assert Aggregation(PLACES).table("answers:2011-10-11") == {"00/200": 1}
    assert Traffic().slices(DAY, DAY + timedelta(1)).by_day == (0, 1)
    assert HOURS[0] in Traffic().slices(DAY, DAY + timedelta(1)).by_hour


def test_each_status_that_is_in_use_is_told_apart():
    assert {str(each.value) for each in HTTPStatus} <= {*STATUSES}
