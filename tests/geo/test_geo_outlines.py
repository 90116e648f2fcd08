"""The outlines of countries: which there are, and that they lie on the map."""

from __future__ import annotations

import re

from components.services.geo import country_outlines


def test_outlines_are_known_by_the_codes_of_address_tables():
    countries = country_outlines().countries

    assert len(countries) == 235
    assert {"US", "DE", "BR", "XK", "TW", "SG", "MT"} <= countries.keys()
    assert "AQ" not in countries
    assert all(re.fullmatch("[A-Z]{2}", code) for code in countries)


def test_a_country_is_a_shape_or_a_point_on_the_map():
    outlines = country_outlines()
    drawn = re.compile(r"(M\d+ -?\d+l-?[\d -]+z)+")

    assert [code for code, each in outlines.countries.items() if bool(each.path) == bool(each.x)] == []
    for each in outlines.countries.values():
        if each.path:
            assert drawn.fullmatch(each.path)
            for x, y in re.findall(r"M(\d+) (-?\d+)", each.path):
                assert 0 <= int(x) <= outlines.width
                assert 0 <= int(y) <= outlines.height
        else:
            assert 0 < each.x < outlines.width
            assert 0 < each.y < outlines.height
    assert outlines.countries["SG"].path == ""


def test_points_are_drawn_above_shapes():
    kinds = [bool(each.path) for each in country_outlines().countries.values()]

    assert kinds == sorted(kinds, reverse=True)
