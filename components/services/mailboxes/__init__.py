"""Mailboxes: many senders push messages, and one recipient pulls each message again until they acknowledge it."""

# Read mailbox.py, then lua/push.lua and lua/pull.lua.

from components.services.mailboxes.facts import Delivery, Fate, Mail, MailboxInfo, Mails, Pushed, WhenFull
from components.services.mailboxes.mailbox import Mailbox, MailboxReader

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
