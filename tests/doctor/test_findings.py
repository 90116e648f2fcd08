"""What the doctor finds on a running site, each by its id; and nothing else."""

from __future__ import annotations

import json
import time
from io import StringIO
from pathlib import Path

import pytest
from django.core.checks import CheckMessage
from django.core.management import call_command
from django.db import OperationalError
from django.db.migrations.recorder import MigrationRecorder
from django.test.utils import override_settings
from redis import Redis
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    ConnectionError,
    InvalidResponse,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
    TimeoutError,
)

from components.doctor import diagnose, migrations, server
from components.embedded import EmbeddedServer, socket_url
from components.exceptions import RedisUnavailable
from components.kit import keyspace
from components.kit.errors import translated
from components.kit.rights import USERS
from components.services.logs import note_job
from components.services.logs.worker_info import WorkerRecord, tell
from components.services.queues import Consumer, TaskQueue, Ticks
from components.services.queues.keys import QueueKeys
from components.services.rows import RowCache, Shape
from components.services.rows.keys import RowKeys
from components.services.rows.loader import Loader
from components.testing import ClusterServer, redis_at
from tests.kit.services.test_servers import configured
from tests.queues.admin.periodic import HOURLY, declare_only
from tests.support.logs import fill, joined, let_leases_pass, stream
from tests.support.queues import ECHO
from tests.support.restricted import add_user, as_user
from tests.support.waiting import eventually

#: What all tests have: one alias for all, the demo's embedded server, models with odd fields, a server that keeps
#: nothing, and that says its name.
USUAL = {"W004", "W005", "W006", "W103", "I100"}


def findings() -> dict[str, CheckMessage]:
    """The findings by their ids, but for those that every test has."""
    found = {str(message.id).removeprefix("components."): message for message in diagnose()}
    return {id: message for id, message in found.items() if id not in USUAL}


def worker(*queues: str) -> Consumer:
    """A worker that lives."""
    consumer = Consumer()
    consumer.renew(queues or ["*"])
    return consumer


def run(*arguments: str) -> tuple[str, int]:
    """What the command says, and its exit code."""
    out, code = StringIO(), 0
    try:
        call_command("doctor", *arguments, stdout=out)
    except SystemExit as end:
        code = int(str(end.code))
    return out.getvalue(), code


def test_a_site_that_is_well_hears_nothing(redis: Redis) -> None:
    worker()

    assert findings() == {}
    assert [key for key in redis.scan_iter() if b"queues" not in key and redis.ttl(key) == -1] == []


# The command


def test_the_command_tells_the_remedy_of_each_finding(redis: Redis) -> None:
    said, code = run()

    assert code == 1
    assert "WARNING components.W113: No worker runs for TASKS['default']" in said
    assert "    Run `manage.py runworker --backend default`." in said


def test_its_json_has_the_same(redis: Redis) -> None:
    TaskQueue().push(ECHO)
    said, code = run("--json")

    found = json.loads(said)
    assert found["format"] == 1
    assert code == 2
    assert [set(each) for each in found["findings"]] == [{"id", "level", "message", "remedy"}] * len(
        found["findings"]
    )
    assert (found["findings"][0]["id"], found["findings"][0]["level"]) == ("components.E112", "error")
    assert all(each["remedy"] for each in found["findings"] if each["level"] != "info")


def test_a_finding_can_be_silenced_as_checks_are(redis: Redis) -> None:
    silenced = [f"components.{id}" for id in (*USUAL, "W113")]
    with override_settings(SILENCED_SYSTEM_CHECKS=silenced):
        assert run() == ("Nothing is wrong.\n", 0)


# The server


def test_eviction_is_a_finding(redis: Redis) -> None:
    with configured(redis, **{"maxmemory": "1gb", "maxmemory-policy": "allkeys-lru"}):
        assert any("maxmemory-policy is allkeys-lru" in each.msg for each in diagnose())


@pytest.mark.parametrize(("limit", "id"), [(0.5, "E106"), (1.05, "W106")])
def test_a_server_without_room_is_a_finding(redis: Redis, limit: float, id: str) -> None:
    worker()
    with configured(redis, maxmemory=str(round(redis.info("memory")["used_memory"] * limit))):
        found = findings()

    assert found.keys() - {"E101"} == {id}  # and it refuses
    assert "that maxmemory allows" in found[id].msg


def test_a_replica_is_a_finding(redis: Redis) -> None:
    worker()
    redis.replicaof("127.0.0.1", "1")
    try:
        assert "is a read-only replica of 127.0.0.1:1" in findings()["E104"].msg
    finally:
        redis.replicaof("NO", "ONE")


def test_a_slow_server_is_a_finding(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    worker()
    monkeypatch.setattr(server, "_SLOW", 0.0)

    assert "for a round trip" in findings()["W107"].msg


def test_a_clock_that_is_wrong_is_a_finding(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    worker()
    monkeypatch.setattr(server, "_WRONG_BY", -1.0)

    assert "so tasks run too" in findings()["W108"].msg


def test_a_server_that_does_not_permit_info_is_a_finding(redis: Redis, redis_server: EmbeddedServer) -> None:
    worker()
    redis.execute_command("ACL SETUSER", "shop", "on", ">secret", "~*", "&*", "+@all", "-info")
    with redis_at(f"{redis_server.url}?username=shop&password=secret"):
        assert findings().keys() == {"W102"}


def test_the_rights_that_services_lack_are_named(redis: Redis, redis_server: EmbeddedServer) -> None:
    worker()
    rules = ["~components:[a-km-z]*", "~components:locks:*", "&*", "+@all", "-zpopmin", "-pfadd", "-xadd"]
    redis.execute_command("ACL SETUSER", "shop", "reset", "on", ">secret", *rules)
    with redis_at(f"{redis_server.url}?username=shop&password=secret"):
        found = findings()

    assert "The user 'shop' of CACHES['default'] lacks rights" in found["W118"].msg
    assert found["W118"].msg.endswith(": +xadd +zpopmin ~components:logs:*.")  # nothing needs PFADD


@pytest.mark.parametrize("user", USERS)
def test_a_user_of_least_right_lacks_nothing_that_its_processes_need(
    redis: Redis, redis_server: EmbeddedServer, user: str
) -> None:
    worker()
    add_user(redis, user)
    with redis_at(as_user(redis_server.url, user)):
        assert [str(each) for id, each in findings().items() if id != "I119"] == []

    redis.execute_command("ACL SETUSER", user, "-zadd")
    with redis_at(as_user(redis_server.url, user)):
        assert f"`manage.py acl --commands {user}`" in str(findings()["W118"].hint)


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (ConnectionError("Error 111 connecting to db:6379. Connection refused."), "No server listens there"),
        (
            ConnectionError("Error -2 connecting to db:6379. Name or service not known."),
            "No host of that name",
        ),
        (TimeoutError("Timeout reading from socket"), "a firewall drops"),
        (AuthenticationError("invalid username-password pair or user is disabled."), "Put both into"),
        (ConnectionError("Error 1 connecting to db:6379. [SSL: WRONG_VERSION_NUMBER]"), "rediss://"),
        (InvalidResponse("Protocol Error: b'HTTP/1.1 400 Bad Request'"), "the port of another service"),
        (OutOfMemoryError("command not allowed when used memory > 'maxmemory'."), "Raise maxmemory"),
        (ReadOnlyError("You can't write against a read only replica."), "service name of Sentinels"),
        (BusyLoadingError("Redis is loading the dataset in memory"), "Wait until"),
        (ResponseError("MISCONF Redis is configured to save RDB snapshots"), "Make room on its disk"),
        (ResponseError("unknown command 'LMOVE', with args beginning with: 'a'"), "Install a newer server"),
        (NoPermissionError("this user has no permissions to run the 'xadd' command"), "manage.py acl"),
        (ResponseError("DB index is out of range"), "Correct the number at the end"),
        (ConnectionError("something else"), "Look into the log"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value,
)
def test_each_reason_why_redis_cannot_be_used_has_its_remedy(error: Exception, remedy: str) -> None:
    away = translated(error)

    assert isinstance(away, RedisUnavailable)
    assert remedy in str(server.unusable(away).hint)


def test_the_embedded_server_that_does_not_run_is_started_by_runall(tmp_path: Path) -> None:
    url = socket_url(tmp_path)
    with override_settings(COMPONENTS={"EMBEDDED": tmp_path}), redis_at(url):
        assert "Start `manage.py runall`" in str(findings()["E101"].hint)


def test_a_server_that_cannot_save_is_a_finding(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    (gone := tmp_path / "gone").mkdir()
    program = request.config.getoption("--redis-server")
    options = {"dir": str(gone)}
    with (
        EmbeddedServer(tmp_path, server=program, appendonly=False, options=options) as server,
        redis_at(server.url) as client,
    ):
        worker()
        gone.rmdir()
        client.bgsave()
        assert eventually(lambda: client.info("persistence")["rdb_last_bgsave_status"] == "err")
        assert "(rdb_last_bgsave_status is err)" in findings()["E105"].msg


@pytest.mark.parametrize("is_known", [True, False])
def test_a_cluster_needs_a_client_for_clusters(
    redis_cluster: Redis, redis_cluster_server: ClusterServer, is_known: bool
) -> None:
    worker()
    if is_known:
        assert findings() == {}
    else:
        with redis_at(redis_cluster_server.url):
            assert "ClusterClient" in str(findings()["E108"].hint)


def test_slots_that_nobody_serves_are_a_finding(redis_cluster_server: ClusterServer) -> None:
    with (
        Redis.from_url(redis_cluster_server.url) as node,
        redis_at(redis_cluster_server.url, CLIENT_CLASS="components.cache.ClusterClient"),
    ):
        worker()
        node.execute_command("CLUSTER DELSLOTS", 7)
        try:
            assert "slots are served" in findings()["E107"].msg
        finally:
            node.execute_command("CLUSTER ADDSLOTS", 7)


# The database


def test_migrations_that_are_not_applied_are_a_finding(redis: Redis) -> None:
    worker()
    MigrationRecorder.Migration.objects.filter(app="components").delete()

    assert "(0001_squashed_0010_overview)" in findings()["E110"].msg


def test_a_database_that_does_not_answer_is_a_finding(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    worker()

    def fails(connection: object) -> None:
        raise OperationalError("unable to open database file")

    monkeypatch.setattr(migrations, "MigrationExecutor", fails)

    assert "does not answer, so migrations were not looked at: unable to open" in findings()["E109"].msg


# Queues


def test_workers_of_another_site_are_a_finding(redis: Redis) -> None:
    with override_settings(SECRET_KEY="of another project"):
        stranger = worker("mail")

    assert f"another project or environment, on {stranger.host}," in findings()["E111"].msg
    with override_settings(SECRET_KEY_FALLBACKS=["of another project"]):
        assert findings() == {}


def test_a_queue_without_a_worker_is_a_finding(redis: Redis) -> None:
    TaskQueue().push(ECHO, queue="mail")
    worker("others")

    found = findings()

    assert found.keys() == {"E112"}
    assert "runworker --backend default -q mail" in str(found["E112"].hint)


def test_a_worker_that_fell_silent_is_a_finding(redis: Redis) -> None:
    lost = worker()
    redis.zadd(QueueKeys("default", "").workers, {lost.id: (time.time() - 3_600) * 1_000})
    worker()

    found = findings()

    assert found.keys() == {"W114"}
    assert lost.id in found["W114"].msg


def test_delayed_tasks_that_are_late_are_a_finding(redis: Redis) -> None:
    worker()
    id = TaskQueue().push(ECHO, delay=60)
    redis.zadd(QueueKeys("default", "default").delayed, {id: 1_000_000})

    assert "the first was due at 1970-01-01 00:00:01 UTC" in findings()["E115"].msg


def test_a_periodic_task_that_is_late_is_a_finding(redis: Redis) -> None:
    worker()
    with declare_only(HOURLY):
        Ticks().look([HOURLY.name])
        redis.zadd(QueueKeys("default", "").periodic, {HOURLY.name: 1_000_000})

        assert HOURLY.name in findings()["E116"].msg


@pytest.mark.parametrize("name", ["tests.tasks.no_such_task", "shop.tasks.of_another_project", "no task"])
def test_a_task_that_this_project_does_not_have_is_a_finding(redis: Redis, name: str) -> None:
    worker()
    TaskQueue().push(name)
    TaskQueue().push(name)

    found = findings()

    assert found.keys() == {"W117"}
    assert repr(name) in found["W117"].msg
    assert "old_name = new_name" in str(found["W117"].hint)


# Rows


def test_rows_of_models_that_are_not_here_are_a_finding(redis: Redis) -> None:
    worker()
    RowCache("shop.gone", Shape([("id", "integer")])).schedule(42, delay=60)

    assert "Rows of 'shop.gone'" in findings()["W121"].msg


def test_rows_that_nobody_loads_are_a_finding(redis: Redis) -> None:
    worker()
    RowCache("db.ware", Shape([("id", "integer")])).schedule(42, delay=60)
    for tag in keyspace.BUCKETS:
        for member in redis.zrange(RowKeys(tag).schedule, 0, -1):
            redis.zadd(RowKeys(tag).schedule, {member: 1_000_000})

    assert "cacherows" in str(findings()["E122"].hint)


def test_rows_that_cannot_be_loaded_are_a_finding(redis: Redis) -> None:
    worker()
    RowCache("db.ware", Shape([("id", "integer")])).schedule(42, delay=60)
    loader = Loader()
    loader.fail(loader.claim().claims, {"db.ware:42": "ValueError"})

    assert "Of the cached rows of 'db.ware', 1 could not be loaded" in findings()["W123"].msg


# Logs


def test_chunks_that_are_counted_too_late_are_a_finding(redis: Redis) -> None:
    worker()
    aggregation = joined(lease=1)
    note_job("default")
    fill(stream(), 1)
    tell("default", aggregation.consumer().id, WorkerRecord(host="here"))
    consumer = aggregation.consumer()
    consumer.claim()
    tell("default", consumer.id, WorkerRecord(host="here"))

    assert eventually(lambda: "W132" in findings())


def test_chunks_that_were_given_up_are_a_finding(redis: Redis) -> None:
    worker()
    aggregation = joined(tries=1)
    note_job("default")
    fill(stream(), 1)
    aggregation.consumer().claim()
    let_leases_pass(redis, aggregation)
    aggregation.consumer().claim()

    assert "could not count were given up (1)" in findings()["W133"].msg


def test_chunks_that_nobody_counts_are_a_finding(redis: Redis) -> None:
    worker()
    aggregation = joined()
    note_job("default")
    fill(stream(), 2)

    assert "the aggregation 'geo' of the job 'default'" in findings()["E131"].msg

    consumer = aggregation.consumer()
    consumer.claim()
    tell("default", consumer.id, WorkerRecord(host="here"))
    assert findings() == {}
