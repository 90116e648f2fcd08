"""
A process that sends what some persons have to say, each in his order; what became of it is in its notes.

`python -m tests.chaos.chats.senders FOLDER PLACE` is one. It goes on where the one before it was killed: what that
one has not noted as accepted, though it may have been, is sent again under its client id.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.chaos.chats.settings")

from components.exceptions import ChatNotFound, RedisUnavailable
from components.services.chat import Chat
from tests.chaos.chats import notes, plan

LOSSY = 0  # the place of the one that does not get all replies
_THREADS = 4  # of a process: while one waits for the server's disk, others ask
_PAUSE = 0.02  # seconds, while Redis is away


class Sender:
    def __init__(self, folder: Path, place: int) -> None:
        role = f"sender-{place}"
        self._persons = plan.PERSONS[place :: plan.SENDERS]
        self._said: Counter[str] = Counter()
        for kind, _chat, *rest in notes.read(folder, role):
            self._said[(rest[1] if kind == "A" else rest[0]).partition(".")[0]] += 1
        self._is_lossy = place == LOSSY
        self._notes = notes.Notes(folder, role)

    def work(self) -> None:
        with ThreadPoolExecutor(_THREADS) as pool:
            shares = [self._persons[number::_THREADS] for number in range(_THREADS)]
            for _ in pool.map(self._speak_for, shares):
                pass

    def _speak_for(self, persons: Sequence[str]) -> None:
        """Each in turn says the next of what he has to say."""
        left = {person: iter(range(self._said[person], plan.count_of(person))) for person in persons}
        while left:
            for person, numbers in list(left.items()):
                if (number := next(numbers, None)) is None:
                    del left[person]
                else:
                    self._send(person, number, may_be_there=number == self._said[person])

    def _send(self, person: str, number: int, *, may_be_there: bool) -> None:
        """Until Redis has said what has become of it."""
        client_id, chat = plan.client_id(person, number), plan.chat_of(person, number)
        while True:
            try:
                sent = Chat(chat).send(
                    person,
                    plan.text_of(client_id),
                    data=plan.data_of(number),
                    mentions=plan.mentions_of(person, number),
                    client_id=client_id,
                )
            except RedisUnavailable:
                may_be_there = True
                time.sleep(_PAUSE)
            except ChatNotFound:
                return self._notes.write(f"R {chat} {client_id} {int(may_be_there or self._is_lossy)}")
            else:
                return self._notes.write(f"A {chat} {sent.seq} {client_id} {int(sent.is_duplicate)}")


if __name__ == "__main__":
    Sender(Path(sys.argv[1]), int(sys.argv[2])).work()
