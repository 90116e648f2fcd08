"""
An observer: again and again it weighs what is in flight, by all chunks that lie in Redis, whoever owns them.

One script looks at all of it at once, so what it sees was so. While Redis is away it sees nothing.
"""

from __future__ import annotations

from contextlib import suppress
from threading import Event, Thread
from typing import Any, Self

from redis import Redis
from redis.exceptions import RedisError

from components.services.logs import PLACES
from components.services.logs.keys import JobKeys
from tests.chaos.visits import plan

_PAUSE = 0.02  # seconds
_LOOK = """
local names, weight, handed = redis.call("KEYS", KEYS[1] .. "*"), 0, 0
for _, name in ipairs(names) do weight = weight + redis.call("STRLEN", name) end
for _, group in ipairs(ARGV) do
  for _, pending in ipairs(redis.call("XPENDING", KEYS[2], group, "-", "+", 1000)) do
    handed = math.max(handed, pending[4])
  end
end
local state = redis.call("HMGET", KEYS[3], "bytes", "chunks")
local lines = redis.call("HGET", KEYS[4], "lines") or 0
return { weight, #names, tonumber(state[1] or 0), tonumber(state[2] or 0), tonumber(lines), handed }
"""


class Observer:
    """with Observer(url) as observer: …; then what it has seen."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._keys = [
            JobKeys(plan.JOB).chunk(""),
            JobKeys(plan.JOB).stream,
            JobKeys(plan.JOB).state,
            JobKeys(plan.JOB).counts(f"totals:{PLACES}"),
        ]
        self._is_over = Event()
        self._thread = Thread(target=self._run, name="observer")
        #: How often it has looked, and the most bytes and chunks that it saw.
        self.looks = self.bytes = self.chunks = 0
        #: Lines counted by places so far, and how often a chunk was handed out, at most.
        self.lines = self.handed_out = 0
        self.complaints: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        with Redis.from_url(self._url) as client:
            while not self._is_over.wait(_PAUSE):
                with suppress(RedisError):
                    self.look(client)

    def look(self, client: Redis) -> None:
        found: Any = client.eval(_LOOK, len(self._keys), *self._keys, PLACES, plan.EVENTS)
        weight, there, bytes_, chunks, self.lines, handed_out = found
        self.looks += 1
        self.bytes, self.chunks = max(self.bytes, weight), max(self.chunks, there)
        self.handed_out = max(self.handed_out, handed_out)
        if weight > plan.LIMIT:
            self.complaints.append(f"{weight:,} bytes were in flight, more than {plan.LIMIT:,}.")
        if (weight, there) != (bytes_, chunks):
            self.complaints.append(
                f"{weight:,} bytes of {there} chunks were in flight, said to be {bytes_:,} of {chunks}."
            )
