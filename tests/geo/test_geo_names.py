"""What people call the places of ids, from the table of addresses, if there is one."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from components.services.geo import alocate, importing, layout, locate, lookups, place_name
from components.services.geo.keys import TableKeys
from components.testing import redis_at
from tests.support.geo import city, import_networks


def record(country: str, region: str = "", name: str = "") -> dict[str, Any]:
    """A record whose names are longer than the codes."""
    found = city(country, region, name)
    found["country"]["names"]["en"] = f"Land of {country}"
    for part in found.get("subdivisions", ()):
        part["names"]["en"] = f"Part {region}"
    return found


NETWORKS = {
    "1.0.0.0/24": record("US", "CA", "Mountain View"),
    "1.0.2.0/24": record("DE"),
    "1.0.3.0/24": record("CH", "B/E%", "Biel/Bienne"),
    "1.0.4.0/24": record("SG", "", "Singapore"),
    "2001:db8::/33": record("US", "NY", "Albany"),
}


@pytest.fixture
def always_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call looks for another version."""
    monkeypatch.setattr(lookups, "INTERVAL", 0)


@pytest.mark.parametrize("part", [40, layout.PART], ids=["small parts", "one part"])
def test_an_id_has_the_names_of_the_table(
    redis: Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    monkeypatch.setattr(layout, "PART", part)
    monkeypatch.setattr(importing, "PART", part)
    import_networks(tmp_path, NETWORKS)

    names = {
        "US": "Land of US",
        "US/CA": "Part CA, Land of US",
        "US/NY": "Part NY, Land of US",
        "US/CA/Mountain View": "Mountain View, Part CA, Land of US",
        "US/CA/A town of none": "A town of none, Part CA, Land of US",
        "US/XX/Somewhere": "Somewhere, XX, Land of US",
        "US/": "Land of US",
        "DE": "Land of DE",
        "SG//Singapore": "Singapore, Land of SG",
        "CH/B%2FE%25": "Part B/E%, Land of CH",
        "CH/B%2FE%25/Biel%2FBienne": "Biel/Bienne, Part B/E%, Land of CH",
        "FR/IDF": "FR/IDF",
        "unknown": "unknown",
        "": "",
    }
    assert {place: place_name(place) for place in names} == names
    import_networks(tmp_path, {"1.0.0.0/8": city("DE")}, name="other")
    place = locate("1.0.2.1")
    assert place is not None
    assert place_name(place.id) == place.country_name == "Land of DE"
    assert [place_name("DE", table="other"), place_name("US", table="other")] == ["de", "US"]


def test_names_are_read_once_and_without_the_ranges(
    redis: Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "PART", 100)
    monkeypatch.setattr(importing, "PART", 100)
    import_networks(tmp_path, {f"{n}.0.0.0/8": city(f"X{n}") for n in range(2, 80, 2)})
    for number in range(39 * 12 // 100):  # nothing but ranges
        assert redis.delete(TableKeys("default").part(f"{_version(redis)}:{number}"))

    assert place_name("X4") == "x4"
    redis.config_resetstat()
    assert [place_name(f"X{n}") for n in range(2, 80, 2)] == [f"x{n}" for n in range(2, 80, 2)]
    commands = redis.info("commandstats")
    assert set(commands) <= {"cmdstat_config", "cmdstat_config|resetstat", "cmdstat_info"}


def _version(redis: Redis) -> str:
    found: Any = redis.hget(TableKeys("default").current, "version")
    return str(found.decode())


@pytest.mark.usefixtures("always_looks")
def test_names_of_another_version_are_seen(redis: Redis, tmp_path: Path) -> None:
    before = place_name("US/CA")
    import_networks(tmp_path, NETWORKS)
    first = place_name("US/CA")
    import_networks(tmp_path, {"1.0.0.0/8": city("US", "CA")})

    assert [before, first, place_name("US/CA")] == ["US/CA", "Part CA, Land of US", "ca, us"]


def test_without_a_table_ids_are_shown_and_looked_for_once(
    redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    redis.config_resetstat()

    assert [place_name("US"), place_name("US/CA/Palo Alto")] == ["US", "US/CA/Palo Alto"]
    assert redis.info("commandstats")["cmdstat_hget"]["calls"] == 1
    assert caplog.records == []


@pytest.mark.usefixtures("always_looks")
def test_a_table_that_cannot_be_read_is_logged_and_ids_are_shown(
    redis: Redis, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    import_networks(tmp_path, NETWORKS)
    redis.delete(*redis.keys("*:part:*"))
    with caplog.at_level(logging.WARNING):
        assert place_name("US") == "US"
    assert "Places are shown by their ids: The geo table 'default', part 0 of 1" in caplog.text

    import_networks(tmp_path, NETWORKS, force=True)

    assert place_name("US") == "Land of US"


@pytest.mark.usefixtures("always_looks")
def test_while_redis_is_away_names_go_on_being_told(
    redis: Redis, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    import_networks(tmp_path, NETWORKS)
    assert place_name("US") == "Land of US"
    found = locate("1.0.0.1")

    with redis_at("redis://127.0.0.1:1"):
        assert locate("1.0.0.1") == asyncio.run(alocate("1.0.0.1")) == found is not None
        assert [place_name("US"), place_name("DE")] == ["Land of US", "Land of DE"]
        assert place_name("US", table="other") == "US"

    assert [each.getMessage().split(":")[0] for each in caplog.records] == [
        *[f"Addresses are still located by version {_version(redis)}"] * 2,  # names are kept apart
        "Places are shown by their ids",
    ]
