"""importgeoip, as somebody at a terminal or a program uses it."""

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from redis import Redis

from components.exceptions import GeoTableNotFound
from components.management.commands import importgeoip
from components.services.geo import GeoTable, locate, look
from components.testing import redis_at
from tests.support.geo import city, write_mmdb, write_old_csv


def run(*arguments: str | Path, **options: object) -> str:
    out = StringIO()
    call_command("importgeoip", *map(str, arguments), stdout=out, **options)
    return out.getvalue()


@pytest.fixture
def mmdb(tmp_path: Path) -> Path:
    return write_mmdb(tmp_path / "any.mmdb", {"1.0.0.0/8": city("US"), "9.0.0.0/8": {}})


def test_it_says_what_it_has_done(redis: Redis, mmdb: Path) -> None:
    said = [run(mmdb, verbosity=0), run(mmdb)]
    assert locate("1.0.0.1") is not None
    for each, state in zip(said, ("is current", "was current already"), strict=True):
        assert each.startswith("Test-City, built 2026-09-21: 1 range of IPv4 and 0 of IPv6, 1 place, ")
        assert " 1 range without a place. " in each
        assert each.endswith(f" {state}.\n")
        assert len(each.splitlines()) == 1


def test_the_pair_of_the_book_is_mended_by_force(
    redis: Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importgeoip, "_PACE", 0)
    files = write_old_csv(tmp_path, [(1, 9, 1)], [(1, "US", "CA", "Palo Alto")])
    assert run(*files, "--table", "book").splitlines()[1] == "1 of 1 parts stored"

    assert (look(), locate("0.0.0.5", table="book") is None) == (None, False)
    [part] = redis.keys("*:part:*")
    for options, is_junk in (([], True), (["--force"], False)):
        redis.set(part, b"junk")
        run(*files, "--table", "book", *options)
        assert (redis.get(part) == b"junk") == is_junk


@pytest.mark.parametrize("content", [b"", b"junk", None], ids=["empty", "junk", "gone"])
def test_a_file_that_is_wrong_is_one(redis: Redis, mmdb: Path, content: bytes | None) -> None:
    run(mmdb)
    before = look()
    if content is None:
        mmdb.unlink()
    else:
        mmdb.write_bytes(content)

    with pytest.raises(CommandError, match=r"any\.mmdb.*The table is unchanged\.$") as refused:
        run(mmdb)

    assert refused.value.returncode == 1
    assert look() == before


def test_no_redis_a_full_one_and_no_name_are_two(redis: Redis, mmdb: Path) -> None:
    def refused(say: str, *arguments: str | Path) -> None:
        with pytest.raises(CommandError, match=say) as error:
            run(*arguments)
        assert error.value.returncode == 2

    with redis_at("redis://127.0.0.1:1"):
        refused("Is it running", mmdb)
    refused("cannot be called", mmdb, "--table", "")
    refused(r"Name a \.mmdb")
    redis.config_set("maxmemory", 1)
    try:
        refused(r"maxmemory.* The table is unchanged\. Run the command again", mmdb)
    finally:
        redis.config_set("maxmemory", 0)
    assert redis.keys() == []
    run(mmdb)
    assert locate("1.0.0.1") is not None


def test_a_table_can_be_removed(redis: Redis, mmdb: Path) -> None:
    run(mmdb)
    run(mmdb, "--table", "other")

    said = [run("--remove", "--table", "other") for _ in range(2)]

    assert said[0].startswith("The table 'other' is removed.")
    assert said[1] == "There is no table 'other'.\n"
    assert redis.keys("*other*part*") == redis.keys("*other*manifest*") == []
    with pytest.raises(GeoTableNotFound):
        GeoTable.load("other")
    assert GeoTable.load().find("1.0.0.1") is not None
    with pytest.raises(CommandError, match="--remove cannot be used with files"):
        run(mmdb, "--remove")
