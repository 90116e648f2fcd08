"""
Helpers for tests of chats.

No test sleeps: `let_pass` makes all stored instants of a chat earlier.
"""

from collections.abc import Iterable

from redis import Redis

from components.services.chat import Chat, ChatMessage, ChatSettings
from components.services.chat.keys import ChatKeys

#: Without a rate limit, as tests are faster than people.
FREE = ChatSettings(rate_limit=0)
#: Texts that mention jack, and texts that do not, although his name follows an "@".
MENTIONING = [
    "@jack", "(@jack), hi", "_@jack_ **b**", "**@jack**", "- @jack\n- x", "x\n> @jack", "`a` @jack `b`", "```\n@jack",
    "```py\nx\n```\n@jack", r"\\@jack", r"\`@jack\`", "https://x.example @jack", "看https://x.example/\u3002@jack",
    "[x](https://x.example/@jack) @jack", "[@jack](https://x.example/)", "_@jack", "@jack[x](https://x.example)",
]  # fmt: skip
SILENT = [
    "`@jack`", "``@jack``", "``` @jack ```", "```\n@jack\n```", "```py\nx\n\n@jack\n ```\nb", r"\@jack", r"\李@jack",
    r"a \\\@jack", "https://x.example/@jack", "HTTP://x.example/a_(@jack)", "www.x.example/@jack", "x.example/@jack",
    "jill@jack.example", "@jack@x.example", "[x](https://x.example/@jack)", "a_@jack", "@jacky", "@jack_b",
]  # fmt: skip


def texts(messages: Iterable[ChatMessage]) -> list[str]:
    return [str(message.event.kind) if message.event else message.text for message in messages]


def let_pass(redis: Redis, chat_id: str, seconds: float) -> None:
    """Let time pass for the chat: all instants are earlier by as much, and keys that would expire are gone."""
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
    for key in (keys.here, keys.typing):
        for person, at in redis.zrange(key, 0, -1, withscores=True):
            redis.zadd(key, {person: at - ms})
    for key, left in ages.items():
        redis.pexpire(key, left)


def size_of(redis: Redis, chat_id: str) -> int:
    """Return how many bytes the messages and events of a chat have, counted anew."""
    entries = redis.xrange(ChatKeys(chat_id).messages)
    return sum(len(entry[field]) for _id, entry in entries for field in (b"s", b"c", b"m", b"b"))


def stored(redis: Redis, chat_id: str) -> list[str]:
    """Return the keys of a chat, by their last part."""
    found = redis.keys(f"*:{chat_id}*")
    return sorted(key.decode().rpartition("}:")[2].replace(f":{chat_id}", "") for key in found)


SECRET = "the treasure lies below the mill"


def guild(name: str = "guild:7", *, title: str = "Lantern Keepers") -> Chat:
    """Three members; joe is the owner, and has said the first of three things. jill has read two numbers."""
    chat = Chat.create("joe", members=["jack", "jill"], title=title, text="welcome", id=name)
    chat.send("jack", SECRET, mentions=["jill"])
    chat.send("joe", "look", data={"picture": "https://pictures.example/mill.png"})
    chat.acknowledge("jill", 2)
    return chat
