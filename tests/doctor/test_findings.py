"""
What the doctor finds on a running site, each by its id; and nothing else. What the cards of services, and nodes of
Redis, say is tested where the overview is.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

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

from components.doctor import diagnose, server
from components.embedded import EmbeddedServer, socket_url
from components.exceptions import RedisUnavailable
from components.kit import keyspace
from components.kit.errors import translated
from components.kit.rights import USERS
from components.services.logs import note_job
from components.services.queues import Consumer, TaskQueue
from components.services.queues.keys import QueueKeys
from components.services.rows import RowCache, Shape
from components.services.rows.keys import RowKeys
from components.testing import ClusterServer, redis_at
from tests.support.logs import joined
from tests.support.queues import ECHO
from tests.support.restricted import add_user, as_user

pytestmark = pytest.mark.django_db

#: What all tests have: one alias for all, the demo's embedded server, models with odd fields, a server that keeps
#: nothing, and that says its name.
USUAL = {"W004", "W005", "W006", "W103", "I100"}


def findings() -> dict[str, CheckMessage]:
    """The findings by their ids, but for those that every test has."""
    found = {str(message.id).removeprefix("components."): message for message in diagnose()}
    return {id: message for id, message in found.items() if id not in USUAL}


def worker(*queues: str) -> Consumer:
    consumer = Consumer()
    consumer.renew(queues or ["*"])
    return consumer


def run(*arguments: str) -> tuple[str, int]:
    out, code = StringIO(), 0
    try:
        call_command("doctor", *arguments, stdout=out)
    except SystemExit as end:
        code = int(str(end.code))
    return out.getvalue(), code


def test_a_site_that_is_well_hears_nothing(redis: Redis) -> None:
    worker()

    assert findings() == {}
    assert [
        key
        for key in redis.scan_iter()
        if redis.ttl(key) == -1 and not {b"queues", b"format"} & {*key.split(b":")}
    ] == []


def test_the_command_tells_the_remedy_of_each_finding_also_as_json(redis: Redis) -> None:
    said, code = run()

    assert code == 1
    assert "WARNING components.W113: No worker runs for TASKS['default']" in said
    assert "    Run `manage.py runworker --backend default`." in said

    TaskQueue().push(ECHO)
    said, code = run("--json")
    found = json.loads(said)
    assert (found["format"], code) == (1, 2)
    assert {frozenset(each) for each in found["findings"]} == {
        frozenset(["id", "level", "message", "remedy"])
    }
    assert (found["findings"][0]["id"], found["findings"][0]["level"]) == ("components.E112", "error")
    assert all(each["remedy"] for each in found["findings"] if each["level"] != "info")
    silenced = [f"components.{id}" for id in (*USUAL, "E112")]
    with override_settings(SILENCED_SYSTEM_CHECKS=silenced):
        assert run() == ("Nothing is wrong.\n", 0)


def test_the_rights_that_the_user_lacks_are_named(redis: Redis, redis_server: EmbeddedServer) -> None:
    def found_as(*rules: str) -> dict[str, CheckMessage]:
        redis.execute_command("ACL SETUSER", "shop", "reset", "on", ">secret", "&*", "+@all", *rules)
        with redis_at(f"{redis_server.url}?username=shop&password=secret"):
            return findings()

    worker()

    assert found_as("~*", "-info").keys() == {"W102"}
    keys = ["~components:[a-km-z]*", "~components:locks:*"]
    finding = found_as(*keys, "-zpopmin", "-pfadd", "-xadd")["W118"]
    assert "The user 'shop' of CACHES['default'] lacks rights" in finding.msg
    assert finding.msg.endswith(": +xadd +zpopmin ~components:logs:*.")  # nothing needs PFADD


@pytest.mark.parametrize("user", USERS)
def test_a_user_of_least_right_lacks_nothing_that_its_processes_need(
    redis: Redis, redis_server: EmbeddedServer, user: str
) -> None:
    worker()
    joined()
    note_job("default")
    leave_rows_alone(redis)
    add_user(redis, user)
    redis.acl_log_reset()
    with redis_at(as_user(redis_server.url, user)):
        assert findings().keys() == ({"I119"} if user == "web" else {"E122"})
    assert redis.acl_log() == []

    redis.execute_command("ACL SETUSER", user, "-zadd")
    with redis_at(as_user(redis_server.url, user)):
        assert f"`manage.py acl --commands {user}`" in str(findings()["W118"].hint)


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (ConnectionError("Error 111. Connection refused."), "No server listens there"),
        (ConnectionError("Error -2. Name or service not known."), "No host of that name"),
        (ConnectionError("No master found for 'shop' : Connection refused."), "in SENTINELS"),
        (TimeoutError("Timeout reading from socket"), "a firewall drops"),
        (AuthenticationError("invalid username-password pair or user is disabled."), "Put both into"),
        (ConnectionError("Error 1. [SSL: WRONG_VERSION_NUMBER]"), "rediss://"),
        (InvalidResponse("Protocol Error: b'HTTP/1.1 400 Bad Request'"), "the port of another service"),
        (OutOfMemoryError("command not allowed when used memory > 'maxmemory'."), "Raise maxmemory"),
        (ReadOnlyError("You can't write against a read only replica."), "service name of Sentinels"),
        (BusyLoadingError("Redis is loading the dataset in memory"), "Wait until"),
        (ResponseError("MISCONF Redis is configured to save RDB snapshots"), "Make room on its disk"),
        (ResponseError("unknown command 'LMOVE', with args beginning with: 'a'"), "Install a newer server"),
        (NoPermissionError("this user has no permissions to run the 'xadd' command"), "manage.py acl"),
        (ResponseError("DB index is out of range"), "Correct the number at the end"),
        (ConnectionError("Error 1. certificate verify failed: self-signed certificate"), "ssl_ca_certs"),
        (ConnectionError("Error 2 connecting to host:6379. No such file or directory."), "correct its path"),
        (ConnectionError("Error 2 connecting to /run/x. No such file or directory."), "No server listens"),
        (ConnectionError("max number of clients reached"), "Raise maxclients"),
        (ResponseError("unknown command 'HELLO', with args beginning with: '3'"), "?protocol=2"),
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


# What is wrong with services, the database and the way to the server


@contextmanager
def replica(redis: Redis) -> Iterator[None]:
    redis.replicaof("127.0.0.1", "1")
    try:
        yield
    finally:
        redis.replicaof("NO", "ONE")


def schedule(model: str) -> None:
    RowCache(model, Shape([("id", "integer")])).schedule(42, delay=60)


def leave_rows_alone(redis: Redis) -> None:
    schedule("db.ware")
    for tag in keyspace.BUCKETS:
        for member in redis.zrange(RowKeys(tag).schedule, 0, -1):
            redis.zadd(RowKeys(tag).schedule, {member: 1_000_000})


UNREADABLE = OperationalError("unable to open database file")
#: What makes it so, for a time or until the end; the finding; words of its message or of its remedy.
WRONG: dict[str, tuple[Callable[[Redis], Any], str, str]] = {
    "a replica": (replica, "E104", "is a read-only replica of 127.0.0.1"),
    "a slow server": (lambda redis: patch.object(server, "_SLOW", 0.0), "W107", "for a round trip"),
    "a wrong clock": (lambda redis: patch.object(server, "_WRONG_BY", -1.0), "W108", "so tasks run too"),
    "a database that does not answer": (
        lambda redis: patch("components.doctor.MigrationExecutor", side_effect=UNREADABLE),
        "E109",
        "so migrations were not looked at: unable to open",
    ),
    "migrations that are not applied": (
        lambda redis: MigrationRecorder.Migration.objects.filter(app="components").delete(),
        "E110",
        "(0001_squashed_0010_overview, 0011_rate_limit)",
    ),
    "a worker that fell silent": (
        lambda redis: redis.zadd(
            QueueKeys("default", "").workers, {worker().id: (time.time() - 3_600) * 1_000}
        ),
        "W114",
        "worker",
    ),
    "rows of no model": (lambda redis: schedule("shop.gone"), "W121", "Rows of 'shop.gone'"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_a_finding(redis: Redis, wrong: str) -> None:
    worker()
    cause, id, words = WRONG[wrong]
    made = cause(redis)

    with made if hasattr(made, "__exit__") else nullcontext():
        said = [f"{each.msg} {each.hint}" for each in diagnose() if each.id == f"components.{id}"]

    assert any(words in each for each in said)


def test_workers_of_another_site_are_a_finding(redis: Redis) -> None:
    with override_settings(SECRET_KEY="of another project"):
        stranger = worker("mail")

    assert f"another project or environment, on {stranger.host}," in findings()["E111"].msg
    with override_settings(SECRET_KEY_FALLBACKS=["of another project"]):
        assert findings() == {}


@pytest.mark.parametrize(
    "name", [ECHO, "tests.tasks.no_such_task", "shop.tasks.of_another_project", "no task"]
)
def test_a_task_that_nobody_can_run_is_a_finding(redis: Redis, name: str) -> None:
    worker("others" if name == ECHO else "mail")
    TaskQueue().push(name, queue="mail")
    TaskQueue().push(name, queue="mail")
    id, said = ("E112", "runworker --backend default -q mail") if name == ECHO else ("W117", repr(name))

    found = findings()

    assert found.keys() == {id}
    assert said in f"{found[id].msg} {found[id].hint}"
