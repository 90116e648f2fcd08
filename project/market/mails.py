"""
The mails of the market to its players.

A task may run twice (a worker dies after sending, before it reports that). Both messages then have the same
Message-ID, made from the kind of mail and its row, so that a mail system recognises the copy.
"""

from __future__ import annotations

from email.utils import parseaddr

from django.conf import settings
from django.core.mail import EmailMessage
from django.template.loader import render_to_string

from .models import Listing, Player, Sale


def sold(sale: Sale) -> EmailMessage:
    """Return the mail to the seller of a sold item."""
    subject = f"Sold: {sale.listing.item.name} for {sale.price:,} gold"
    return _message("sold", sale.pk, sale.seller, subject, {"sale": sale})


def expired(listing: Listing) -> EmailMessage:
    """Return the mail to the seller of an item that nobody bought in time."""
    subject = f"Not sold: {listing.item.name}"
    return _message("expired", listing.pk, listing.seller, subject, {"listing": listing})


def message_id(kind: str, pk: int) -> str:
    """Return a Message-ID that is the same for every copy of a mail."""
    domain = parseaddr(settings.DEFAULT_FROM_EMAIL)[1].rpartition("@")[2]
    return f"<market-{kind}-{pk}@{domain}>"


def _message(kind: str, pk: int, player: Player, subject: str, context: dict[str, object]) -> EmailMessage:
    return EmailMessage(
        subject=subject,
        body=render_to_string(f"market/mail/{kind}.txt", {"player": player, **context}),
        to=[player.user.email],
        headers={"Message-ID": message_id(kind, pk)},
    )
