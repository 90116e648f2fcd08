"""`manage.py aggregatelogs`: one as a process, and what is wrong with options."""

from __future__ import annotations

import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from redis import Redis

from components.embedded import EmbeddedServer
from components.services.logs import Aggregation, list_jobs
from components.services.logs.keys import JobKeys
from components.services.logs.lines import JsonLines, Pattern
from components.services.logs.traffic import Traffic
from components.services.logs.worker.options import make_worker
from components.testing import redis_at
from tests.commands.processes import Command
from tests.support.counting_logs import LINES, TABLES, hand_out, import_places_into
from tests.support.logs import FILE, stream
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


def test_without_a_table_of_addresses_it_says_how_to_have_one() -> None:
    with pytest.raises(CommandError, match=r"no geo table 'mine'.*importgeoip") as told:
        call_command("aggregatelogs", "--table", "mine")
    assert told.value.returncode == 2


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
