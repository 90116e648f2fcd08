"""The directory of each guild: it follows its members, they alone may search it, and mail is addressed from it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.test import Client, override_settings
from django.urls import reverse
from redis import Redis

from components.exceptions import BookNotFound, RedisUnavailable
from components.services.autocomplete import RecentContacts
from components.services.mailboxes import Mailbox
from project.guilds import letters
from project.guilds.books import GuildBooks, guilds
from project.guilds.models import Guild, Membership
from project.market.models import Player
from tests.project.guilds.conftest import member
from tests.project.guilds.test_mail import MAIL, send
from tests.project.market.test_views import as_player, text

CONTACTS = reverse("guilds:contacts")


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


def test_a_former_member_finds_nobody(redis: Redis, joe: Player, jack: Player, keepers: Guild) -> None:
    guilds.rebuild()
    client = as_player(joe)
    assert asked(client, keepers).status_code == 200

    joe.membership.delete()

    assert asked(client, keepers).status_code == 404


def test_other_books_are_not_for_players(joe: Player) -> None:
    for book in ("guild:", "guild:x", "guild:999", "guild:01", "market.player", "other"):
        assert not GuildBooks().may_search(str(joe.user_id), book), book


def test_the_mail_page_offers_the_members_of_the_guild(
    redis: Redis, joe: Player, jack: Player, keepers: Guild
) -> None:
    html = as_player(joe).get(MAIL).content.decode()

    assert f'src="/api/books/guild%3A{keepers.pk}"' in html or f'src="/api/books/guild:{keepers.pk}"' in html
    assert f'contacts="{CONTACTS}"' in html


def test_the_book_of_a_player_is_that_of_their_guild(
    db: None, joe: Player, june: Player, keepers: Guild
) -> None:
    assert letters.GuildMates().book(str(joe.user_id)) == f"guild:{keepers.pk}"
    assert letters.GuildMates().book(str(june.user_id)) is None


@pytest.mark.parametrize("to", ["jack", "JACK", " Jàck ", "jack [{id}]"])
def test_a_typed_name_is_enough(redis: Redis, joe: Player, jack: Player, to: str) -> None:
    guilds.rebuild()

    page = send(as_player(joe), jack, to=to.format(id=jack.user_id), **{"to-id": ""})

    assert "Sent to jack." in page


def test_the_user_chooses_between_names_that_differ_only_in_case(
    redis: Redis, joe: Player, jack: Player, keepers: Guild
) -> None:
    other = member("Jack", keepers)
    guilds.rebuild()
    client = as_player(joe)

    page = send(client, jack, to="JACK", **{"to-id": ""})
    assert f"jack [{jack.user_id}]" in page
    assert f"Jack [{other.user_id}]" in page
    assert "Sent to Jack." in send(client, other)


def test_a_new_member_is_found_by_name_before_the_book_knows(redis: Redis, joe: Player, jack: Player) -> None:
    assert "Sent to jack." in send(as_player(joe), jack, **{"to-id": ""})


def test_a_former_member_is_not_written_to_though_the_book_still_has_them(
    redis: Redis, joe: Player, jack: Player, keepers: Guild
) -> None:
    guilds.rebuild()
    Membership.objects.filter(player=jack)._raw_delete("default")

    assert "only to members of your guild" in send(as_player(joe), jack, to="JACK")


def test_the_last_person_written_to_is_the_first_contact(
    redis: Redis, joe: Player, jack: Player, keepers: Guild
) -> None:
    jeff = member("jeff", keepers)
    client = as_player(joe)
    for to in (jack, jeff):
        send(client, to)

    found = client.get(CONTACTS)

    told = [(each["id"], each["label"]) for each in found.json()["contacts"]]
    assert told == [(str(jeff.user_id), "jeff"), (str(jack.user_id), "jack")]
    assert found["Cache-Control"] == "no-store"


def test_contacts_to_whom_one_may_not_write_are_not_offered_there(
    redis: Redis, joe: Player, jack: Player, jill: Player
) -> None:
    for other in (jack, jill, joe):
        RecentContacts(str(joe.user_id)).touch(str(other.user_id), label=str(other))
    User.objects.filter(username="jack").update(username="Jacques")

    assert [each.label for each in letters.contacts_of(joe)] == ["Jacques"]  # as he is called now


def test_a_letter_is_sent_though_the_contacts_do_not_learn_of_it(
    redis: Redis, joe: Player, jack: Player, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def away(*args: Any, **kwargs: Any) -> None:
        raise RedisUnavailable("Redis does not answer.")

    monkeypatch.setattr(RecentContacts, "touch", away)
    with caplog.at_level(logging.WARNING):
        assert "Sent to jack." in send(as_player(joe), jack)

    assert Mailbox(str(jack.user_id)).depth() == 1
    assert "jack was not added to the contacts of joe (Redis does not answer.)" in caplog.text


def test_a_large_guild_is_shown_page_by_page(redis: Redis, joe: Player, keepers: Guild) -> None:
    users = User.objects.bulk_create(User(username=f"mate{number}") for number in range(30))
    players = Player.objects.bulk_create(Player(user=user) for user in users)
    Membership.objects.bulk_create(Membership(guild=keepers, player=each) for each in players)

    page = text(as_player(joe).get(reverse("guilds:guild"), {"page": 2}))

    assert "Page 2 of 2" in page
    assert ("mate29 since" in page, "mate3 since" in page) == (True, False)
