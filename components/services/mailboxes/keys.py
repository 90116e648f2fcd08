"""The keys of mailboxes."""

from __future__ import annotations

from components.kit.keyspace import _key

# Mailboxes. The entity is a bucket, for mailboxes by name. (services/mailboxes)


def mailbox(tag: str, name: str) -> str:
    """HASH counters, and when it was last pulled. Expires a year after the last use."""
    return _key("mailboxes", tag, f"mailbox:{name}")


def mailbox_messages(tag: str, name: str) -> str:
    """STREAM <id>-0 -> message. An entry goes when it is acknowledged or dropped. Expires with the mailbox."""
    return _key("mailboxes", tag, f"messages:{name}")


def mailbox_handed(tag: str, name: str) -> str:
    """ZSET "<id> <pull>" of what was handed out, by id. An entry goes with its message. Expires with the mailbox."""
    return _key("mailboxes", tag, f"handed:{name}")


def mailbox_dropped(tag: str, name: str) -> str:
    """ZSET id of a message that was dropped, by id. The newest 1,000 stay. Expires after a month."""
    return _key("mailboxes", tag, f"dropped:{name}")


def mailbox_sent(tag: str, name: str) -> str:
    """
    HASH per day (prefix of ":" and the day): what was pushed, who sent what went. Expires after two days. One of
    10,000 fields, or two for each message of the limit, takes the place of that of the day before.
    """
    return _key("mailboxes", tag, f"sent:{name}")


def mailbox_blocked(tag: str, name: str) -> str:
    """HASH sender whose mail is refused -> since when, 10,000 at most. An entry goes when that is taken back."""
    return _key("mailboxes", tag, f"blocked:{name}")


def mailbox_names(tag: str) -> str:
    """ZSET name by the day of its last use. An entry goes a year after. Expires with the last."""
    return _key("mailboxes", tag, "names")
