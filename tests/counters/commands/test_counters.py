"""The commands counters and cleancounters, as somebody at a terminal or a program uses them."""

import json
from datetime import UTC, datetime
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test.utils import override_settings
from redis import Redis

from components.kit.decoding import typed_instant
from components.services.counters import Counter
from components.testing import redis_at
from tests.support.counters import count_at, seconds


def run(*arguments: str) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def document(*arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run("counters", "--json", *arguments))
    return found


@pytest.fixture
def begun(redis: Redis) -> int:
    """When the last hour began, in which "hits:/a" counted 3 and "hits:/b" 5."""
    begun = seconds(redis) // 3_600 * 3_600 - 3_600
    for name, count in (("hits:/a", 3), ("hits:/b", 5), ("other", 1)):
        Counter(name).update(0)
        count_at(redis, name, begun + 60, count)
    return begun


def test_those_seen_last_are_shown(begun: int) -> None:
    lines = run("counters", "--precision", "3600", "--limit", "2").splitlines()

    assert lines[0].split() == ["counter", "total", "rate", "last", "slice", "from", "until"]
    assert [line.split()[:2] for line in lines[1:3]] == [["other", "1"], ["hits:/b", "5"]]
    assert "hits:/a" not in "".join(lines)


def test_the_first_of_a_family_are_shown(begun: int) -> None:
    found = document("--top", "hits", "--precision", "3600", "--limit", "1")

    assert [(each["name"], each["total"]) for each in found["counters"]] == [("hits:/b", 5)]
    same = document("hits:*", "--precision", "3600", "--limit", "1")
    assert [each["name"] for each in same["counters"]] == ["hits:/b"]
    assert document("none:*", "--precision", "3600") == {"format": 1, "counters": []}


def test_the_json_has_all_samples(begun: int) -> None:
    since, until = (datetime.fromtimestamp(begun + each, UTC).isoformat() for each in (0, 180))

    found = document("hits:/a", "nothing", "--since", since, "--until", until)

    samples = [
        {"at": datetime.fromtimestamp(begun + 60 * minute, UTC).isoformat(), "count": count}
        for minute, count in enumerate([None, 3, None])
    ]
    span = {"precision": 60, "unit": "", "since": since, "until": until}
    nothing = [{**each, "count": None} for each in samples]
    assert found == {
        "format": 1,
        "counters": [
            {"name": "hits:/a", **span, "total": 3, "rate": 3 / 180, "samples": samples},
            {"name": "nothing", **span, "total": 0, "rate": 0.0, "samples": nothing},
        ],
    }


@pytest.mark.parametrize(
    "arguments",
    [
        ["--precision", "61"],
        ["--limit", "0"],
        ["x" * 501],
        ["hits", "--since", "2026-13-01T00:00Z"],
        ["hits", "--since", "2026-01-02T00:00Z", "--until", "2026-01-01T00:00Z"],
    ],
)
def test_a_wrong_argument_is_said(begun: int, arguments: list[str]) -> None:
    with pytest.raises(CommandError) as refused:
        run("counters", *arguments)

    assert refused.value.returncode == 1


@pytest.mark.parametrize("command", ["counters", "cleancounters"])
def test_redis_that_is_away_is_said(command: str) -> None:
    with (
        redis_at("unix:///nowhere/redis.sock"),
        pytest.raises(CommandError, match="Is it running") as refused,
    ):
        run(command)

    assert refused.value.returncode == 2


def test_cleaning_says_what_it_did(redis: Redis, begun: int) -> None:
    looked = len(redis.keys("*"))
    redis.persist(redis.keys("*:samples:*")[0])

    assert run("cleancounters") == f"{looked} keys of counters: 0 removed, 1 repaired.\n"
    assert run("cleancounters", "-v", "2") == f"{looked} keys of counters: 0 removed, 0 repaired.\n" * 2


@pytest.mark.parametrize(
    ("text", "is_end", "found"),
    [
        ("2026-07-01T12:00", False, "2026-07-01T10:00+00:00"),
        ("2026-07-01T12:00Z", False, "2026-07-01T12:00+00:00"),
        ("2026-10-25T02:30", False, "2026-10-25T00:30+00:00"),  # which comes twice
        ("2026-10-25T02:30", True, "2026-10-25T01:30+00:00"),
        ("2026-03-29T02:30", False, "2026-03-29T01:30+00:00"),  # which never comes
        *(
            (text, False, None)
            for text in ("9999-12-31T23:59-14:00", "0001-01-01T00:00", "soon", "2026-13-01")
        ),
    ],
)
@pytest.mark.parametrize("use_tz", [True, False])
def test_what_people_type_is_on_the_clock_of_the_site(
    text: str, is_end: bool, found: str | None, use_tz: bool
) -> None:
    with override_settings(TIME_ZONE="Europe/Berlin", USE_TZ=use_tz):
        at = typed_instant(text, is_end=is_end)

    assert at == (found and datetime.fromisoformat(found))
