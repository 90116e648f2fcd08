"""The demo counts as any project may: its requests are a chart beside its sales."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.test import Client, override_settings
from django.urls import reverse
from redis import Redis

from components.services.counters import buffer, flush

SALES = "admin:market_sale_changelist"


@pytest.fixture(autouse=True)
def by_hand(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Requests are counted, and nothing is sent but by flush()."""
    monkeypatch.setattr(buffer, "INTERVAL", 3_600.0)
    counting = "components.middleware.CountRequestsMiddleware"
    with override_settings(MIDDLEWARE=[counting, *settings.MIDDLEWARE]):
        yield


def test_requests_to_the_shop_are_a_chart_in_the_admin(admin_client: Client, redis: Redis) -> None:
    for _ in range(3):
        admin_client.get(reverse("market:browse"))
    flush()

    page = admin_client.get(reverse(SALES)).content.decode()

    assert "charts.css" in page
    assert "requests:market:browse: 3 in all" in page
    assert "requests:market:buy: 0 in all" in page


def test_staff_without_permission_for_counters_see_sales_alone(db: None, redis: Redis) -> None:
    seller = User.objects.create_user("clerk", is_staff=True)
    seller.user_permissions.set(Permission.objects.filter(codename="view_sale"))
    client = Client()
    client.force_login(seller)

    page = client.get(reverse(SALES)).content.decode()

    assert "0 sales" in page
    assert "chart" not in page
