"""Mailboxes: many senders push, one recipient pulls, and has a message again until it acknowledges it."""

from components.services.mailboxes.records import Delivery, Fate, Mail, MailboxInfo, Pushed, WhenFull

__all__ = ["Delivery", "Fate", "Mail", "MailboxInfo", "Pushed", "WhenFull"]
