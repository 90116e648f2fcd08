"""The mail page: what comes stays until it was read, what is sent is sent once, none comes from outside the guild."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest
from django.test import Client
from django.urls import reverse
from redis import Redis

from components.people import people
from components.services.mailboxes import Fate, Mailbox
from project.guilds import letters
from project.market.models import Player
from tests.project.market.test_views import LOGIN, as_player, text
from tests.support.mailboxes import texts

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


def test_visitors_are_asked_to_log_in(client: Client, db: None) -> None:
    assert client.get(MAIL).url == f"{LOGIN}?next={MAIL}"
    assert client.post(READ, {"upto": "1"}).url == f"{LOGIN}?next={READ}"


def test_a_message_reaches_a_member_of_the_guild(redis: Redis, joe: Player, jack: Player) -> None:
    assert "Sent to jack." in send(as_player(joe), jack, "bring oil\nand rope")

    page = text(as_player(jack).get(MAIL))

    assert "joe , now new bring oil and rope" in page
    assert [mail.sender for mail in mailbox(jack).peek()] == [str(joe.user_id)]


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


def test_messages_that_arrive_while_reading_stay_unread(redis: Redis, joe: Player, jack: Player) -> None:
    push(jack, joe, "one")
    client = as_player(jack)
    [upto] = re.findall(r'name="upto" value="(\d+)"', client.get(MAIL).content.decode())
    push(jack, joe, "two")

    client.post(READ, {"upto": upto})

    assert texts(mailbox(jack).peek()) == ["two"]


def test_many_are_read_page_by_page(redis: Redis, joe: Player, jack: Player) -> None:
    push(jack, joe, *(f"message {number}." for number in range(25)))
    client = as_player(jack)

    first = client.get(MAIL)
    [upto] = re.findall(r'name="upto" value="(\d+)"', first.content.decode())
    second = client.post(READ, {"upto": upto}, follow=True)

    assert "5 more wait." in text(first)
    assert ("message 19." in text(first), "message 20." in text(first)) == (True, False)
    assert ("message 19." in text(second), "message 20." in text(second)) == (False, True)


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


def test_a_player_who_left_the_guild_meanwhile_gets_nothing(redis: Redis, joe: Player, jack: Player) -> None:
    client = as_player(joe)
    assert "A member of your guild." in text(client.get(MAIL))
    jack.membership.delete()

    assert "only to members of your guild" in send(client, jack)
    assert mailbox(jack).depth() == 0


def test_a_form_that_is_sent_twice_is_one_message(redis: Redis, joe: Player, jack: Player) -> None:
    client = as_player(joe)

    send(client, jack)
    again = send(client, jack)

    assert "This message was already sent to jack, and was not sent again." in again
    assert mailbox(jack).depth() == 1


def test_each_form_has_an_id_of_its_own(redis: Redis, joe: Player, jack: Player) -> None:
    client = as_player(joe)

    forms = {re.findall(r'value="([0-9a-f]{32})"', client.get(MAIL).content.decode())[0] for _ in range(2)}

    assert len(forms) == 2


def test_senders_see_what_became_of_their_message(redis: Redis, joe: Player, jack: Player) -> None:
    client = as_player(joe)
    send(client, jack, "bring oil")

    def became() -> str:
        return text(client.get(MAIL)).partition("Sent mail")[2]

    assert "jack bring oil waiting" in became()
    as_player(jack).get(MAIL)
    assert "jack bring oil was shown" in became()
    mailbox(jack).acknowledge(mailbox(jack).peek()[0].id)
    assert "jack bring oil was read" in became()


def test_a_picture_is_a_link(redis: Redis, joe: Player, jack: Player) -> None:
    send(as_player(joe), jack, "", picture="https://example.com/lake.png")

    html = as_player(jack).get(MAIL).content.decode()

    assert '<a href="https://example.com/lake.png" rel="noopener noreferrer nofollow">' in html


@pytest.mark.parametrize("link", ["javascript:alert(1)", "ftp://example.com/a", "data:text/html,x", 7, None])
def test_other_links_are_none(redis: Redis, joe: Player, jack: Player, link: object) -> None:
    if isinstance(link, str):
        assert "Enter a valid URL." in send(as_player(joe), jack, "look", picture=link)
    mailbox(jack).push(str(joe.user_id), "look", data={"picture": link})

    html = as_player(jack).get(MAIL).content.decode()

    assert "Open the picture" not in html


def test_text_from_players_is_text(redis: Redis, joe: Player, jack: Player) -> None:
    send(as_player(joe), jack, "<script>alert(1)</script><b>bold</b>")

    response = as_player(jack).get(MAIL)

    assert "<script>alert" not in response.content.decode()
    assert "&lt;b&gt;bold" in response.content.decode()
    assert "default-src 'self'" in response["Content-Security-Policy"]


@pytest.mark.parametrize(
    ("form", "why"),
    [
        ({"text": ""}, "Write something"),
        ({"text": " \n "}, "Write something"),
        ({"text": "x" * 1_001}, "at most 1000 characters"),
        ({"text": "a\0b"}, "Null characters are not allowed."),
        ({"to": ""}, "This field is required."),
        ({"to": "x"}, "only to members of your guild"),
        ({"to": "-1"}, "only to members of your guild"),
        ({"to": "ja"}, "only to members of your guild"),
        ({"to": "jack\0"}, "only to members of your guild"),
        ({"to": "x" * 10_000}, "only to members of your guild"),
        ({"client_id": ""}, "This field is required."),
        ({"client_id": "x"}, "Enter a valid value."),
    ],
)
def test_a_mail_that_cannot_be_sent_is_reported_and_kept(
    redis: Redis, joe: Player, jack: Player, form: dict[str, str], why: str
) -> None:
    given = {"to": "jack", "text": "hello", "client_id": "0" * 32, **form}

    response = as_player(joe).post(MAIL, given)

    assert why in text(response)
    assert mailbox(jack).depth() == 0
    if form.get("text", "hello") == "hello":
        assert "hello" in response.content.decode()


def test_a_full_mailbox_and_a_blocked_sender_are_said(
    redis: Redis, joe: Player, jack: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    mailbox(jack).block(str(joe.user_id))
    assert "The recipient does not accept mail from you. Nothing was sent." in send(as_player(joe), jack)
    mailbox(jack).unblock(str(joe.user_id))
    monkeypatch.setattr(letters, "mailbox", lambda player: Mailbox(str(player.user_id), limit=1))
    push(jack, joe, "one")

    assert "That mailbox is full. Nothing was sent." in send(as_player(joe), jack)


def test_the_reader_is_told_what_was_dropped(redis: Redis, joe: Player, jack: Player) -> None:
    push(jack, joe, "one", "two")
    mailbox(jack).clear()

    assert "2 messages had to be dropped before you could read them." in text(as_player(jack).get(MAIL))


@pytest.mark.parametrize("upto", ["", "x", "-1", "1.5", "9" * 30])
def test_a_read_position_must_be_an_id(redis: Redis, joe: Player, jack: Player, upto: str) -> None:
    push(jack, joe, "one")
    client = as_player(jack)
    client.get(MAIL)

    assert "The form does not say up to which message you have read." in text(
        client.post(READ, {"upto": upto}, follow=True)
    )
    assert mailbox(jack).depth() == 1


def test_reading_takes_post_only(redis: Redis, joe: Player) -> None:
    assert as_player(joe).get(READ).status_code == 405


def test_a_message_of_nobody_that_is_known_can_be_read(redis: Redis, jack: Player) -> None:
    mailbox(jack).push("999999", "hello")

    assert "somebody who has left the game" in text(as_player(jack).get(MAIL))


def test_a_player_without_a_guild_can_write_to_nobody(redis: Redis, june: Player) -> None:
    page = text(as_player(june).get(MAIL))

    assert "there is nobody else in it" in page
    assert "Send" not in page.partition("Write")[2]


def test_the_page_of_the_guild_leads_to_a_form_that_is_addressed(
    redis: Redis, joe: Player, jack: Player
) -> None:
    html = as_player(joe).get(MAIL, {"to": str(jack.user_id)}).content.decode()

    assert re.search(r'<input type="text" name="to" value="jack"', html)
    assert f'<input type="hidden" name="to-id" value="{jack.user_id}">' in html


@pytest.mark.parametrize("to", ["", "x", "-1", "9" * 30, "a\0b"])
def test_a_form_that_is_addressed_to_nobody_is_empty(
    redis: Redis, joe: Player, jack: Player, to: str
) -> None:
    html = as_player(joe).get(MAIL, {"to": to}).content.decode()

    assert '<input type="hidden" name="to-id" value="">' in html


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


def test_the_fate_of_what_is_long_gone_is_not_known(redis: Redis, joe: Player, jack: Player) -> None:
    client = as_player(joe)
    send(client, jack, "bring oil")
    assert letters.fate(joe, str(jack.user_id), mailbox(jack).peek()[0].id).fate is Fate.WAITING  # type: ignore[union-attr]
    mailbox(jack).erase()

    assert "jack bring oil status no longer known" in text(client.get(MAIL))
