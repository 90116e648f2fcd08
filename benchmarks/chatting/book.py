"""
The group chat of chapter 6 of "Redis in Action", built anew from its description: same structures, same round trips.

A chat's ZSET has its members by what they have read, a person's ZSET his chats by the same; messages are JSON in a
ZSET by their number, which a counter gives under the book's lock. Who fetches has read what he was given, and then
takes away what all have read.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence

from benchmarks.chatting.base import Guarantees, Store
from benchmarks.crew import client
from benchmarks.locking.book import give_back, take


class Book(Store):
    guarantees = Guarantees(
        kept="until all have fetched it",
        order="by a counter, under a lock",
        repeated="said twice",
        membership="not asked for",
        waits="polls",
    )

    def create(self, chat: str, members: Sequence[str]) -> None:
        with client().pipeline() as pipe:
            pipe.zadd(f"chat:{chat}", dict.fromkeys(members, 0))
            for person in members:
                pipe.zadd(f"seen:{person}", {chat: 0})
            pipe.execute()

    def send(self, chat: str, sender: str, text: str) -> None:
        redis, lock = client(), f"chat:{chat}"
        identifier = take(redis, lock)
        if identifier is None:
            raise TimeoutError(f"the lock of {chat} was not free in time")
        try:
            number = redis.incr(f"ids:{chat}")
            message = {"id": number, "ts": time.time(), "sender": sender, "message": text}
            redis.zadd(f"msgs:{chat}", {json.dumps(message): number})
        finally:
            give_back(redis, lock, identifier)

    def fetch(self, person: str) -> Mapping[str, int]:
        redis = client()
        chats = redis.zrange(f"seen:{person}", 0, -1, withscores=True)
        with redis.pipeline() as reading:
            for chat, seen in chats:
                reading.zrangebyscore(b"msgs:" + chat, seen + 1, "inf")
            answers = reading.execute() if chats else []
        found = [
            (chat, list(map(json.loads, texts))) for (chat, _), texts in zip(chats, answers, strict=True)
        ]
        with redis.pipeline() as writing:
            for chat, messages in found:
                if messages:
                    upto = messages[-1]["id"]
                    redis.zadd(b"chat:" + chat, {person: upto})
                    slowest = redis.zrange(b"chat:" + chat, 0, 0, withscores=True)
                    writing.zadd(f"seen:{person}", {chat: upto})
                    writing.zremrangebyscore(b"msgs:" + chat, 0, slowest[0][1])
            writing.execute()
        return {chat.decode(): messages[-1]["id"] for chat, messages in found if messages}

    def acknowledge(self, person: str, read: Mapping[str, int]) -> None:
        """Who fetches has read it."""
