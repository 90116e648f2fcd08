"""Store data that no release writes, or only a newer one, in the place of messages and their surroundings."""

from redis import Redis

from components.services.chat.keys import ChatKeys
from components.services.mailboxes.keys import MailboxKeys

_DEEP = b"[" * 1_480 + b"]" * 1_480
_VERY_DEEP = b"[" * 30_000 + b"]" * 30_000

#: Bodies of messages, by what is wrong with them.
BODIES: dict[str, bytes] = {
    "nested": b'j["a",' + _DEEP + b"]",
    "nested endlessly": b'j["a",' + _VERY_DEEP + b"]",
    "a little too nested": b'j["a",' + b"[" * 33 + b"]" * 33 + b"]",
    "no JSON": b'j["a",',
    "other JSON": b'j{"a": 1, "b": 2}',
    "no pair": b"j5",
    "no text": b"j[5, 5]",
    "no number": b'j["a",NaN]',
    "endless": b'j["a",1e999]',
    "many digits": b'j["a",' + b"9" * 5_000 + b"]",
    "half a character": b'j["a","\\ud800"]',
    "half a character as text": b'j["\\ud800",1]',
    "no UTF-8": b"t\xff\xfe",
    "no UTF-8 in JSON": b'j["a","\xff"]',
    "newer": b"zwhat comes next",
    "no letter": b"\xff",
    "empty": b"",
    "an event of no kind": b"e3:odd0:0:0:",
    "an event without parts": b"e5:joine",
    "an event with a wrong length": b"e999999999999:joined0:0:0:",
    "an event with a negative length": b"e-9:joined0:0:0:",
}

#: What may stand in any field, where a number, a name or words should be.
FIELDS: dict[str, bytes] = {
    "text": b"x",
    "empty": b"",
    "no UTF-8": b"\xff\xfe",
    "a long number": b"9" * 40,
    "words": b"1 2",
}


def put_into_chat(redis: Redis, chat_id: str, **fields: bytes) -> int:
    """Append an entry with these fields, and valid other ones, without the chat's own scripts. Return its seq."""
    chat, stream = ChatKeys(chat_id).chat, ChatKeys(chat_id).messages
    seq = int(redis.hincrby(chat, "seq", 1))
    n, at = int(redis.hincrby(chat, "n", 1)), redis.hget(chat, "at")
    right = {"s": b"jill", "c": b"c", "t": at, "n": n, "m": b"", "b": b"thello"}
    redis.xadd(stream, {**right, **fields}, id=f"{seq}-0")
    return seq


def put_into_mailbox(redis: Redis, name: str, **fields: bytes) -> int:
    """Do the same to a mailbox, and return the message's id."""
    mailbox, stream = MailboxKeys(name).mailbox, MailboxKeys(name).messages
    message = int(redis.hincrby(mailbox, "last", 1))
    right = {"from": b"jill", "at": b"1700000000000", "body": b"thello"}
    redis.xadd(stream, {**right, **fields}, id=f"{message}-0")
    return message
