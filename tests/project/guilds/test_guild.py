"""The page of a guild, and its chat, which follows who is in it."""

from __future__ import annotations

import logging

import pytest
from django.test import Client
from django.urls import reverse
from redis import Redis

from components.services.chat import Chat
from project.guilds import chats
from project.guilds.models import Guild, Membership
from project.market.models import Player
from tests.project.guilds.conftest import member
from tests.project.market.test_views import LOGIN, as_player, text

GUILD = reverse("guilds:guild")


def members(guild: Guild) -> set[str]:
    return {member.user for member in Chat(guild.chat_id).members()}


def ids(*players: Player) -> set[str]:
    return {str(player.user_id) for player in players}


def test_visitors_are_asked_to_log_in(client: Client, db: None) -> None:
    assert client.get(GUILD).url == f"{LOGIN}?next={GUILD}"


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


def test_a_player_without_a_guild_is_told_so(redis: Redis, june: Player) -> None:
    assert "You are not in a guild yet." in text(as_player(june).get(GUILD))


def test_the_page_says_what_is_unread(redis: Redis, joe: Player, jack: Player, keepers: Guild) -> None:
    chats.enter(keepers, joe.user_id)
    chats.enter(keepers, jack.user_id)
    chat = Chat(keepers.chat_id)
    chat.send(str(joe.user_id), "hello")
    chat.send(str(joe.user_id), "jack!", mentions=[str(jack.user_id)])

    assert "2 unread messages, 1 of them mentions you" in text(as_player(jack).get(GUILD))
    assert "You have read everything." in text(as_player(joe).get(GUILD))


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


def test_a_person_blocked_in_a_chat_stays_out_of_it(
    redis: Redis, joe: Player, jack: Player, keepers: Guild
) -> None:
    chats.enter(keepers, joe.user_id)
    Chat(keepers.chat_id).block(str(jack.user_id))

    page = text(as_player(jack).get(GUILD))

    assert "You are blocked in the guild's chat." in page
    assert members(keepers) == ids(joe)


def test_a_guild_that_was_empty_for_a_time_has_its_chat_again(
    redis: Redis, joe: Player, keepers: Guild
) -> None:
    for _ in range(2):
        chats.enter(keepers, joe.user_id)
        assert members(keepers) == ids(joe)
        chats.leave(keepers, joe.user_id)
        chats.leave(keepers, joe.user_id)


def test_while_redis_is_away_the_members_are_shown(joe: Player, jack: Player) -> None:
    response = as_player(joe).get(GUILD)

    assert response.status_code == 200
    assert "The chat is unavailable at the moment." in text(response)
    assert "jack since" in text(response)


def test_a_page_that_needs_redis_keeps_the_navigation_while_redis_is_away(joe: Player) -> None:
    response = as_player(joe).get(reverse("components:chats"))

    assert response.status_code == 503
    page = text(response)
    assert "This page is away for a moment" in page
    assert "Log out joe" in page
    assert f'href="{GUILD}"' in response.content.decode()
