"""The guilds of the demo data."""

from __future__ import annotations

import pytest
from redis import Redis

from components.services.chat import Chat
from components.services.mailboxes import Mailbox
from project.guilds.models import Guild
from project.market import demo
from project.market.models import Player
from tests.support.mailboxes import texts


def members() -> dict[str, list[str]]:
    return {
        guild.name: [str(each.player) for each in guild.memberships.all()] for guild in Guild.objects.all()
    }


def test_the_players_are_in_two_guilds(db: None) -> None:
    demo.load()

    assert members() == {"Lantern Keepers": ["joe", "jack", "jeff"], "Salt and Thunder": ["jill", "june"]}


@pytest.mark.usefixtures("transactional_db")
def test_each_guild_has_a_chat_with_a_word_of_welcome_and_jack_has_mail(redis: Redis) -> None:
    demo.load()
    demo.load()

    for guild in Guild.objects.all():
        chat = Chat(guild.chat_id)
        people = [str(each.player.user_id) for each in guild.memberships.all()]
        assert {member.user for member in chat.members()} == set(people)
        said = [message.text for message in chat.history(people[0]).messages if message.sender]
        assert len(said) == 1
    jack = Player.objects.get(user__username="jack")
    assert texts(Mailbox(str(jack.user_id)).peek()) == ["Good that you are with us, jack."]


def test_who_was_let_into_another_guild_stays_there(db: None) -> None:
    demo.load()
    jack = Player.objects.get(user__username="jack")
    jack.membership.guild = Guild.objects.get(name="Salt and Thunder")
    jack.membership.save()

    demo.load()

    assert "jack" in members()["Salt and Thunder"]
