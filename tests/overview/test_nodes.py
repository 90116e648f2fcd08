"""What the overview says of the health of Redis, and what of it needs attention."""

from __future__ import annotations

import pytest

from components.overview.nodes import Node, lines_of, nodes
from tests.doctor.test_findings import configured
from tests.overview import reading
from tests.overview.reading import lines_of_redis

QUIET = {"aof_enabled": 1, "maxmemory_policy": "noeviction", "used_memory": 1_000}


@pytest.fixture
def reader(staff):
    return staff("view_overview")


def said(**info: object) -> list[str]:
    return [line.said for line in Node("here", {**QUIET, **info}).lines]


def test_settings_that_endanger_data(redis, reader):
    before = lines_of_redis(reader)
    with configured(redis, **{"maxmemory": "1gb", "maxmemory-policy": "allkeys-lru"}):
        [line] = [line for line in lines_of_redis(reader) if line not in before]

    assert line.startswith("Warning Redis:")
    assert "maxmemory-policy is allkeys-lru: under memory pressure Redis will delete tasks." in line
    assert line.endswith("Health of Redis Set it to noeviction.")
    assert lines_of_redis(reader) == before


@pytest.mark.parametrize(
    ("info", "text"),
    [
        (
            {"role": "slave", "master_host": "10.0.0.1"},
            "here is a read-only replica of 10.0.0.1 and takes no writes.",
        ),
        (
            {"rdb_last_bgsave_status": "err"},
            "here could not save its data (rdb_last_bgsave_status), and a crash",
        ),
        ({"maxmemory": 1_000}, "here is full: it refuses writes, or evicts data."),
        ({"maxmemory": 1_100}, "here uses more than nine tenths of its memory."),
        ({"total_system_memory": 1_100}, "here uses more than nine tenths of its memory."),
        (
            {"aof_enabled": 0},
            "here: appendonly is off: a crash of Redis loses all changes since the last snapshot.",
        ),
    ],
)
def test_what_needs_attention(info, text):
    [found] = said(**info)

    assert text in found
    assert said() == []


def test_the_facts_of_a_node():
    info = {
        **QUIET,
        "used_memory": 2_048,
        "maxmemory": 4_096,
        "instantaneous_ops_per_sec": 1_234,
        "connected_clients": 5,
        "evicted_keys": 6,
        "connected_slaves": 2,
        "uptime_in_seconds": 3_725,
    }
    known = [text.replace("\xa0", " ") for _name, text in Node("here", info, took=0.002).facts]

    assert known == [
        *("2 ms", "2.0 KB of 4.0 KB", "1,234", "5", "6", "each change (append-only file)", "2", "1 h 2 min"),
    ]
    bare = [text for _name, text in Node("here", {"aof_enabled": 0}).facts]
    assert bare[2:] == ["0", "0", "0", "never", "0", "0 s"]
    assert [*Node("here", {"rdb_last_save_time": 7}).facts][5][1] == "snapshots only"
    of_machine = {"used_memory": 2_048, "total_system_memory": 4_096}
    assert [*Node("here", of_machine).facts][1][1] == "2.0\xa0KB; the machine has 4.0\xa0KB"
    assert len([*Node("here", {}).facts]) == 1


def test_many_nodes_take_no_more_room_than_a_few():
    found = nodes({f"node-{number:02}": {"aof_enabled": number % 2} for number in range(60)}, {})

    assert [node.state for node in found[:30]] == ["warning"] * 30
    assert len(lines_of(found)) == 13
    assert lines_of(found)[-1].said == "18 more nodes of Redis need attention."


def test_a_server_that_does_not_permit_info(redis, reader):
    redis.execute_command("ACL", "SETUSER", "default", "-info")
    try:
        [text], found = reading.nodes(reader).values(), lines_of_redis(reader)
    finally:
        redis.execute_command("ACL", "SETUSER", "default", "+info")

    assert "The server does not permit INFO" in text
    assert found == []
