"""The world of the demo."""

from __future__ import annotations

import csv
from ipaddress import IPv6Network
from pathlib import Path

import pytest
from redis import Redis

from components.services.geo import GeoTable, locate, look
from components.services.geo.importing import import_places
from project.players import demo
from project.players.crowd import NOWHERE
from project.players.geography import BLOCKS, LOCATIONS, read_locations


def test_each_place_has_addresses_and_they_are_reserved_so_nobody_has_them() -> None:
    networks = [network for location in read_locations() for network in location.networks]

    assert all(location.networks for location in read_locations())
    assert all(network.is_reserved or network.is_private for network in networks)
    assert any(isinstance(network, IPv6Network) for network in networks)


def test_both_files_say_that_they_are_made_up() -> None:
    for path in (BLOCKS, LOCATIONS):
        assert path.read_text(encoding="utf-8").startswith("Made up for the demo")


def test_addresses_live_where_the_files_say(redis: Redis) -> None:
    demo.load()

    for location in read_locations():
        for network in location.networks:
            for address in (network[0], network[-1]):
                place = locate(str(address))
                assert place is not None
                assert place.country == location.country
    assert [locate(address) for address in NOWHERE] == [None] * len(NOWHERE)
    assert len(GeoTable.load().places) == len(read_locations()) + 1


def test_again_it_is_the_same_version(redis: Redis) -> None:
    demo.load()
    before = look()
    demo.load()

    after = look()
    assert before is not None
    assert after is not None
    assert after.version == before.version


def test_a_table_of_ones_own_stays(redis: Redis, tmp_path: Path) -> None:
    for name, rows in {
        "blocks.csv": [("startIpNum", "endIpNum", "locId"), ("1", "2", "1")],
        "locations.csv": [("locId", "country", "region", "city"), ("1", "US", "", "")],
    }.items():
        with (tmp_path / name).open("w") as file:
            csv.writer(file).writerows(rows)
    import_places(tmp_path / "blocks.csv", tmp_path / "locations.csv")

    demo.load()

    found = look()
    assert found is not None
    assert found.source == "blocks.csv, locations.csv"


def test_a_new_release_of_the_demo_brings_its_own(
    redis: Redis, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fewer = tmp_path / BLOCKS.name
    fewer.write_text("".join(BLOCKS.read_text().splitlines(keepends=True)[:-1]))
    monkeypatch.setattr(demo, "BLOCKS", fewer)
    demo.load()
    before = look()
    monkeypatch.undo()

    demo.load()

    after = look()
    assert before is not None
    assert after is not None
    assert after.ipv6 == before.ipv6 + 1


def test_without_redis_it_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    demo.load()

    assert "importgeoip" in caplog.text
