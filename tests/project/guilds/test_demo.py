"""The guilds of the demo data."""

from __future__ import annotations

import pytest
from redis import Redis

from components.services.chat import Chat
from components.services.mailboxes import Mailbox
from project.guilds import demo as demo_guilds
from project.guilds.books import guilds
from project.guilds.models import Guild
from project.market import demo, townsfolk
from project.market.books import for_sale
from project.market.models import Listing, Player
from tests.support.mailboxes import texts


@pytest.fixture
def few_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one script, not of all: they make loading slow."""
    monkeypatch.setattr(townsfolk, "NAMES", townsfolk.NAMES[:1])


def members() -> dict[str, list[str]]:
    """Those who can log in."""
    return {
        guild.name: [
            str(each.player) for each in guild.memberships.all() if each.player.user.has_usable_password()
        ]
        for guild in Guild.objects.all()
    }


@pytest.mark.usefixtures("few_others")
def test_the_players_are_in_two_guilds(db: None) -> None:
    demo.load()

    assert members() == {"Lantern Keepers": ["joe", "jack", "jeff"], "Salt and Thunder": ["jill", "june"]}


@pytest.mark.usefixtures("few_others", "transactional_db")
def test_all_members_of_each_guild_are_in_its_chat_with_a_talk_and_jack_has_mail(
    redis: Redis,
) -> None:
    demo.load()
    demo.load()

    for guild in Guild.objects.all():
        chat = Chat(guild.chat_id)
        mates = guild.memberships.order_by("pk").values_list("player__user", flat=True)
        people = [str(user_id) for user_id in mates]
        assert {member.user for member in chat.members()} == set(people)
        assert chat.info().members == len(people) > len(members()[guild.name])
        said = [message.text for message in chat.history(people[0]).messages if message.sender]
        plan = demo_guilds.GUILDS[guild.name]
        assert said == [plan.welcome, *(text for _, text in plan.talk)]
    jack = Player.objects.get(user__username="jack")
    assert texts(Mailbox(str(jack.user_id)).peek()) == ["Good that you are with us, jack."]


@pytest.mark.usefixtures("transactional_db")
def test_people_and_items_are_found_in_many_scripts(redis: Redis) -> None:
    demo.load()
    demo.load()

    joe = Player.objects.get(user__username="joe")
    book = guilds.of(joe.membership.guild_id)
    mates = Player.objects.filter(membership__guild=joe.membership.guild)
    assert book.count() == mates.count() > 200
    for prefix in ("j", "jenk", "ode", "соколов", "παπ", "כהן", "حداد", "अर्जुन", "สมชาย", "李", "佐", "김"):
        assert book.complete(prefix), prefix
    assert for_sale.book.count() == Listing.objects.count()
    for prefix in ("moon", "epee", "zur", "青龙", "ماء"):
        assert for_sale.book.complete(prefix), prefix


@pytest.mark.usefixtures("few_others")
def test_a_player_admitted_to_another_guild_stays_there(db: None) -> None:
    demo.load()
    jack = Player.objects.get(user__username="jack")
    jack.membership.guild = Guild.objects.get(name="Salt and Thunder")
    jack.membership.save()

    demo.load()

    assert "jack" in members()["Salt and Thunder"]
