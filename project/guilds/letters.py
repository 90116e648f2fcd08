"""
Mail between the members of a guild, in mailboxes of components.

A player's mailbox is named after the user's id. The rule of the book is here, and applies to the pages and the HTTP
API: there is no mail from outside the guild.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from django.contrib.auth.models import User
from django.db.models import QuerySet

from components.exceptions import MessageNotFound, RedisUnavailable
from components.people import Users
from components.services.autocomplete import Contact, RecentContacts
from components.services.mailboxes import Delivery, Mail, Mailbox, Pushed
from project.market.models import Player

from .books import guilds
from .models import Membership

logger = logging.getLogger(__name__)

#: The number of messages that the mail page shows at once.
AT_ONCE = 20


class NotAGuildMate(Exception):
    """The recipient is in another guild, or in none."""


@dataclass(frozen=True)
class Letter:
    """A message as the page shows it."""

    mail: Mail
    sender: str
    #: The address of a picture, if it has one that a browser may follow.
    picture: str


class GuildMates(Users):
    """COMPONENTS["PEOPLE"] of the demo: users, who may write only to members of their guild."""

    def refused(self, by: str, ids: Iterable[str]) -> set[str]:
        """Return those of *ids* who are not in the guild of *by*."""
        wanted = set(ids)
        users = [
            int(each) for each in {by, *wanted} if each.isascii() and each.isdecimal() and len(each) < 19
        ]
        guilds = dict(Membership.objects.filter(player__user__in=users).values_list("player__user", "guild"))
        mine = guilds.get(int(by)) if by.isdecimal() else None
        mates = {str(user) for user, guild in guilds.items() if guild == mine and mine is not None}
        return wanted - mates - {by}

    def book(self, by: str) -> str | None:
        """Return the directory of the person's guild; None without a guild."""
        guild = Membership.objects.filter(player__user_id=by).values_list("guild", flat=True).first()
        return guilds.of(guild).name if guild is not None else None


def mates_of(player: Player) -> QuerySet[User]:
    """Return the other members of the user's guild, by name."""
    mine = Membership.objects.filter(player=player).values("guild")
    mates = User.objects.filter(player__membership__guild__in=mine).exclude(pk=player.user_id)
    return mates.order_by("username")


def contacts_of(player: Player) -> list[Contact]:
    """
    Return those of the user's recent contacts to whom they may write, under their current names, latest first.

    Raises RedisUnavailable.
    """
    me, people = str(player.user_id), GuildMates()
    found = RecentContacts(me).list()
    refused = people.refused(me, [each.id for each in found])
    mates = [each for each in found if each.id not in refused and each.id != me]
    names = people.names(each.id for each in mates)
    return [replace(each, label=names.get(each.id, each.label)) for each in mates]


def write(sender: Player, recipient: Player, text: str, *, picture: str = "", client_id: str) -> Pushed:
    """
    Send a message, once for each *client_id*, even if the form is sent several times.

    The recipient becomes the first of the sender's recent contacts. Raises NotAGuildMate, and what Mailbox.push()
    raises: MailboxFull, Blocked, InvalidMessage, RedisUnavailable.
    """
    if GuildMates().refused(str(sender.user_id), [str(recipient.user_id)]):
        raise NotAGuildMate(f"{recipient} is not in your guild, so you cannot write there.")
    data = {"picture": picture} if picture else None
    pushed = mailbox(recipient).push(str(sender.user_id), text, data=data, client_id=client_id)
    try:
        RecentContacts(str(sender.user_id)).touch(str(recipient.user_id), label=str(recipient))
    except RedisUnavailable as error:  # the message is sent, and that is what counts
        logger.warning("%s was not added to the contacts of %s (%s)", recipient, sender, error)
    return pushed


def mailbox(player: Player) -> Mailbox:
    return Mailbox(str(player.user_id))


def letters(mails: Sequence[Mail]) -> list[Letter]:
    """Return the messages with the names of their senders."""
    names = GuildMates().names({mail.sender for mail in mails})
    return [
        Letter(mail, names.get(mail.sender, "somebody who has left the game"), _picture(mail.data))
        for mail in mails
    ]


def fate(sender: Player, recipient_id: str, message: int) -> Delivery | None:
    """Return the fate of a message that *sender* wrote; None if it is no longer known."""
    try:
        return Mailbox(recipient_id).status(message, sender=str(sender.user_id))
    except MessageNotFound:
        return None


def _picture(data: object) -> str:
    """Return the link in the data of a message if it leads to the web. Anyone may have written the data."""
    link = data.get("picture") if isinstance(data, dict) else None
    return link if isinstance(link, str) and link.startswith(("https://", "http://")) else ""
