"""
The keys of chats and inboxes. The entity is a bucket of chats, or of inboxes, so that one script can look at several.

"One per person" and the like: the key is what the property says, a slash, and the person.
"""

from typing import Self

from components.kit.keyspace import Key, SharedKey, bucket, stem


class ChatKeys:
    """The keys of the chat *chat_id*, named as in the scripts."""

    def __init__(self, chat_id: str) -> None:
        self._stem, self._end = stem("chats", bucket(chat_id)), f":{chat_id}"

    @classmethod
    def of_bucket(cls, tag: str) -> Self:
        """Return the keys of a bucket: prefixes that, followed by an id, are the keys of a chat."""
        keys = cls("")
        keys._stem = stem("chats", tag)
        return keys

    chat = Key(
        "HASH facts, settings, and the position of the sequence. Goes a year after the chat; until then, a new "
        "chat with the same id continues the sequence."
    )
    messages = Key(
        "STREAM <seq>-0 -> message. Goes by the chat's limits of number, age and bytes, or with the chat."
    )
    members = Key("HASH person -> record of the member. An entry goes when they leave.")
    reads = Key("ZSET person by the seq up to which they have read. An entry goes when they leave.")
    mentions = Key("ZSET unread seqs that mention a person; one per person. A seq goes when it is read.")
    own = Key(
        "ZSET seqs that a person sent after their reading position; one per person. A seq goes when it is read."
    )
    sent = Key("HASH digest of sender and client id -> seq; one per part of the history. Goes with it.")
    deleted = Key(
        "ZSET tombstone of a deleted message by its seq; tombstones and messages are at most twice max_messages. A "
        "tombstone goes with the part of the history that the message was in."
    )
    altered = Key(
        "HASH seq -> what was changed of the message after it was sent. An entry goes with the message."
    )
    changes = Key(
        "ZSET seq of a changed message by the chat's revision at its last change. An entry goes with the message."
    )
    calls = Key("STRING answer to a call, in case its reply was lost; one per call. Expires after a minute.")
    rate = Key("STRING record of the pace of a person; one per person. Expires when they may send again.")
    blocked = Key(
        "HASH person who may not come back -> since when; 10,000 at most. An entry goes when they are unblocked."
    )
    muted = Key(
        "ZSET person who left while muted by the millisecond at which the mute ends, +inf for no end. An entry "
        "goes when the person comes back, and when the mute ends or is lifted. The 10,000 mutes that end last "
        "stay."
    )
    here = Key(
        "ZSET person by the millisecond of their last sign of life with the chat open; the 10,000 latest. An entry "
        "goes when they leave the chat, and after 30 days. Expires 30 days after the last one."
    )
    typing = Key(
        "ZSET person who is typing by the millisecond at which that ends; five at most. Expires in six seconds."
    )
    names = SharedKey(
        "ZSET chat id by the millisecond of its last message, of the bucket. An entry goes with the chat."
    )


class InboxKeys:
    """The keys of the inbox of *person*: hints of chats that they may be in, which the chats confirm."""

    def __init__(self, person: str) -> None:
        self._stem, self._end = stem("inboxes", bucket(person)), f":{person}"

    hints = Key(
        "ZSET chat id by the millisecond of the hint. An entry goes when the person leaves, when the chat "
        "is deleted, and when the person looks after the chat has denied it for a day.",
        part="chats",
    )
    past = Key(
        "ZSET chat id by the millisecond at which the person left it after sending or reacting to something, so that "
        "an erasure finds it. An entry goes with the erasure, or when no message of theirs can be left. Some entries "
        "are examined each time the person leaves a chat."
    )
    created = Key(
        "ZSET chat id by the millisecond at which the person created it; at most as many as the site allows. An "
        "entry goes when the limit is reached and its chat is gone. Expires a year after the last one."
    )
    rate = Key(
        "STRING millisecond at which the person's actions are paid for; one per kind and per call. Expires at that "
        "time."
    )


def index(tag: str) -> str:
    """ZSET chat id by the millisecond of its last message, of a bucket. An entry goes with the chat."""
    return f"{stem('chats', tag)}names"
