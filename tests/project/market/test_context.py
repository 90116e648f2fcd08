"""The purse stands on every page of the site, and the demo's own texts are English on all of them."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client
from redis import Redis

from project.market.models import Player


@pytest.mark.django_db
@pytest.mark.parametrize("address", ["/", "/chat/", "/guild/", "/mail/"])
def test_the_purse_is_shown_on_the_pages_of_all_apps(redis: Redis, client: Client, address: str) -> None:
    user = User.objects.create_user("jack")
    Player.objects.create(user=user, funds=4_711)
    client.force_login(user)

    assert "4,711 gold" in client.get(address).content.decode()


@pytest.mark.django_db
def test_a_visitor_has_no_purse(redis: Redis, client: Client) -> None:
    assert "Your purse" not in client.get("/").content.decode()


@pytest.mark.django_db
@pytest.mark.parametrize(("address", "language"), [("/", "en"), ("/guild/", "en"), ("/chat/", "de")])
def test_only_pages_that_are_translated_follow_the_browser(
    redis: Redis, client: Client, address: str, language: str
) -> None:
    user = User.objects.create_user("jack")
    Player.objects.create(user=user, funds=4_711)
    client.force_login(user)

    answer = client.get(address, headers={"Accept-Language": "de"})

    page = answer.content.decode()
    assert f'<html lang="{language}">' in page
    assert answer["Content-Language"] == language
    assert '<header class="top" lang="en">' in page
    assert "4,711 gold" in page
