"""
Short words for what tests of chats do again and again.

Time passes by data: `let_pass` makes all instants of a chat earlier, and no test sleeps.
"""

from __future__ import annotations

from collections.abc import Iterable

from redis import Redis

from components.services.chat import ChatMessage, ChatSettings
from components.services.chat.keys import ChatKeys

#: Without a rate limit, as tests are faster than people.
FREE = ChatSettings(rate_limit=0)


def texts(messages: Iterable[ChatMessage]) -> list[str]:
    """What was said, or what kind of event it is."""
    return [str(message.event.kind) if message.event else message.text for message in messages]


def let_pass(redis: Redis, chat_id: str, seconds: float) -> None:
    """All that is known of the chat is older by so much, and what expires in that time is gone."""
    keys, ms = ChatKeys(chat_id), round(seconds * 1000)
    messages, chat = keys.messages, keys.chat
    ages = {key: redis.pttl(key) - ms for key in redis.keys(f"*:{chat_id}*") if redis.pttl(key) > 0}
    entries, has_stream = redis.xrange(messages), redis.exists(messages)
    redis.delete(messages)
    for key, fields in entries:
        redis.xadd(messages, {**fields, b"t": int(fields[b"t"]) - ms}, id=key)
    if has_stream and not entries:  # an empty stream is not yet none
        redis.xadd(messages, {"s": ""}, id=f"{int(redis.hget(chat, 'seq') or 0)}-0")
        redis.xtrim(messages, maxlen=0)
    for name in ("at", "due_at"):
        if redis.hexists(chat, name):
            redis.hincrby(chat, name, -ms)
    for key, left in ages.items():
        redis.pexpire(key, left)


def stored(redis: Redis, chat_id: str) -> list[str]:
    """The keys of a chat, by their last part."""
    found = redis.keys(f"*:{chat_id}*")
    return sorted(key.decode().rpartition("}:")[2].replace(f":{chat_id}", "") for key in found)
