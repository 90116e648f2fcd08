"""Guilds: their page; their chat and their directory, which follow the members; mail, which stays among them."""

import logging
import re
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.test import Client, override_settings
from django.urls import reverse
from redis import Redis

from components.exceptions import BookNotFound, ChatNotFound
from components.people import people
from components.services.chat import Chat
from components.services.mailboxes import Mailbox
from project.guilds import letters
from project.guilds.books import guilds
from project.guilds.models import Guild, Membership
from project.market.models import Player
from tests.project.market.conftest import as_player, player, text

GUILD = reverse("guilds:guild")
MAIL = reverse("guilds:mail")
READ = reverse("guilds:read")


@pytest.fixture(autouse=True)
def the_demos_rules() -> Iterator[None]:
    """Who may write to whom, and who may search what, is as the demo has it."""
    rules = {"PEOPLE": "project.guilds.letters.GuildMates", "BOOKS": "project.guilds.books.GuildBooks"}
    with override_settings(COMPONENTS={**settings.COMPONENTS, **rules}):
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


# The page and the chat


def members(guild: Guild) -> set[str]:
    """Who is in its chat, of which the last to leave is the end."""
    try:
        return {member.user for member in Chat(guild.chat_id).members()}
    except ChatNotFound:
        return set()


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
def test_the_page_makes_good_what_redis_was_not_told(
    keepers: Guild, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        joe = member("joe", keepers)
    assert "A change was not applied to the chat" in caplog.text
    request.getfixturevalue("redis")

    assert "Open the guild's chat" in text(as_player(joe).get(GUILD))

    assert members(keepers) == ids(joe)


# The directory


def names(guild: Guild, prefix: str) -> list[str]:
    try:
        return [each.label for each in guilds.of(guild.pk).complete(prefix)]
    except BookNotFound:
        return []


def asked(client: Client, guild: Guild) -> Any:
    return client.get(reverse("components:api-book", args=[f"guild:{guild.pk}"]), {"q": "j"})


@pytest.mark.usefixtures("transactional_db")
def test_chat_and_book_follow_joins_renames_moves_and_departures(
    redis: Redis, keepers: Guild, sailors: Guild
) -> None:
    joe, jack = member("joe", keepers), member("jack", keepers)
    assert (names(keepers, "j"), names(sailors, "j")) == (["jack", "joe"], [])
    assert members(keepers) == ids(joe, jack)

    joe.user.username = "Jörg"
    joe.user.save()
    assert names(keepers, "jo") == ["Jörg"]
    assert guilds.of(keepers.pk).get(str(joe.user_id)) is not None  # as everywhere, the id is the user's

    jack.membership.guild = sailors
    jack.membership.save()
    assert (names(keepers, "j"), names(sailors, "j")) == (["Jörg"], ["jack"])
    assert (members(keepers), members(sailors)) == (ids(joe), ids(jack))

    joe.user.delete()
    jack.membership.delete()
    assert (names(keepers, "j"), names(sailors, "j")) == ([], [])
    assert members(sailors) == set()


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


# Mail


def mailbox(player: Player) -> Mailbox:
    return Mailbox(str(player.user_id))


def send(client: Client, whom: Player, said: str = "hello", **more: str) -> str:
    """The words of the page after sending."""
    form = {"to": str(whom), "to-id": str(whom.user_id), "text": said, "client_id": "0" * 32, **more}
    return text(client.post(MAIL, form, follow=True))


def test_shown_messages_come_again_until_they_are_read(redis: Redis, joe: Player, jack: Player) -> None:
    for _ in range(2):  # a form that is sent twice is one message
        said = send(as_player(joe), jack, "bring oil")
    assert "This message was already sent to jack, and was not sent again." in said
    assert mailbox(jack).depth() == 1
    client = as_player(jack)

    assert "new bring oil" in text(client.get(MAIL))
    again = client.get(MAIL)
    assert "bring oil" in text(again)
    assert "new bring oil" not in text(again)
    [upto] = re.findall(r'name="upto" value="(\d+)"', again.content.decode())
    read = client.post(READ, {"upto": upto}, follow=True)

    assert "You have no mail." in text(read)
    assert mailbox(jack).depth() == 0


def test_mail_from_outside_the_guild_is_refused(
    redis: Redis, joe: Player, jill: Player, june: Player
) -> None:
    for sender, recipient in ((jill, joe), (joe, jill), (june, joe), (joe, june), (joe, joe)):
        assert "only to members of your guild" in send(as_player(sender), recipient)

    assert [mailbox(player).depth() for player in (joe, jill, june)] == [0, 0, 0]


def test_the_rule_holds_wherever_mail_is_sent_from(
    redis: Redis, joe: Player, jack: Player, jill: Player, june: Player
) -> None:
    everybody = [str(player.user_id) for player in (joe, jack, jill, june)]

    def refused(by: str, ids: Iterable[str]) -> set[str]:
        return people().refused(by, ids)

    assert refused(everybody[0], everybody) == set(everybody[2:])
    assert refused(everybody[3], everybody) == set(everybody[:3])  # in no guild, like nobody else
    assert refused("nobody", everybody) == set(everybody)
    assert refused(everybody[0], ["nobody", "", "²", "9" * 30]) == {"nobody", "", "²", "9" * 30}
    with pytest.raises(letters.NotAGuildMate, match="jill is not in your guild"):
        letters.write(joe, jill, "hello", client_id="a")


def test_while_redis_is_away_nothing_is_claimed_and_what_was_written_is_kept(
    joe: Player, jack: Player
) -> None:
    client = as_player(joe)
    form = {"to": "jack", "text": "bring oil", "client_id": "0" * 32}

    response = client.post(MAIL, form)

    assert response.status_code == 503
    assert response["Retry-After"] == "10"
    assert "The message was not sent" in text(response)
    assert "bring oil" in response.content.decode()
    assert 'value="' + "0" * 32 in response.content.decode()
    assert client.get(MAIL).status_code == 503
