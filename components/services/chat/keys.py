"""The keys of chats and inboxes."""

from __future__ import annotations

from components.kit.keyspace import _key

# Chats. The entity is a bucket of chats, so that one script can look at several. (services/chat)


def chat(tag: str, chat_id: str) -> str:
    """HASH, what the chat is and how far it has come. Goes a year after the chat, so that no sequence restarts."""
    return _key("chats", tag, f"chat:{chat_id}")


def chat_messages(tag: str, chat_id: str) -> str:
    """STREAM <seq>-0 -> message. Goes by the chat's limits of number, age and bytes, or with the chat."""
    return _key("chats", tag, f"messages:{chat_id}")


def chat_members(tag: str, chat_id: str) -> str:
    """HASH person -> role, since when, what he may see. An entry goes when he leaves."""
    return _key("chats", tag, f"members:{chat_id}")


def chat_reads(tag: str, chat_id: str) -> str:
    """ZSET person by the seq up to which he has read. An entry goes when he leaves."""
    return _key("chats", tag, f"reads:{chat_id}")


def chat_mentions(tag: str, chat_id: str) -> str:
    """ZSET per person (prefix of him: ends in "/"): seqs that mention him, unread. Goes when read."""
    return _key("chats", tag, f"mentions:{chat_id}")


def chat_own(tag: str, chat_id: str) -> str:
    """ZSET per person (prefix of him: ends in "/"): seqs that he said after what he has read. Goes when read."""
    return _key("chats", tag, f"own:{chat_id}")


def chat_sent(tag: str, chat_id: str) -> str:
    """HASH per part of the history (prefix: ends in "/"): digest of sender and client id -> seq. Goes with it."""
    return _key("chats", tag, f"sent:{chat_id}")


def chat_deleted(tag: str, chat_id: str) -> str:
    """
    ZSET words of a deleted message (seq, digest, sent at) by seq; with the messages at most twice max_messages.

    Goes with the history that it was in.
    """
    return _key("chats", tag, f"deleted:{chat_id}")


def chat_calls(tag: str, chat_id: str) -> str:
    """STRING per call (prefix of it: ends in "/"), what was answered, if it asks again. Expires after a minute."""
    return _key("chats", tag, f"calls:{chat_id}")


def chat_rate(tag: str, chat_id: str) -> str:
    """STRING per person (prefix of him: ends in "/"), when he may speak again. Expires then."""
    return _key("chats", tag, f"rate:{chat_id}")


def chat_blocked(tag: str, chat_id: str) -> str:
    """HASH person who may not come back -> since when, 10,000 at most. An entry goes when that is taken back."""
    return _key("chats", tag, f"blocked:{chat_id}")


def chat_muted(tag: str, chat_id: str) -> str:
    """
    ZSET person who left while they were muted by the millisecond until when, +inf for no end.

    An entry goes when they come back, when the mute is over or taken back; the 10,000 that end last stay.
    """
    return _key("chats", tag, f"muted:{chat_id}")


def chat_names(tag: str) -> str:
    """ZSET chat id by the millisecond of its last message. An entry goes with the chat."""
    return _key("chats", tag, "names")


# Inboxes: in which chats a person may be. Hints, which the chats confirm. (services/chat)


def inbox_chats(tag: str, person: str) -> str:
    """ZSET chat id by the millisecond of the hint. An entry goes when the chat has denied it for a day."""
    return _key("inboxes", tag, f"chats:{person}")


def inbox_past(tag: str, person: str) -> str:
    """
    ZSET chat id by when they left it, for the erasure of what they said. An entry goes with that, and when nothing
    can be left of it: some are looked at with each chat that they leave.
    """
    return _key("inboxes", tag, f"past:{person}")


def inbox_created(tag: str, person: str) -> str:
    """
    ZSET chat id by the millisecond at which this person created it; as many as the site lets a person have.

    An entry goes when the limit is reached and its chat is over. Expires a year after the last one.
    """
    return _key("inboxes", tag, f"created:{person}")


def inbox_rate(tag: str, person: str) -> str:
    """STRING per kind and per call (prefix of it: ends in "/"): by when it is paid for. Expires then."""
    return _key("inboxes", tag, f"rate:{person}")
