"""
A process that adds a person to its own chats, and lets them speak there, again and again until it is killed.
(tests/chaos/test_erasure.py)
"""

from __future__ import annotations

import sys
from contextlib import suppress

import django

from components.exceptions import ChatNotFound
from components.services.chat import Chat, ChatSettings

CHATS = 4  # of each process
MOST = 5_000  # rounds, should nobody kill it


def main(place: str, person: str) -> None:
    settings = ChatSettings(rate_limit=0)
    chats = [
        Chat.create(f"owner {place}", id=f"{place}:{number}", settings=settings) for number in range(CHATS)
    ]
    for _ in range(MOST):
        for chat in chats:
            chat.add([person])
            with suppress(ChatNotFound):  # they were erased meanwhile
                chat.send(person, "secret")


if __name__ == "__main__":
    django.setup()
    main(*sys.argv[1:])
