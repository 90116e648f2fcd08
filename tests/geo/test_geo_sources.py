"""Files that say where addresses live: each kind that is read, and what is told of one that is wrong."""

import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from components.exceptions import ExtraNotInstalled, InvalidGeoSource, InvalidName, InvalidValue
from components.services.geo import GeoTable, Place, import_places, look, place_name
from tests.support.geo import Number, city, write_mmdb, write_new_csv, write_old_csv

pytestmark = pytest.mark.usefixtures("redis")

NETWORKS = {
    "1.0.0.0/24": city("US", "CA", "Mountain View"),
    "2.0.0.0/7": city("DE"),
    "2001:db8::/32": city("CH", "ZH", "Zürich"),
}
GOOD = ("1.0.0.0/24", "1")
OLD = [(1, "US", "CA", "Mountain View"), (2, "DE", "07", "Köln"), (3, "", "", "")]


def places(*ips: str) -> list[str | None]:
    table = GeoTable.load()
    return [found.id if (found := table.find(ip)) else None for ip in ips]


@pytest.mark.parametrize("record_size", [24, 28, 32])
def test_a_maxmind_db_is_read_whatever_the_size_of_its_records(tmp_path: Path, record_size: int) -> None:
    import_places(write_mmdb(tmp_path / "any.mmdb", NETWORKS, record_size=record_size))
    found = places("1.0.0.255", "1.0.1.0", "2.0.0.0", "3.255.255.255", "4.0.0.0", "2001:db8::1", "2001:db9::")
    assert found == ["US/CA/Mountain View", None, "DE", "DE", None, "CH/ZH/Zürich", None]


def test_ipv4_that_a_maxmind_db_repeats_inside_of_ipv6_is_read_once(tmp_path: Path) -> None:
    """As those of MaxMind do, for 6to4 and mapped addresses."""
    aliases = ["2002::/16", "::ffff:0:0/96"]
    done = import_places(write_mmdb(tmp_path / "any.mmdb", NETWORKS, aliases=aliases))
    assert (done.ipv4, done.ipv6) == (2, 1)
    assert places("::ffff:1.0.0.1", "2002:100:1::") == ["US/CA/Mountain View", None]
    networks = {"1.0.0.0/24": city("US"), "128.0.0.0/1": city("DE")}
    import_places(write_mmdb(tmp_path / "any.mmdb", networks, ip_version=4))  # of IPv4 alone
    assert places("1.0.0.1", "255.255.255.255", "2.0.0.0", "::1") == ["US", "DE", None, None]


def test_codes_and_languages_may_be_missing(tmp_path: Path) -> None:
    """DB-IP has no codes of regions; others have no English names."""
    record = {
        "country": {"names": {"de": "Deutschland"}},
        "subdivisions": [{"names": {"en": "Bavaria"}}],
        "city": {"names": {}},
    }
    import_places(write_mmdb(tmp_path / "any.mmdb", {"1.0.0.0/8": record}))
    assert GeoTable.load().find("1.0.0.1") == Place("Deutschland", "Deutschland", "Bavaria", "Bavaria", "")


def test_the_pair_of_the_book_is_read(tmp_path: Path) -> None:
    blocks = [(16777216, 16777471, 1), (16777472, 16777472, 2), (2**32 - 1, 2**32 - 1, 2), (100, 200, 3)]
    done = import_places(*write_old_csv(tmp_path, blocks, OLD))
    found = places("1.0.0.0", "1.0.0.255", "1.0.1.0", "1.0.1.1", "255.255.255.255")
    assert found == [*["US/CA/Mountain View"] * 2, "DE/07/Köln", None, "DE/07/Köln"]
    assert (done.source, done.nameless) == ("GeoLiteCity-Blocks.csv, GeoLiteCity-Location.csv", 1)


def test_the_networks_of_its_successor_are_read_in_any_order(tmp_path: Path) -> None:
    files = write_new_csv(tmp_path, [("2001:db8::/32", "2"), ("1.0.0.0/24", "1"), ("1.0.1.0/24", "")])
    more = tmp_path / "more.csv"
    more.write_text("network,geoname_id\n2002:db8::/32,2\n\n")
    import_places(*reversed(files), more)
    found = places("1.0.0.7", "1.0.1.7", "2001:db8::7", "2002:db8::7")
    assert found == ["CH/ZH/Zürich", None, "DE", "DE"]


@pytest.mark.parametrize(
    ("columns", "rows", "found"),
    [
        (  # DB-IP
            "first,last,-,country,region,city",
            [
                '"1.0.0.0","1.0.0.255","OC","AU","Queensland","South Brisbane","-27.4767"',
                "2001:db8::,2001:db8::ff,,DE,,",
            ],
            ["AU/Queensland/South Brisbane", None, "DE"],
        ),
        (  # IP2Location, of which the file for IPv6 has addresses of IPv4, too
            "first,last,country,country_name,region,city",
            [
                '"0","16777215","-","-","-","-"',
                '"16777216","16777471","AU","Australia","Queensland","South Brisbane"',
                '"281470698520832","281470698521087","CN","China","-","-"',
                '"42540766411282592856903984951653826560","42540766411282592875350729025363378175","DE","Germany","",""',
            ],
            ["AU/Queensland/South Brisbane", "CN", "DE"],
        ),
        (
            "country_name,network",
            ["\ufeffAU,1.0.0.0/24", "-,1.0.1.0/24", "DE,2001:db8::/32"],
            ["AU", None, "DE"],
        ),
    ],
    ids=["DB-IP", "IP2Location", "networks"],
)
def test_files_without_names_of_columns_are_read_with_names_that_are_given(
    tmp_path: Path, columns: str, rows: list[str], found: list[str | None]
) -> None:
    path = tmp_path / "any.csv"
    path.write_text("\n".join(rows))
    import_places(path, columns=columns.split(","))
    assert places("1.0.0.7", "1.0.1.7", "2001:db8::7") == found


def test_columns_that_say_no_place_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "any.csv"
    path.write_text("1.0.0.0,1.0.0.255,AU\n")
    for columns in (
        "first,last",
        "first,country",
        "first,last,network,country",
        "network,country,country",
        "x",
    ):
        with pytest.raises(InvalidValue, match=f"The columns {columns} are wrong"):
            import_places(path, columns=columns.split(","))
    assert "any.csv, line 1: 3 columns, of 4" in refused(path, columns=["first", "last", "-", "country"])
    assert "any.csv, line 1: 'AU' does not" in refused(path, columns=["-", "country", "network"])


def refused(*paths: Path, **options: Any) -> str:
    with pytest.raises(InvalidGeoSource) as error:
        import_places(*paths, **options)
    assert look() is None
    return str(error.value)


@pytest.mark.parametrize("kept", [0, 1, 100, -1, -30, -60])
def test_a_maxmind_db_that_is_cut_off_is_reported(tmp_path: Path, kept: int) -> None:
    path = write_mmdb(tmp_path / "any.mmdb", NETWORKS)
    content = path.read_bytes()
    path.write_bytes(content[:kept])
    assert f"{path} is not a whole MaxMind DB" in refused(path)
    path.write_bytes(content[:-400] + content[-300:])
    assert str(path) in refused(path)


@pytest.mark.parametrize(
    "record",
    [
        *("US", 5, {"country": "US"}, {"country": {"names": ["a"]}}),
        *({"subdivisions": {"a": 1}}, {"country": {"iso_code": 5}}),
    ],
)
def test_a_record_of_another_form_is_reported(tmp_path: Path, record: Any) -> None:
    said = refused(write_mmdb(tmp_path / "any.mmdb", {"1.0.0.0/8": record}, database_type="Flat"))
    assert ("network 1.0.0.0/8" in said, "'Flat'" in said) == (True, True)


@pytest.mark.parametrize(
    "changed",
    [
        *({"node_count": Number(6, 1_000)}, {"node_count": Number(6, 1)}, {"record_size": Number(5, 32)}),
        *({"record_size": "24"}, {"ip_version": Number(5, 5)}),
        *({"build_epoch": Number(9, 2**63)}, {"build_epoch": Number(9, 2**40)}),
    ],
)
def test_a_maxmind_db_whose_metadata_lie_is_told(tmp_path: Path, changed: dict[str, Any]) -> None:
    assert "not a whole MaxMind DB" in refused(write_mmdb(tmp_path / "any.mmdb", NETWORKS, metadata=changed))


@pytest.mark.slow
def test_a_byte_that_was_changed_cannot_hurt_the_process(tmp_path: Path) -> None:
    """About one in thirty crashes the reader."""
    path = write_mmdb(tmp_path / "any.mmdb", NETWORKS)
    whole, random, results = path.read_bytes(), Random(7), Counter[str]()
    for _ in range(150):
        damaged = bytearray(whole)
        damaged[random.randrange(len(damaged))] = random.randrange(256)
        path.write_bytes(damaged)
        try:
            import_places(path)
        except InvalidGeoSource as error:
            results["crashed" if "ended with -" in str(error) else "told"] += 1
        else:
            results["read"] += 1  # such as another letter of a name
    assert results.keys() == {"crashed", "told", "read"}


def test_a_maxmind_db_of_something_else_or_with_a_tree_that_cannot_be_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "any.mmdb"
    write_mmdb(path, {"1.0.0.0/8": {"autonomous_system_number": 15169}}, database_type="Test-ASN")
    assert "none of 1 ranges has a country" in refused(path)
    assert str(path) in refused(write_mmdb(path, {"::/1": city("US")}))  # one record for all addresses
    content = write_mmdb(path, {"128.0.0.0/1": city("US")}, ip_version=4).read_bytes()
    assert content[:6] == bytes((0, 0, 1, 0, 0, 17))  # the only node: nothing, and the first record
    path.write_bytes(bytes(3) + content[3:])  # it leads to itself
    assert "corrupt" in refused(path)


def added(files: tuple[Path, Path], which: int, more: bytes) -> tuple[Path, Path]:
    with files[which].open("ab") as file:
        file.write(more)
    return files


OVERLAP = "1.0.0.0 to 1.255.255.255 overlaps 1.0.0.0 to 1.0.0.255 of GeoLite2-City-Blocks.csv, line 2"


@pytest.mark.parametrize(
    ("write", "arguments", "said"),
    [
        *(
            (lambda folder, *blocks: write_old_csv(folder, blocks, OLD), blocks, said)
            for blocks, said in (
                ([(1, 5, 1), (9, 7, 1)], "Blocks.csv, line 4: the range from 9 to 7"),
                ([(1, 5, 1), (5, 7, 1)], "line 4: 0.0.0.5 to 0.0.0.7 overlaps 0.0.0.1 to 0.0.0.5 of GeoLite"),
                ([(15, 16, 1), (10, 30, 1)], "line 4: 0.0.0.10 to 0.0.0.30 overlaps 0.0.0.15 to 0.0.0.16 of"),
                ([(1, 2**32, 1)], "line 3: the range from 1 to 4294967296"),
                ([(1, 5, 9)], "line 3: location '9' is not in GeoLiteCity-Location.csv"),
                ([("x", 5, 1)], "line 3: invalid literal"),
                ([(1, "", 1)], "line 3: invalid literal"),
                ([(1, 5, 3)], "none of 1 ranges has a country"),
                ([], "none of 0 ranges has a country"),
            )
        ),
        *(
            (lambda folder, network: write_new_csv(folder, [GOOD, (network, "1")]), [network], said)
            for network, said in (
                ("1.0.0.1/24", "line 3: 1.0.0.1/24 has host bits set"),
                ("1.0.0.0/33", "line 3: '1.0.0.0/33' does not appear to be"),
                ("1.0.0.0/8", f"line 3: {OVERLAP}"),
                ("", "line 3: '' does not appear to be"),
            )
        ),
        *(
            (lambda folder, more: added(write_old_csv(folder, [(1, 5, 1)], OLD), 1, more), [more], said)
            for more, said in (
                (b"1,2\n", "Location.csv, line 6: 2 columns, of 9"),
                (b"1,US,CA,Palo Alto\n", "line 6: location '1' was another place before"),
                (b'1,"' + b"x" * 200_000 + b'"\n', "line 6: field larger than field limit"),
            )
        ),
        (lambda folder: added(write_new_csv(folder, [GOOD]), 0, b"\xff" * 20_000), [], "Blocks.csv, line"),
        (lambda folder: added(write_new_csv(folder, [GOOD]), 1, b"\xfc"), [], "Locations-en.csv, line"),
    ],
)
def test_wrong_csv_files_are_told_with_file_and_line(
    tmp_path: Path, write: Any, arguments: list[Any], said: str
) -> None:
    assert said in refused(*write(tmp_path, *arguments))


@pytest.mark.parametrize("content", [b"", b"\0" * 999, b"\xff\xd8\xff" * 999, b"a,b,c\n1,2,3\n", b"{}\n"])
def test_a_file_of_no_known_kind_is_reported(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "any"
    path.write_bytes(content)
    assert f"{path} is not a MaxMind DB" in refused(path)


def test_files_that_do_not_belong_together_are_reported(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    mmdb = write_mmdb(tmp_path / "any.mmdb", NETWORKS)
    blocks, locations = write_old_csv(tmp_path, [(1, 5, 1)], OLD)
    new_blocks, new_locations = write_new_csv(tmp_path / "new", [("1.0.0.0/24", "1")])

    more = [blocks, new_locations], [blocks, locations, new_locations]
    for files in ([blocks], [locations], [new_blocks], *more):
        assert "of the same source, are needed" in refused(*files)
    assert "Import it alone" in refused(mmdb, blocks)
    assert "No file is given" in refused()


def test_without_the_package_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_mmdb(tmp_path / "any.mmdb", NETWORKS)
    monkeypatch.setitem(sys.modules, "maxminddb", None)
    with pytest.raises(ExtraNotInstalled, match=r"components\[logs\]"):
        import_places(path)


def test_a_table_needs_a_name(tmp_path: Path) -> None:
    asks = [look, GeoTable.load, lambda name: place_name("US", table=name)]
    for ask in [*asks, lambda name: import_places(tmp_path, name=name)]:
        with pytest.raises(InvalidName):
            ask("")
