"""The figures of mailboxes."""

from __future__ import annotations

from components.kit.figures import Event

EVENTS = (
    Event("mailboxes:pushed", "components_mailbox_pushed", "Messages that were pushed into mailboxes."),
    Event("mailboxes:pulled", "components_mailbox_pulled", "Messages that were pulled from mailboxes."),
    Event("mailboxes:acknowledged", "components_mailbox_acknowledged", "Messages that were acknowledged."),
)
