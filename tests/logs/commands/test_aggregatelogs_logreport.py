"""`manage.py aggregatelogs` and `manage.py logreport`: what they say and do, and what is wrong with options."""

import csv
import json
import signal
from datetime import UTC, date, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from redis import Redis

from components.embedded import EmbeddedServer
from components.services.geo.table import _warn
from components.services.logs import Aggregation, list_jobs
from components.services.logs.keys import JobKeys
from components.services.logs.lines import Book, JsonLines, LineReader, Pattern
from components.services.logs.traffic import Traffic
from components.services.logs.traffic.place_counter import PlaceCounter
from components.services.logs.worker.options import make_worker
from components.testing import redis_at
from tests.commands.processes import Command
from tests.support.counting_logs import LINES, TABLES, hand_out, import_places_into
from tests.support.geo import city, import_networks
from tests.support.logs import FILE, stream
from tests.support.traffic import add, count
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("redis")


class Nothing:
    """No callback: it lacks flush()."""

    def block(self, columns: Any) -> None: ...


NOTHING = f"{__name__}.Nothing"


@pytest.mark.slow
def test_it_counts_until_it_is_told_to_stop(server: EmbeddedServer, tmp_path: Path) -> None:
    pulse = tmp_path / "pulse"
    with redis_at(server.url):
        import_places_into(tmp_path)
        hand_out(LINES)
        with Command(server.url, "aggregatelogs", "--heartbeat-file", str(pulse)) as daemon:
            assert eventually(lambda: stream().status().chunks == 0)
            [info] = Aggregation("places").workers()
            assert info.record
            assert pulse.exists()
            daemon.signal(signal.SIGTERM)

            assert daemon.exit_code() == 0
        assert {name: Aggregation("places").table(name) for name in TABLES} == TABLES
        assert Traffic().totals() == {"lines": 6, "counted": 6}
        assert Aggregation("places").workers() == []
        assert list_jobs() == ["default"]
    assert "INFO Logs of job 'default' for 'places'" in daemon.output
    assert "Traceback" not in daemon.output
    assert not pulse.exists()


def test_days_that_are_not_kept_are_removed(redis: Redis, tmp_path: Path) -> None:
    """With what was counted of them; and their lines are late from then on."""
    import_places_into(tmp_path)
    today = datetime.fromtimestamp(redis.time()[0], UTC).date()
    days = [today - timedelta(age) for age in (0, 1, 6, 9, 400)]
    hand_out(b"".join(b"1.2.3.4 %s x\n" % str(day).encode() for day in days))

    def call(*options: str) -> None:
        with pytest.raises(SystemExit):
            call_command("aggregatelogs", "--drain", *options)

    call()
    assert [each.day for each in Traffic().days()] == sorted(days)

    call("--keep", "7")

    assert [each.day for each in Traffic().days()] == sorted(days[:3])
    tables = {name.decode().rpartition("table:")[2] for name in redis.keys("*:table:daily:*")}
    assert tables == {f"daily:{level}:{day}" for level in ("country", "region", "city") for day in days[:3]}
    for day, keep, most in ((days[3], "7", "30"), (days[2], "30", "4")):
        redis.hdel(JobKeys("default").files, FILE)
        hand_out(b"1.2.3.4 %s x\n" % str(day).encode())
        call("--keep", keep, "--days", most)  # the fewer of both counts
    assert [each.day for each in Traffic().days()] == sorted(days[:3])
    assert Traffic().totals()["late"] == 2


def test_without_a_table_of_addresses_places_are_unknown_until_there_is_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _warn.cache_clear()
    hand_out(LINES)
    with pytest.raises(SystemExit):
        call_command("aggregatelogs", "--drain")

    assert Aggregation("places").table(f"daily:city:{DAY}") == {"unknown": 6}
    [warning] = [each for each in caplog.messages if "no geo table 'default'" in each]
    assert "importgeoip" in warning
    counter, columns = PlaceCounter(), LineReader(Book()).read(LINES)
    counter.block(columns)
    import_places_into(tmp_path)
    counter._kept._look_at = 0
    counter.block(columns)
    assert counter.flush()[f"daily:country:{DAY}"] == {"unknown": 7, "US": 3, "DE": 2}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--callback", "tests.nowhere.Callback", "--aggregation", "mine"], "tests.nowhere"),
        (["--callback", NOTHING, "--aggregation", "mine"], r"flush\(\)"),
        (["--callback", NOTHING], "--aggregation"),
        (["--aggregation", "mine"], "--callback"),
        (["--callback", NOTHING, "--aggregation", "places"], "'places'"),
        (["--callback", "x.Y", "--aggregation", "mine", "--level", "city"], "--level"),
        (["--callback", NOTHING, "--aggregation", "mine", "--keep", "3"], "--keep"),
        (["--callback", "x.Y", "--aggregation", "mine", "--by", "path"], "--by"),
        (["--table", "mine"], r"no geo table 'mine'.*importgeoip"),
        (["--keep", "0"], "--keep"),
        (["--lease", "0"], "--lease"),
        (["--json-keys", "ip,time"], "--format json"),
        (["--format", "json", "--json-keys", "ip"], "two keys"),
        (["--format", "json", "--json-keys", "ip,time,,path"], "two keys"),
        (["--format", "json", "--pattern", "."], "not allowed"),
        (["--pattern", "(?P<ip>.)"], "time"),
        (["--job", ""], "''"),
        (["--format", "xml"], "'xml'"),
    ],
)
def test_wrong_options_are_refused(options: list[str], said: str) -> None:
    with pytest.raises(CommandError, match=said) as told:
        call_command("aggregatelogs", *options)
    assert told.value.returncode in (1, 2)  # argparse's own errors have 1 where a program calls
    assert list_jobs() == []


def test_formats_are_made_of_options(tmp_path: Path) -> None:
    import_places_into(tmp_path)
    options = {
        "job": "a", "aggregation": None, "lease": 7, "callback": [], "level": None, "table": None, "days": None,
        "keep": None, "drain": False, "format": "json", "pattern": None, "json_keys": "request.ip,at",
        "by": None,
    }  # fmt: skip

    json = make_worker(options)
    pattern = make_worker({**options, "pattern": "(?P<ip>.*) (?P<time>.*)", "json_keys": None})

    assert json.reader.form == JsonLines("request.ip", "at")
    assert json.about == ("json request.ip,at", "city")
    assert make_worker({**options, "by": "path"}).about[1] == "city, by path"
    assert make_worker({**options, "by": ""}).about[1] == "city, by nothing else"
    assert (json.aggregation.lease, json.aggregation.job) == (7, "a")
    assert pattern.reader.form == Pattern("(?P<ip>.*) (?P<time>.*)")


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
