"""The mail page: what comes stays until it was read, what is sent is sent once, none comes from outside the guild."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest
from django.test import Client
from django.urls import reverse
from redis import Redis

from components.people import people
from components.services.mailboxes import Mailbox
from project.guilds import letters
from project.market.models import Player
from tests.project.market.test_views import as_player, text

MAIL = reverse("guilds:mail")
READ = reverse("guilds:read")


def mailbox(player: Player) -> Mailbox:
    return Mailbox(str(player.user_id))


def push(to: Player, sender: Player, *said: str) -> None:
    for each in said:
        mailbox(to).push(str(sender.user_id), each)


def send(client: Client, whom: Player, said: str = "hello", **more: str) -> str:
    """The words of the page after sending."""
    form = {"to": str(whom), "to-id": str(whom.user_id), "text": said, "client_id": "0" * 32, **more}
    return text(client.post(MAIL, form, follow=True))


def test_shown_messages_come_again_until_they_are_read(redis: Redis, joe: Player, jack: Player) -> None:
    push(jack, joe, "bring oil")
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


def test_a_form_that_is_sent_twice_is_one_message(redis: Redis, joe: Player, jack: Player) -> None:
    client = as_player(joe)

    send(client, jack)
    again = send(client, jack)

    assert "This message was already sent to jack, and was not sent again." in again
    assert mailbox(jack).depth() == 1


def test_text_from_players_is_text(redis: Redis, joe: Player, jack: Player) -> None:
    send(as_player(joe), jack, "<script>alert(1)</script><b>bold</b>")

    response = as_player(jack).get(MAIL)

    assert "<script>alert" not in response.content.decode()
    assert "&lt;b&gt;bold" in response.content.decode()
    assert "default-src 'self'" in response["Content-Security-Policy"]


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
