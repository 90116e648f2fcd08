"""Cached rows over HTTP: permission, values, and what browsers may keep."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpResponse
from django.test import Client
from django.test.utils import override_settings
from django.urls import include, path
from pytest_django import DjangoAssertNumQueries
from redis import Redis

from components.embedded import EmbeddedServer
from components.services.rates import RateLimit
from components.services.rows import Loader
from components.services.rows import view as views
from components.services.rows.view import everybody, rows_view
from tests.db.models import Token, Ware
from tests.fixtures.api import problem
from tests.support.monitoring import sent_to
from tests.support.rows import let_pass

pytestmark = pytest.mark.django_db(transaction=True)

FIELDS = ["name", "stock", "price", "weight"]


def first_only(user: str, keys: Sequence[str]) -> set[str]:
    """Each user may read one row."""
    return set(keys[:1])


urlpatterns = [
    path("", include("components.urls")),
    path("wares", rows_view(Ware.cached, fields=FIELDS, readable=everybody)),
    path("wares/<str:pk>", rows_view(Ware.cached, fields=FIELDS, readable=everybody)),
    path("staff", rows_view(Ware.cached, fields=["stock"])),
    path("some", rows_view(Ware.cached, fields=["stock"], readable=first_only, most=2)),
    path("tokens", rows_view(Token.cached, fields=["word"], readable=everybody)),
]


@pytest.fixture(autouse=True)
def site(redis: Redis) -> Iterator[None]:
    with override_settings(ROOT_URLCONF=__name__):
        yield


@pytest.fixture
def sword() -> Ware:
    return Ware.objects.create(name="sword", stock=3, price=Decimal("9.9000"), weight=float("inf"))


def kept_for(answer: HttpResponse) -> int:
    """For how many seconds a browser may keep it."""
    return int(answer["Cache-Control"].rpartition("=")[2])


def member(name: str, **rights: Any) -> Client:
    client = Client()
    client.force_login(User.objects.create(username=name, **rights))
    return client


def test_rows_are_served_as_they_are_stored_by_their_keys_without_missing_ones(
    client: Client,
    sword: Ware,
    redis_server: EmbeddedServer,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    shield = Ware.objects.create(name="shield")
    address = f"/wares?pk={shield.pk}&pk={sword.pk}&pk={sword.pk}"

    told = client.get(f"{address}&pk=1000000").json()["rows"]
    with sent_to(redis_server) as sent, django_assert_num_queries(0):
        client.get(address)

    assert list(told) == [str(shield.pk), str(sword.pk)]
    assert told[str(shield.pk)]["weight"] is None
    assert told[str(sword.pk)] == client.get(f"/wares/{sword.pk}").json()
    assert told[str(sword.pk)] == {"name": "sword", "stock": 3, "price": "9.9000", "weight": "inf"}
    assert sent == ["EVALSHA"]  # one round trip


def test_an_answer_is_kept_for_the_delay_and_304_until_a_value_changes(
    client: Client, redis: Redis, sword: Ware
) -> None:
    first = client.get(f"/wares/{sword.pk}")
    let_pass(redis, 20)
    later = client.get(f"/wares/{sword.pk}")
    let_pass(redis, 11)  # and it is loaded anew
    again = client.get(f"/wares/{sword.pk}", headers={"If-None-Match": first["ETag"]})
    sword.stock = 2
    sword.save()
    changed = client.get(f"/wares/{sword.pk}", headers={"If-None-Match": first["ETag"]})

    assert first["Cache-Control"].startswith("public, max-age=")
    assert (20 < kept_for(first) <= 29, 0 <= kept_for(later) <= 9) == (True, True)
    assert first["Vary"] == "Accept-Language"  # by LocaleMiddleware; the answer is the same for everybody
    assert not first.has_header("Last-Modified")
    assert (again.status_code, again.content, again["ETag"]) == (304, b"", first["ETag"])
    assert (changed.status_code, changed.json()["stock"]) == (200, 2)


@pytest.mark.parametrize("query", ["", "pk=", "pk=x", "pk=1&key=2", "pk=%00", "&pk=1" * 101])
def test_an_invalid_query_is_a_problem(client: Client, query: str) -> None:
    problem(client.get(f"/wares?{query}"), 422, "invalid-value")
    problem(client.get(f"/tokens?{query if '%' in query else 'pk=' + 'a' * 513}"), 422, "invalid-value")


def test_by_default_people_who_may_view_the_model_in_the_admin_may_read(client: Client, sword: Ware) -> None:
    address = f"/staff?pk={sword.pk}"
    viewer = User.objects.create(username="viewer", is_staff=True)
    viewer.user_permissions.add(Permission.objects.get(codename="view_ware"))
    client.force_login(viewer)

    problem(Client().get(address), 401, "not-authenticated")
    assert member("joe").get(address).json() == {"rows": {}}
    assert member("guard", is_staff=True).get(address).json() == {"rows": {}}
    answer = client.get(address)
    assert answer.json() == {"rows": {str(sword.pk): {"stock": 3}}}
    assert answer["Cache-Control"].startswith("private, max-age=")
    assert "Cookie" in answer["Vary"]


def test_a_row_that_may_not_be_read_looks_like_one_that_does_not_exist(sword: Ware) -> None:
    shield = Ware.objects.create(name="shield")
    joe = member("joe")
    refused = joe.get(f"/some?pk={sword.pk}&pk={shield.pk}")
    missing = joe.get(f"/some?pk={sword.pk}&pk=1000000")
    assert refused.json() == missing.json() == {"rows": {str(sword.pk): {"stock": 3}}}
    assert refused.headers == missing.headers
    problem(joe.get("/some?pk=1&pk=2&pk=3"), 422, "invalid-value")


def test_a_client_that_asks_too_often_is_told_to_wait(monkeypatch: pytest.MonkeyPatch, sword: Ware) -> None:
    monkeypatch.setattr(views, "RATE", RateLimit("tests", "1/h"))
    joe = member("joe")
    joe.get(f"/some?pk={sword.pk}")
    answer = joe.get(f"/some?pk={sword.pk}")
    problem(answer, 429, "too-fast")
    assert int(answer["Retry-After"]) > 1
    assert Client().get(f"/wares/{sword.pk}").status_code == 200


@pytest.mark.parametrize("fields", [[], ["none"], "name", ["password"]])
def test_only_cached_fields_can_be_served(fields: Any) -> None:
    with pytest.raises(ImproperlyConfigured, match="cannot be served"):
        rows_view(Ware.cached, fields=fields)


# Without an answer of Redis or the database


def test_a_row_that_is_not_loaded_in_time_is_a_problem(
    client: Client, monkeypatch: pytest.MonkeyPatch, sword: Ware
) -> None:
    Ware.cached.schedule(sword.pk)
    Loader().claim()
    monkeypatch.setattr(
        Ware.cached, "get_many", lambda pks: type(Ware.cached).get_many(Ware.cached, pks, wait=0)
    )
    answer = client.get(f"/wares/{sword.pk}")
    problem(answer, 503, "row-not-loaded")
    assert answer["Retry-After"] == "1"
