"""logreport, as somebody at a terminal or a program uses it."""

from __future__ import annotations

import csv
import json
from datetime import date, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from redis import Redis

from tests.support.geo import city, import_networks
from tests.support.traffic import add, count

pytestmark = pytest.mark.usefixtures("redis")

DAY = date(2011, 10, 10)
EARLIER = DAY - timedelta(7)


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("logreport", *arguments, stdout=out)
    return out.getvalue()


def document(*arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run("--json", *arguments))
    return found


def sheet(*arguments: str) -> list[list[str]]:
    return list(csv.reader(StringIO(run("--csv", *arguments))))


@pytest.fixture
def counted(redis: Redis, tmp_path: Path) -> None:
    """Two weeks, with names for the United States."""
    import_networks(tmp_path, {"1.0.0.0/8": city("US", "CA", "Palo Alto")})
    count({DAY: {"US/CA/Palo Alto": 1_500, "US/NY": 250, "DE": 250}, DAY - timedelta(6): {"DE": 1_000}})
    count({EARLIER: {"US": 500, "DE": 2_500}})
    add({"totals:places": {"lines": 6_010, "counted": 6_000, "late": 3, "address": 7, "empty": 0}})


@pytest.mark.usefixtures("counted")
def test_it_is_a_table_for_people() -> None:
    lines = run().splitlines()

    assert lines == [
        "Lines by country, 2011-10-04 to 2011-10-10 (7 days): 3,000; in as many days before: 3,000 (+0.0%)",
        "",
        "  place  name  lines  share   growth",
        "  US     us    1,750  58.3%  +250.0%",
        "  DE     DE    1,250  41.7%   -50.0%",
        "",
        "6,000 of 6,010 lines ever read were counted; rejected: 7 address, 3 late.",
    ]

    lines = run("--level", "city", "--within", "US", "--days", "1", "--top", "1").splitlines()
    assert lines[:5] == [  # others are one line
        "Lines by city of us, 2011-10-10: 1,750; in as many days before: 0 (-)",
        "",
        "  place            name               lines  share  growth",
        "  US/CA/Palo Alto  Palo Alto, ca, us  1,500  85.7%       -",
        "  -                1 more               250  14.3%       -",
    ]


@pytest.mark.usefixtures("counted")
def test_it_is_json_for_programs() -> None:
    found = document("--level", "region", "--days", "2", "--top", "2")

    about, report = found.pop("report"), {"before": 0, "growth": None}
    totals = {"lines": 6_010, "counted": 6_000, "late": 3, "address": 7, "empty": 0}
    assert found == {"format": 1, "job": "default", "totals": totals}
    (first, second), others = about.pop("rows"), about.pop("others")
    days = ["2011-10-09", "2011-10-10"]
    period = {"level": "region", "within": "", "first": days[0], "last": days[1], "days": days}
    assert about == report | period | {"lines": 2_000, "by_day": [0, 2_000]}
    place = {"id": "US/CA", "name": "ca, us", "share": 0.75, "lines": 1_500}
    assert first == report | place | {"by_day": [0, 1_500]}
    assert second == report | {"id": "DE", "name": "DE", "share": 0.125, "lines": 250, "by_day": [0, 250]}
    assert others == report | {"places": 1, "share": 0.125, "lines": 250, "by_day": [0, 250]}


@pytest.mark.usefixtures("counted")
def test_it_is_csv_for_spreadsheets() -> None:
    assert sheet("--from", "2011-10-04", "--to", "2011-10-10", "--top", "1") == [
        ["place", "name", "lines", "share", "before", "growth", *(f"2011-10-{n:02}" for n in range(4, 11))],
        ["US", "us", "1750", repr(1_750 / 3_000), "500", "2.5", *["0"] * 6, "1750"],
    ]
    assert sheet("--days", "1")[2] == ["DE", "DE", "250", "0.125", "0", "", "250"]
    # A spreadsheet calculates no place.
    count({DAY: {"=1+1": 400, "\uff1d2": 300, "\n=3": 200}})
    assert {"'=1+1", "'\uff1d2", "'\n=3", "DE"} <= {row[0] for row in sheet("--days", "1")}


@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize(
    ("arguments", "first", "last"),
    [
        (["--days", "1"], "2011-10-10", "2011-10-10"),
        (["--from", "2011-10-09"], "2011-10-09", "2011-10-10"),
        (["--from", "2011-10-12"], "2011-10-12", "2011-10-12"),
        (["--to", "2011-10-08"], "2011-10-02", "2011-10-08"),
        (["--from", "2011-10-01", "--days", "3"], "2011-10-01", "2011-10-03"),
        (["--to", "2011-10-03", "--days", "3"], "2011-10-01", "2011-10-03"),
    ],
)
def test_a_period_goes_by_what_is_said_of_it(arguments: list[str], first: str, last: str) -> None:
    report = document(*arguments)["report"]
    assert (report["first"], report["last"]) == (first, last)


def test_nothing_counted_is_no_error() -> None:
    nothing = {"format": 1, "job": "nightly", "report": None, "totals": {}}
    assert run("--job", "nightly") == "No lines were counted for the job 'nightly'.\n"
    assert document("--job", "nightly") == nothing
    assert sheet() == []
    assert document("--to", "2011-10-10")["report"]["rows"] == []
    assert "  none\n" in run("--to", "2011-10-10")


@pytest.mark.parametrize(
    ("arguments", "say"),
    [
        (["--from", "2011-10-10", "--to", "2011-10-04"], "before it begins"),
        (["--from", "2011-10-04", "--to", "2011-10-10", "--days", "7"], "length"),
        (["--from", "9999-12-30", "--days", "7"], "6 days from 9999-12-30"),
        (["--to", "0001-01-02"], "6 days from 0001-01-02"),
        (["--to", "2011-10-10", "--days", "99999999999"], "99,999,999,998 days"),
        (["--to", "2011-10-10", "--top", "10001"], "10001"),
        (["--job", ""], "''"),
    ],
)
def test_a_wrong_argument_is_two(arguments: list[str], say: str) -> None:
    with pytest.raises(CommandError, match=say) as refused:
        run(*arguments)
    assert refused.value.returncode == 2
