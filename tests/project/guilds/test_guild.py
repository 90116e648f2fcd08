"""The page of a guild, and its chat, which follows who is in it."""

from __future__ import annotations

import logging

import pytest
from django.urls import reverse
from redis import Redis

from components.services.chat import Chat
from project.guilds.models import Guild, Membership
from project.market.models import Player
from tests.project.guilds.conftest import member
from tests.project.market.test_views import as_player, text

GUILD = reverse("guilds:guild")


def members(guild: Guild) -> set[str]:
    return {member.user for member in Chat(guild.chat_id).members()}


def ids(*players: Player) -> set[str]:
    return {str(player.user_id) for player in players}


def test_the_page_shows_who_is_in_the_guild_and_leads_to_its_chat(
    redis: Redis, joe: Player, jack: Player, jill: Player, keepers: Guild
) -> None:
    response = as_player(joe).get(GUILD)

    page = text(response)
    assert "Lantern Keepers Leave a light on." in page
    assert "joe since" in page
    assert "jack since" in page
    assert "jill since" not in page
    assert f'href="{reverse("components:chat", args=[keepers.chat_id])}"' in response.content.decode()
    assert f'href="{reverse("guilds:mail")}?to={jack.user_id}#write"' in response.content.decode()


@pytest.mark.usefixtures("transactional_db")
def test_the_chat_follows_arrivals_and_departures(redis: Redis, keepers: Guild) -> None:
    joe, jack = member("joe", keepers), member("jack", keepers)
    assert members(keepers) == ids(joe, jack)

    Membership.objects.get(player=joe).delete()

    assert members(keepers) == ids(jack)
    Membership.objects.create(guild=keepers, player=joe)
    assert members(keepers) == ids(joe, jack)


@pytest.mark.usefixtures("transactional_db")
def test_the_page_makes_good_what_redis_was_not_told(
    keepers: Guild, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        joe = member("joe", keepers)
    assert "A change was not applied to the chat" in caplog.text
    request.getfixturevalue("redis")

    assert "Open the guild's chat" in text(as_player(joe).get(GUILD))

    assert members(keepers) == ids(joe)
