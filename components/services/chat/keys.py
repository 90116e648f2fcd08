"""
The keys of chats and inboxes. The entity is a bucket of chats, or of inboxes, so that one script can look at several.

"One per person" and the like: the key is what the property says, a slash, and the person.
"""

from __future__ import annotations

from typing import Self

from components.kit.keyspace import bucket, stem


class ChatKeys:
    """The keys of the chat *chat_id*, by the names that the scripts have for them."""

    def __init__(self, chat_id: str) -> None:
        self._id = chat_id
        self._bucket = stem("chats", bucket(chat_id))

    @classmethod
    def of_bucket(cls, tag: str) -> Self:
        """Return what the keys of all chats of a bucket begin with: an id comes after it."""
        keys = cls("")
        keys._bucket = stem("chats", tag)
        return keys

    @property
    def chat(self) -> str:
        """
        HASH of facts, of settings, and how far the chat has come.

        Goes a year after the chat; until then a chat of the same id goes on counting.
        """
        return f"{self._bucket}chat:{self._id}"

    @property
    def messages(self) -> str:
        """STREAM <seq>-0 -> message. Goes by the chat's limits of number, age and bytes, or with the chat."""
        return f"{self._bucket}messages:{self._id}"

    @property
    def members(self) -> str:
        """HASH person -> record of the member. An entry goes when they leave."""
        return f"{self._bucket}members:{self._id}"

    @property
    def reads(self) -> str:
        """ZSET person by the seq up to which they have read. An entry goes when they leave."""
        return f"{self._bucket}reads:{self._id}"

    @property
    def mentions(self) -> str:
        """ZSET seqs that mention a person, unread; one per person. Goes when read."""
        return f"{self._bucket}mentions:{self._id}"

    @property
    def own(self) -> str:
        """ZSET seqs that a person sent after what they have read; one per person. Goes when read."""
        return f"{self._bucket}own:{self._id}"

    @property
    def sent(self) -> str:
        """HASH digest of sender and client id -> seq; one per part of the history. Goes with it."""
        return f"{self._bucket}sent:{self._id}"

    @property
    def deleted(self) -> str:
        """
        ZSET tombstone of a deleted message by its seq; with the messages at most twice max_messages.

        Goes with the history that the message was in.
        """
        return f"{self._bucket}deleted:{self._id}"

    @property
    def calls(self) -> str:
        """STRING what a call was answered, in case its reply was lost; one per call. Expires after a minute."""
        return f"{self._bucket}calls:{self._id}"

    @property
    def rate(self) -> str:
        """STRING record of the pace of a person; one per person. Expires when they may send again."""
        return f"{self._bucket}rate:{self._id}"

    @property
    def blocked(self) -> str:
        """HASH person who may not come back -> since when; 10,000 at most. An entry goes when they are unblocked."""
        return f"{self._bucket}blocked:{self._id}"

    @property
    def muted(self) -> str:
        """
        ZSET person who left while they were muted by the millisecond until when, +inf for no end.

        An entry goes when they come back, and when the mute is over or lifted; the 10,000 that end last stay.
        """
        return f"{self._bucket}muted:{self._id}"

    @property
    def names(self) -> str:
        """ZSET chat id by the millisecond of its last message, of the bucket. An entry goes with the chat."""
        return f"{self._bucket}names"


class InboxKeys:
    """The keys of the inbox of *person*: in which chats they may be, as hints, which the chats confirm."""

    def __init__(self, person: str) -> None:
        self._person = person
        self._bucket = stem("inboxes", bucket(person))

    @property
    def hints(self) -> str:
        """ZSET chat id by the millisecond of the hint. An entry goes when the chat has denied it for a day."""
        return f"{self._bucket}chats:{self._person}"

    @property
    def past(self) -> str:
        """
        ZSET chat id by when they left it, for the erasure of what they sent.

        An entry goes with that, and when nothing can be left of it: with each chat that they leave,
        some are looked at.
        """
        return f"{self._bucket}past:{self._person}"

    @property
    def created(self) -> str:
        """
        ZSET chat id by the millisecond at which they created it; as many as the site lets a person have.

        An entry goes when the limit is reached and its chat is over. Expires a year after the last one.
        """
        return f"{self._bucket}created:{self._person}"

    @property
    def rate(self) -> str:
        """STRING by when what they did is paid for; one per kind and per call. Expires then."""
        return f"{self._bucket}rate:{self._person}"


def index(tag: str) -> str:
    """ZSET chat id by the millisecond of its last message, of a bucket. An entry goes with the chat."""
    return f"{stem('chats', tag)}names"
