"""Where addresses live: single lookups, versions, and what is left when an import dies or two come at once."""

import asyncio
import json
import os
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Any, get_args

import pytest
from redis import Redis

from components.exceptions import (
    GeoTableDamaged,
    GeoTableNotFound,
    InvalidValue,
    RedisUnavailable,
    UnknownFormat,
)
from components.services.geo import (
    UNKNOWN,
    GeoTable,
    Level,
    Place,
    alocate,
    alook,
    forget,
    import_places,
    importing,
    layout,
    locate,
    look,
    lookups,
    place_name,
    table,
)
from components.services.geo.keys import TableKeys
from components.testing import redis_at
from tests.support.geo import city, import_networks, write_mmdb
from tests.support.waiting import eventually

Patch = pytest.MonkeyPatch

pytestmark = pytest.mark.usefixtures("redis")

HOUR = 3_600
NETWORKS = {
    "1.0.0.0/24": city("US", "CA", "Mountain View"),
    "1.0.2.0/24": city("DE"),
    "255.255.255.255/32": city("FR", "IDF"),
    "2001:db8::/33": city("CH", "ZH", "Biel/Bienne"),
    "2001:db9::/128": city("AT"),
}

ELSEWHERE = {f"{number}.0.0.0/8": city(f"X{number}") for number in range(2, 40, 2)}


@pytest.fixture
def always_looks(monkeypatch: Patch) -> None:
    """Each lookup looks for another version."""
    monkeypatch.setattr(lookups, "INTERVAL", 0)


@pytest.fixture
def small_parts(monkeypatch: Patch) -> None:
    """A table of a few ranges has many parts."""
    monkeypatch.setattr(layout, "PART", 40)
    monkeypatch.setattr(importing, "PART", 40)


def parts(redis: Redis) -> dict[str, bool]:
    """The versions of all parts that are there, and whether they expire."""
    found: dict[str, bool] = {}
    for key in redis.keys("*:part:*"):
        version = key.decode().split(":part:")[1].split(":")[0]
        expires = redis.ttl(key) > 0
        assert redis.ttl(key) <= HOUR
        assert found.setdefault(version, expires) == expires
    return found


@pytest.mark.parametrize(
    ("ip", "place"),
    [
        *((ip, "US/CA/Mountain View") for ip in ("1.0.0.0", "1.0.0.255", "::ffff:1.0.0.7")),
        *((ip, "DE") for ip in ("1.0.2.1", IPv4Address("1.0.2.1"))),
        ("255.255.255.255", "FR/IDF"),
        *((f"2001:db8:{rest}", "CH/ZH/Biel%2FBienne") for rest in (":", "7fff:ffff:ffff:ffff:ffff:ffff")),
        *((ip, "AT") for ip in ("2001:db9::", IPv6Address("2001:db9::"))),
        *((ip, None) for ip in ("1.0.1.0", "1.0.1.255", "0.0.0.0", "255.255.255.254", "::ffff:1.0.1.7")),
        *((ip, None) for ip in ("::1.0.0.7", "2001:db8:8000::", "2001:db9::1", "::", "fe80::1%eth0")),
        ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", None),
    ],
)
def test_an_address_lives_where_its_range_says_or_nowhere(tmp_path: Path, ip: str, place: str | None) -> None:
    import_networks(tmp_path, NETWORKS)
    found = locate(ip)
    assert (found and found.id) == place
    assert asyncio.run(alocate(ip)) == found
    assert GeoTable.load().place_of(ip) == (found or UNKNOWN)
    if ip == "1.0.0.0":
        assert found == Place("US", "us", "CA", "ca", "Mountain View")


def test_a_place_has_an_id_at_each_level() -> None:
    levels: tuple[Level, ...] = get_args(Level)
    for place, expected in (
        (Place("US", "us", "CA", "ca", "Mountain View"), ["US", "US/CA", "US/CA/Mountain View"]),
        (Place("SG", "Singapore", "", "", "Singapore"), ["SG", "SG", "SG//Singapore"]),
        (UNKNOWN, ["unknown"] * 3),
    ):
        assert [place.id_at(level) for level in levels] == expected
        assert place.id == expected[-1]


@pytest.mark.parametrize(
    "ip", ["", "1.2.3", "1.2.3.256", "01.2.3.4", "1.2.3.4 ", "localhost", "::g", "x" * 999, 5, b"abcd"]
)
def test_an_invalid_address_is_reported(tmp_path: Path, ip: Any) -> None:
    import_networks(tmp_path, NETWORKS)
    for ask in (locate, lambda ip: asyncio.run(alocate(ip)), GeoTable.load().find):
        with pytest.raises(InvalidValue) as refused:
            ask(ip)
        assert len(str(refused.value)) < 250


def test_without_a_table_nothing_can_be_located() -> None:
    for ask in (lambda: locate("1.0.0.1"), lambda: asyncio.run(alocate("1.0.0.1")), GeoTable.load):
        with pytest.raises(GeoTableNotFound, match="importgeoip"):
            ask()
    assert look() is None
    assert asyncio.run(alook()) is None
    forget()
    with redis_at("redis://127.0.0.1:1"), pytest.raises(RedisUnavailable):
        locate("1.0.0.1")


def test_an_import_is_reported(redis: Redis, tmp_path: Path) -> None:
    networks = {**NETWORKS, "1.0.3.0/24": NETWORKS["1.0.2.0/24"], "9.0.0.0/8": {}}

    done = import_networks(tmp_path, networks)
    info = asyncio.run(alook())

    assert (done.ipv4, done.ipv6, done.places, done.nameless, done.was_current) == (3, 2, 5, 1, False)
    assert info == look()
    assert info is not None
    assert (info.name, info.version, info.ipv4, info.ipv6) == ("default", done.version, 3, 2)
    assert info.source == "Test-City, built 2026-09-21"
    assert abs(info.imported_at.timestamp() - redis.time()[0]) < 60
    assert info.stored_size == done.stored_size > 0


@pytest.mark.usefixtures("small_parts", "always_looks")
def test_another_version_is_seen_and_the_one_before_expires(redis: Redis, tmp_path: Path) -> None:
    old, before = import_networks(tmp_path, NETWORKS), look()
    again = import_networks(tmp_path, NETWORKS)  # the same source is the same version
    assert (again.version, again.was_current, look()) == (old.version, True, before)
    assert parts(redis) == {old.version: False}
    before = GeoTable.load()
    assert locate("9.9.9.9") is None

    new = import_networks(tmp_path, {**NETWORKS, "9.0.0.0/8": city("JP")})

    assert [locate("9.9.9.9"), asyncio.run(alocate("9.9.9.9"))] == [Place("JP", "jp")] * 2
    assert parts(redis) == {old.version: True, new.version: False}
    assert 0 < redis.ttl(TableKeys("default").manifest(old.version)) <= HOUR
    assert redis.ttl(TableKeys("default").manifest(new.version)) == -1
    assert all(0 < redis.ttl(key) <= 60 for key in redis.keys("*:call:*"))
    assert [before.newest().version, before.newest().newest().version] == [new.version] * 2
    assert before.find("9.9.9.9") is None
    import_networks(tmp_path, NETWORKS)  # a version can come back
    assert locate("9.9.9.9") is None
    assert parts(redis) == {old.version: False, new.version: True}


def test_not_each_call_looks_for_a_version(redis: Redis, tmp_path: Path, monkeypatch: Patch) -> None:
    import_networks(tmp_path, NETWORKS)
    locate("1.0.0.1")
    monkeypatch.delattr(asyncio, "to_thread")  # nor does a coroutine take a thread for it
    asked = redis.info("commandstats")["cmdstat_hget"]["calls"]
    for _ in range(100):
        locate("1.0.0.1")
    asyncio.run(alocate("1.0.0.1"))
    assert redis.info("commandstats")["cmdstat_hget"]["calls"] == asked


class _Killed(BaseException):
    pass


@pytest.mark.usefixtures("small_parts", "always_looks")
def test_a_killed_import_leaves_the_table_and_parts_that_expire(redis: Redis, tmp_path: Path) -> None:
    old = import_networks(tmp_path, NETWORKS)
    others = {**NETWORKS, "9.0.0.0/8": city("JP")}

    def kill(text: str) -> None:
        if text.startswith("3 of "):
            raise _Killed

    with pytest.raises(_Killed):
        import_networks(tmp_path, others, progress=kill)

    [new] = parts(redis).keys() - {old.version}
    assert parts(redis) == {old.version: False, new: True}
    assert len(redis.keys(f"*:part:{new}:*")) == 3
    assert locate("9.9.9.9") is None
    said: list[str] = []
    assert import_networks(tmp_path, others, progress=said.append).version == new
    importing.put("default", new, 0, redis.get(TableKeys("default").part(f"{new}:0")))  # as one that is late
    assert parts(redis) == {old.version: True, new: False}
    total = len(redis.keys(f"*:part:{new}:*"))
    assert f"1 of {total - 3} parts stored" in said
    assert locate("9.9.9.9") is not None


@pytest.mark.usefixtures("small_parts")
def test_concurrent_imports_leave_one_whole_table_and_the_others_expire(redis: Redis, tmp_path: Path) -> None:
    names = ["US", "DE", "FR", "JP"]
    files = [write_mmdb(tmp_path / name, {"1.0.0.0/8": city(name), **ELSEWHERE}) for name in names]
    barrier = threading.Barrier(8)

    def run(number: int) -> str:
        barrier.wait()
        return import_places(files[number % 4]).version

    with ThreadPoolExecutor(8) as pool:
        versions = set(pool.map(run, range(8)))

    table = GeoTable.load()
    assert len(versions) == 4
    assert parts(redis) == {version: version != table.version for version in versions}
    assert table.place_of("1.2.3.4").country in names


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("is_gone", [False, True])
def test_a_load_gets_a_whole_version(redis: Redis, tmp_path: Path, monkeypatch: Patch, is_gone: bool) -> None:
    """The old one, whose parts are still there; if they are gone, the new one."""
    old = import_networks(tmp_path, NETWORKS)
    decompress, new = layout.decompress, []

    def meanwhile(*args: Any) -> bytes:
        monkeypatch.setattr(table, "decompress", decompress)
        new.append(import_networks(tmp_path, {"9.0.0.0/8": city("JP")}).version)
        if is_gone:
            redis.delete(*redis.keys(f"*:{old.version}*"))
        return decompress(*args)

    monkeypatch.setattr(table, "decompress", meanwhile)

    loaded = GeoTable.load()

    assert [loaded.version] == (new if is_gone else [old.version])
    assert loaded.find("9.9.9.9" if is_gone else "1.0.0.1") is not None


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("damage", ["gone", "junk", "cut", "other", "bomb"])
def test_a_damaged_part_is_told_and_mended_by_force(redis: Redis, tmp_path: Path, damage: str) -> None:
    done = import_networks(tmp_path, NETWORKS)
    key, other = (TableKeys("default").part(f"{done.version}:{number}") for number in (1, 2))
    stored = redis.get(key)
    bomb = layout.compress(memoryview(bytes(10_000_000)))
    damages = {"junk": b"junk", "cut": stored[:-6], "other": redis.get(other), "bomb": bomb}
    redis.set(key, damages[damage]) if damage in damages else redis.delete(key)

    with pytest.raises(GeoTableDamaged, match=r"part 1 of .*--force"):
        locate("1.0.0.1")

    import_networks(tmp_path, NETWORKS, force=damage != "gone")
    assert locate("1.0.0.1") is not None
    assert parts(redis) == {done.version: False}


@pytest.mark.parametrize(
    "manifest",
    [
        *(None, b"junk", b"[]", b"{}", b"\xff", b'{"format": 1}', b'{"format": 1, "x": 2}'),
        *({"ipv4": "x"}, {"ipv4": -1}, {"ipv6": 10**9}, {"ipv6": True}, {"size": 0}, {"size": 1.5}),
        *({"size": 10**30, "part": 10**30}, {"part": 0}, {"part": 1}, {"part": None}, {"stored_size": "x"}),
        (b"[" * 200_000),
        *({"digests": 3}, {"digests": []}, {"digests": [None]}, {"digests": [["x"]]}, {"source": 7}),
    ],
    ids=lambda manifest: repr(manifest)[:60],
)
def test_a_damaged_manifest_is_told(
    redis: Redis, tmp_path: Path, manifest: bytes | dict[str, Any] | None
) -> None:
    done = import_networks(tmp_path, NETWORKS)
    key = TableKeys("default").manifest(done.version)
    good = json.loads(redis.get(key))
    if manifest is None:
        redis.hset(TableKeys("default").current, mapping={"version": b"\xff", "parts": "x"})
    else:
        redis.set(key, json.dumps({**good, **manifest}) if isinstance(manifest, dict) else manifest)

    for ask in (look, GeoTable.load):
        with pytest.raises(GeoTableDamaged, match="manifest"):
            ask()
    assert place_name("US/CA") == "US/CA"

    import_networks(tmp_path, NETWORKS)
    assert locate("1.0.0.1") is not None


def test_a_manifest_of_a_later_release_or_of_another_table_is_reported(redis: Redis, tmp_path: Path) -> None:
    key = TableKeys("default").manifest(import_networks(tmp_path, NETWORKS).version)
    redis.set(key, json.dumps({**json.loads(redis.get(key)), "ipv4": 0}))
    with pytest.raises(GeoTableDamaged, match=r"cannot be read.*--force"):
        GeoTable.load()
    redis.set(key, b'{"format": 2}')
    with pytest.raises(UnknownFormat):
        GeoTable.load()


def test_a_server_that_evicts_is_reported(redis: Redis, tmp_path: Path, monkeypatch: Patch) -> None:
    put = importing.put

    def evicted(name: str, version: str, number: int, stored: bytes) -> None:
        put(name, version, number, stored)
        redis.delete(TableKeys(name).part(f"{version}:{number}"))

    monkeypatch.setattr(importing, "put", evicted)

    with pytest.raises(GeoTableDamaged, match="noeviction"):
        import_networks(tmp_path, NETWORKS)

    assert look() is None


def test_many_who_ask_first_load_the_table_once(redis: Redis, tmp_path: Path) -> None:
    import_networks(tmp_path, NETWORKS)
    redis.config_resetstat()
    barrier = threading.Barrier(8)

    def ask(_number: int) -> Place | None:
        barrier.wait()
        return locate("1.0.2.1")

    async def ask_all() -> list[Place | None]:
        return await asyncio.gather(*[alocate("1.0.2.1") for _ in range(20)])

    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(ask, range(8)))
    forget()
    found |= set(asyncio.run(ask_all()))

    assert found == {Place("DE", "de")}
    assert redis.info("commandstats")["cmdstat_get"]["calls"] == 2 * 2  # a manifest, a part


def test_those_who_wait_for_a_load_that_fails_do_not_each_try_again(monkeypatch: Patch) -> None:
    tried, all_wait = [], threading.Event()

    def load(name: str) -> GeoTable:
        tried.append(name)
        assert all_wait.wait(20)
        raise RedisUnavailable("away")

    monkeypatch.setattr(GeoTable, "load", load)

    def ask() -> str:
        with pytest.raises(RedisUnavailable) as error:
            locate("1.0.0.1")
        return str(error.value)

    async def ask_all() -> list[object]:
        asked = [asyncio.ensure_future(alocate("1.0.0.1")) for _ in range(5)]
        await asyncio.sleep(0)  # each of them has begun
        all_wait.set()
        return list(await asyncio.gather(*asked, return_exceptions=True))

    with ThreadPoolExecutor(1) as pool:
        one = pool.submit(ask)
        assert eventually(lambda: tried)
        found = asyncio.run(ask_all())

        assert one.result() == "away"
    assert [str(each) for each in found] == ["away"] * 5
    assert len(tried) == 1
    assert ask() == "away"  # who comes later tries again
    assert len(tried) == 2


@pytest.mark.usefixtures("always_looks")
def test_while_one_looks_for_a_version_others_have_theirs(tmp_path: Path, monkeypatch: Patch) -> None:
    import_networks(tmp_path, NETWORKS)
    locate("1.0.0.1")
    looks, may_go_on = threading.Event(), threading.Event()
    newest = GeoTable.newest

    def slow(table: GeoTable) -> GeoTable:
        looks.set()
        assert may_go_on.wait(20)
        return newest(table)

    monkeypatch.setattr(GeoTable, "newest", slow)
    with ThreadPoolExecutor(1) as pool:
        one = pool.submit(locate, "1.0.0.1")
        assert looks.wait(20)

        found = locate("1.0.0.1")

        is_done = one.done()
        may_go_on.set()
        assert one.result() == found
    assert found is not None
    assert not is_done


@pytest.mark.usefixtures("always_looks")
def test_a_forked_child_looks_although_its_parent_did_so_meanwhile(tmp_path: Path) -> None:
    """The thread that looks is not in the child."""
    import_networks(tmp_path, NETWORKS)
    locate("1.0.0.1")
    import_networks(tmp_path, {"9.0.0.0/8": city("JP")})
    with lookups.kept(GeoTable, "default")._guard:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # there may be threads of other tests
            child = os.fork()
        if child == 0:
            code = 1
            try:
                code = 0 if locate("9.9.9.9") else 2
            finally:
                os._exit(code)
        in_parent = locate("9.9.9.9")

    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0
    assert in_parent is None
