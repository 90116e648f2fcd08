"""Mailboxes: many senders push, one recipient pulls, and has a message again until it acknowledges it."""

from components.services.mailboxes.mailboxes import Mailbox
from components.services.mailboxes.readers import MailboxReader
from components.services.mailboxes.records import Delivery, Fate, Mail, MailboxInfo, Mails, Pushed, WhenFull

__all__ = [
    "Delivery",
    "Fate",
    "Mail",
    "Mailbox",
    "MailboxInfo",
    "MailboxReader",
    "Mails",
    "Pushed",
    "WhenFull",
]
