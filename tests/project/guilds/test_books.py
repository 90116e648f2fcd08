"""The directory of each guild: it follows its members, they alone may search it, and mail is addressed from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.test import Client, override_settings
from django.urls import reverse
from redis import Redis

from components.exceptions import BookNotFound
from project.guilds.books import guilds
from project.guilds.models import Guild
from project.market.models import Player
from tests.project.guilds.conftest import member
from tests.project.market.test_views import as_player


@pytest.fixture(autouse=True)
def the_demos_readers() -> Iterator[None]:
    with override_settings(COMPONENTS={**settings.COMPONENTS, "BOOKS": "project.guilds.books.GuildBooks"}):
        yield


def names(guild: Guild, prefix: str) -> list[str]:
    try:
        return [each.label for each in guilds.of(guild.pk).complete(prefix)]
    except BookNotFound:
        return []


def asked(client: Client, guild: Guild, prefix: str = "j") -> Any:
    return client.get(reverse("components:api-book", args=[f"guild:{guild.pk}"]), {"q": prefix})


@pytest.mark.usefixtures("transactional_db")
def test_the_book_follows_joins_renames_moves_and_departures(
    redis: Redis, keepers: Guild, sailors: Guild
) -> None:
    joe, jack = member("joe", keepers), member("jack", keepers)
    assert (names(keepers, "j"), names(sailors, "j")) == (["jack", "joe"], [])

    joe.user.username = "Jörg"
    joe.user.save()
    assert names(keepers, "jo") == ["Jörg"]
    assert guilds.of(keepers.pk).get(str(joe.user_id)) is not None  # as everywhere, the id is the user's

    jack.membership.guild = sailors
    jack.membership.save()
    assert (names(keepers, "j"), names(sailors, "j")) == (["Jörg"], ["jack"])

    joe.user.delete()
    jack.membership.delete()
    assert (names(keepers, "j"), names(sailors, "j")) == ([], [])


def test_only_members_and_staff_who_may_view_them_search_a_guild(
    redis: Redis, joe: Player, jack: Player, jill: Player, june: Player, keepers: Guild
) -> None:
    guilds.rebuild()
    guard = User.objects.create(username="guard", is_staff=True)
    trusted = User.objects.create(username="trusted", is_staff=True)
    trusted.user_permissions.add(Permission.objects.get(codename="view_membership"))

    assert asked(as_player(joe), keepers).json()["entries"] == [
        {"id": str(jack.user_id), "label": "jack"},
        {"id": str(joe.user_id), "label": "joe"},
    ]
    for user, status in ((jill.user, 404), (june.user, 404), (guard, 404), (trusted, 200)):
        client = Client()
        client.force_login(user)
        assert asked(client, keepers).status_code == status
    assert asked(Client(), keepers).status_code == 401
