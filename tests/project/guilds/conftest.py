"""Two guilds: joe and jack in one, jill in another, june in none."""

from __future__ import annotations

import pytest
from django.conf import settings
from django.test import override_settings

from project.guilds.models import Guild, Membership
from project.market.models import Player
from tests.project.market.conftest import player


@pytest.fixture(autouse=True)
def the_demos_rule():
    """Who may write to whom is as the demo has it."""
    with override_settings(COMPONENTS={**settings.COMPONENTS, "PEOPLE": "project.guilds.letters.GuildMates"}):
        yield


@pytest.fixture
def keepers(db: None) -> Guild:
    return Guild.objects.create(name="Lantern Keepers", motto="Leave a light on.")


@pytest.fixture
def sailors(db: None) -> Guild:
    return Guild.objects.create(name="Salt and Thunder")


def member(name: str, guild: Guild) -> Player:
    """Known to the chat only once a transaction has ended, which in a test it does not."""
    made = player(name)
    Membership.objects.create(guild=guild, player=made)
    return made


@pytest.fixture
def joe(keepers: Guild) -> Player:
    return member("joe", keepers)


@pytest.fixture
def jack(keepers: Guild) -> Player:
    return member("jack", keepers)


@pytest.fixture
def jill(sailors: Guild) -> Player:
    return member("jill", sailors)


@pytest.fixture
def june(db: None) -> Player:
    return player("june")
