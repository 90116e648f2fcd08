"""Cached rows in templates."""

from __future__ import annotations

from typing import Any

import pytest
from django.template import Context, Template, TemplateSyntaxError
from pytest_django import DjangoAssertNumQueries
from redis import Redis

from tests.db.models import Ware

pytestmark = pytest.mark.django_db(transaction=True)


def rendered(text: str, **values: Any) -> str:
    return Template("{% load cached_rows %}" + text).render(Context(values))


@pytest.mark.parametrize("name", ["db.ware", "db.Ware"])
def test_a_row_is_read_without_a_query(
    redis: Redis, name: str, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    ware = Ware.objects.create(name="<sword>", stock=3)
    Ware.cached.get(ware.pk)

    with django_assert_num_queries(0):
        text = rendered(
            "{% cached_row name pk as ware %}{{ ware.name }}: {{ ware.stock }}", name=name, pk=ware.pk
        )

    assert text == "&lt;sword&gt;: 3"


def test_a_row_that_there_is_not_is_none(redis: Redis) -> None:
    shown = '{% cached_row "db.ware" pk as ware %}{{ ware|default_if_none:"gone" }}'

    assert [rendered(shown, pk=pk) for pk in (10**6, None, "")] == ["gone"] * 3
    assert rendered(shown) == "gone"


def test_several_rows_come_in_their_order(
    redis: Redis, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    pks = [Ware.objects.create(name=name).pk for name in ("a", "b")]

    with django_assert_num_queries(1):
        text = rendered(
            '{% cached_rows "db.ware" pks stale=True as wares %}{% for each in wares %}{{ each.name }}{% endfor %}',
            pks=[pks[1], 10**6, pks[0]],
        )

    assert text == "ba"


def test_a_name_of_nothing_is_told_with_those_that_there_are(redis: Redis) -> None:
    with pytest.raises(
        TemplateSyntaxError, match=r"name .db\.wear.; the known names are: db\.flower, db\.ware, "
    ):
        rendered('{% cached_row "db.wear" 1 %}')
