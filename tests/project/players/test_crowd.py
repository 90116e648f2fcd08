"""Who plays when."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from ipaddress import ip_address
from random import Random

import pytest

from project.players.crowd import MOMENTS, NOWHERE, Crowd
from project.players.geography import read_locations

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
LOCATIONS = read_locations()


@pytest.fixture(scope="module")
def crowd() -> Crowd:
    return Crowd(LOCATIONS)


def country(address: str) -> str:
    for location in LOCATIONS:
        if any(ip_address(address) in network for network in location.networks):
            return location.country
    return "unknown"


@pytest.mark.slow
def test_the_same_crowd_does_the_same_each_time(crowd: Crowd) -> None:
    again = Crowd(LOCATIONS)

    assert crowd.lines(NOON, MOMENTS[:500], Random(1)) == again.lines(NOON, MOMENTS[:500], Random(1))
    assert crowd.lines(NOON, MOMENTS[:500], Random(1)) != crowd.lines(NOON, MOMENTS[:500], Random(2))


def test_a_line_has_an_address_a_day_a_time_and_an_event(crowd: Crowd) -> None:
    lines = crowd.lines(NOON, ["00:00", "07:09", "59:59"], Random(1))

    for line, moment in zip(lines, ["12:00:00", "12:07:09", "12:59:59"], strict=True):
        address, day, time, event = line.split()
        assert ip_address(address)
        assert (day, time) == ("2026-03-04", moment)
        assert event


@pytest.mark.slow
def test_more_is_played_where_it_is_evening(crowd: Crowd) -> None:
    def countries(hour: int) -> Counter[str]:
        lines = crowd.lines(NOON.replace(hour=hour), MOMENTS[:400], Random(1))
        return Counter(country(line.split()[0]) for line in lines if line[:1] == "2" and line.count(" ") == 3)

    in_the_east, in_the_west = countries(11), countries(3)

    assert in_the_east["JP"] > in_the_east["US"]
    assert in_the_west["US"] > 3 * in_the_west["GB"]


def test_some_lines_in_ten_thousand_cannot_be_counted(crowd: Crowd) -> None:
    lines = [line for seed in range(10) for line in crowd.lines(NOON, MOMENTS, Random(seed))]

    odd = [line for line in lines if " 2026-03-04 12:" not in line or line.startswith("256.")]

    assert 3 <= len(odd) < 50
    assert any(line.startswith(NOWHERE) for line in lines)


def test_each_hour_has_its_own_pace(crowd: Crowd) -> None:
    paces = [crowd.activity(NOON.replace(hour=hour)) for hour in range(24)]

    assert 0.5 < sum(paces) / 24 < 1.5
    assert max(paces) > 1.2 * min(paces)
