"""
Who says what where in the chaos test of chats: all of it follows from numbers, so that every process knows it.

CHAOS_MESSAGES is how many are sent, of which one in forty is refused at most: so 100,000 are accepted. CHAOS_SEED is
a number of an earlier run, to have its troubles again.
Each person is in 8 of the 20 chats all the time, and goes in and out of a ninth. Two chats keep but few
messages: who reads slowly there is told how many are missing.
"""

from __future__ import annotations

import os
import secrets

from components.services.chat import ChatSettings

MESSAGES = int(os.environ.get("CHAOS_MESSAGES", "102600"))
SEED = int(os.environ.get("CHAOS_SEED") or secrets.randbelow(1_000_000))

PERSONS = [f"p{number}" for number in range(50)]
CHATS = [f"chat-{number}" for number in range(20)]
#: Those that keep but few messages; nobody joins or leaves there.
SHORT = CHATS[-2:]
OWNER = "the owner"  # of all chats; he says nothing, and reads nothing

SENDERS, READERS = 3, 4  # processes
#: How each process of readers reads: what is pending, what has changed, or the latter and waits for it.
STYLES = ("fetch", "fetch", "changes", "achanges")
SOCKET_TIMEOUT = 1.0  # seconds: how long a reply that was lost silently is waited for

_STEADY = 8  # chats
_ENOUGH = 1 << 30
_KEPT = 300  # messages of a chat that keeps but few: more than are sent there while a sender is away
#: What a message says besides who says it: what may be torn, taken for markup, or for another encoding.
_SAYINGS = (
    "Is there anybody out there, in the fog, on this long shore?",
    "Grüße aus Köln, 你好, и всем привет; das war's 🦊👩‍👩‍👧‍👦",
    "<script>alert('no')</script> & \"quotes\" \\ backslashes",
    "several\nlines\r\nand\ttabs\u2028and separators",
    "short",
)


def style(person: str) -> str:
    return STYLES[PERSONS.index(person) % READERS]


def settings(chat: str) -> ChatSettings:
    """Every second chat shows a joiner nothing of what was said before."""
    return ChatSettings(
        history=0 if CHATS.index(chat) % 2 else None,
        max_messages=_KEPT if chat in SHORT else _ENOUGH,
        max_bytes=_ENOUGH,
        rate_limit=0,
        is_open=True,
    )


def steady_chats(person: str) -> list[str]:
    first = PERSONS.index(person) * _STEADY
    return [CHATS[number % len(CHATS)] for number in range(first, first + _STEADY)]


def ninth_chat(person: str) -> str:
    """
    Where he goes in and out: it keeps all, and shows what was said before only to those who fetch, who begin at their
    joining all the same.
    """
    first = PERSONS.index(person) * _STEADY + _STEADY
    others = [CHATS[number % len(CHATS)] for number in range(first, first + len(CHATS) - _STEADY)]
    return next(
        chat
        for chat in others[PERSONS.index(person) % 3 :]
        if chat not in SHORT and (style(person) == "fetch" or settings(chat).history == 0)
    )


def first_members(chat: str) -> list[str]:
    return [person for person in PERSONS if chat in steady_chats(person)]


def count_of(person: str) -> int:
    """How many messages he sends."""
    share, rest = divmod(MESSAGES, len(PERSONS))
    return share + (PERSONS.index(person) < rest)


def client_id(person: str, number: int) -> str:
    return f"{person}.{number}"


def chat_of(person: str, number: int) -> str:
    """Each fortieth goes to the ninth chat, whether he is in it or not."""
    if number % 40 == 39:
        return ninth_chat(person)
    return steady_chats(person)[(number * 5 + number // _STEADY) % _STEADY]


def text_of(client_id: str) -> str:
    return f"{client_id} {_SAYINGS[int(client_id.rpartition('.')[2]) % len(_SAYINGS)]}"


def data_of(number: int) -> dict[str, object] | None:
    return {"number": number, "shapes": [1.5, None, "ü"]} if number % 20 == 0 else None


def mentions_of(person: str, number: int) -> list[str]:
    """Each tenth mentions somebody; in the ninth chat it may be nobody who is in it."""
    return [PERSONS[(PERSONS.index(person) + number) % len(PERSONS)]] if number % 10 == 0 else []
